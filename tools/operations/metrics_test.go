package operations

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// The page of metrics and the scrape of a server that has worked name the same families.
func TestMetricsPage(t *testing.T) {
	s := start(t, t.TempDir(), map[string]string{"WHIPPET_TELEMETRY_PER_TOPIC": "true"})
	c := s.connect("iggy", "iggy")
	fill(t, c, 10)
	expect(t, c, 10)
	follow(t, c)
	_, scraped := s.ops("/metrics")
	families := map[string]bool{}
	for line := range strings.Lines(scraped) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[1] == "TYPE" && !strings.HasPrefix(fields[2], "go_") && !strings.HasPrefix(fields[2], "process_") {
			families[fields[2]] = true
		}
	}
	text, err := os.ReadFile("../../deploy/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.Contains(string(text), "`"+name+"`") { // those of clusters are in a table of another form
			t.Errorf("%s is scraped but not in deploy/docs/metrics.md", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !families[name] {
			t.Errorf("%s is in deploy/docs/metrics.md but not scraped", name)
		}
	}
	contains(t, scraped, `whippet_logins_total{result="ok"} 1`, "\nmessages 10\n", "\nstreams 1\n", "whippet_ready 1",
		`whippet_topic_messages{partition="0",stream="first",topic="events"} 10`,
		`whippet_topic_consumer_lag_messages{consumer="7",kind="consumer",partition="0",stream="first",topic="events"} 6`,
		`whippet_topic_group_members{group="readers",stream="first",topic="events"} 1`,
		`whippet_consumer_lag_messages{kind="consumer"} 6`, `whippet_consumer_lag_messages{kind="group"} 0`,
		"\nwhippet_consumer_groups 1\n", "\nwhippet_consumer_group_members 1\n", "\nwhippet_partitions_under_replicated 0\n",
		`whippet_commit_seconds_count{plane="partition"} 2`)
}

// follow stores the offset of the fourth message for a consumer, and joins a group.
func follow(t *testing.T, c *client.Client) {
	t.Helper()
	at := wire.OffsetTarget{Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(7)}, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0)}
	if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: at, Offset: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateGroup(wire.CreateGroupRequest{Stream: stream, Topic: topic, Name: []byte("readers")}); err != nil {
		t.Fatal(err)
	}
	if err := c.JoinGroup(wire.GroupTarget{Stream: stream, Topic: topic, Group: wire.NamedID("readers")}); err != nil {
		t.Fatal(err)
	}
}
