package cluster

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/cluster/lanes"
	"github.com/whippet-mq/whippet/tools/local"
)

var (
	storm      = flag.Int("storm", 100, "TestLoginStorm: clients that log in at once")
	stormLogin = flag.Bool("storm-login", true, "of the process of clients: they log in")
)

const (
	stormAccounts = 20
	stormCalm     = 500 * time.Millisecond
	stormLimit    = 30 * time.Second // what official clients wait for a login
)

// TestLoginStorm has many clients of a few accounts log in at the same moment, and again while the metadata
// primary dies. All get in, nobody is deposed by it, and who sends meanwhile goes on.
func TestLoginStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of processes")
	}
	c := start(t, services)
	admin := connect(t, c.Process(doors(c)[1]).TCP)
	for i := range stormAccounts {
		q := wire.CreateUserRequest{Username: fmt.Appendf(nil, "account-%d", i), Password: []byte("secret"), Status: wire.UserActive}
		if _, err := admin.CreateUser(q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.CreateStream("s"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t")}); err != nil {
		t.Fatal(err)
	}
	t.Log("what                       kind                   n, longest gap, p50, p99 (ms) before | during")
	h := watchHiccups()
	defer h.end()
	view := metric(c, metadataPrimary(t, c), "whippet_metadata_view")
	stormOnce(t, c, "connections alone", false, func() {})
	stormOnce(t, c, "login storm", true, func() {})
	stormOnce(t, c, "the same again", true, func() {})
	if now := metric(c, metadataPrimary(t, c), "whippet_metadata_view"); now != view && h.longest() < tolerable {
		t.Errorf("logins moved the metadata from view %v to view %v", view, now)
	}
	leader := metadataPrimary(t, c)
	stormOnce(t, c, "metadata primary dies", true, func() {
		if err := c.Kill(leader); err != nil {
			t.Error(err)
		}
	})
	again(t, c, leader)
	for _, m := range holders(c) {
		if n := metric(c, m, "whippet_partition_view_changes_total"); n > 0 && h.longest() < tolerable {
			t.Errorf("logins took %v partitions from their primaries", n)
		}
	}
}

// stormOnce has everybody connect at once, and log in or only ping, has something happen meanwhile, and shows
// what others saw and what it cost.
func stormOnce(t *testing.T, c *local.Cluster, what string, login bool, meanwhile func()) {
	t.Helper()
	l := through(c)
	for door := range 2 {
		l.Add("send", door, 50, lanes.Sends("s", "t"))
		l.Add("ping", door, 50, lanes.Pings)
	}
	l.Start(t.Context())
	before := time.Now()
	elapse(stormCalm)
	used, begun := usages(t, c), time.Now()
	took := stormElsewhere(t, c, login, meanwhile)
	end, cost := time.Now(), roleCPU(used, usages(t, c))
	l.Still()
	n := len(took)
	t.Logf("%s: %d: half after %v, 99 %% after %v, the last after %v; CPU: %s", what, n, took[n/2].Round(time.Millisecond),
		took[min(n-1, n*99/100)].Round(time.Millisecond), took[n-1].Round(time.Millisecond), cost)
	if took[n-1] > stormLimit {
		t.Errorf("%s: the last one took %v", what, took[n-1])
	}
	for _, kind := range l.Kinds() {
		first, then := l.Look(kind, lanes.Span{From: before, To: begun}), l.Look(kind, lanes.Span{From: begun, To: end})
		t.Log(lanes.Row(what, kind, first, then))
		if then.Gap > gapLimit || then.Errors > 0 {
			t.Errorf("%s: %s: no answer for %v, %d errors %s", what, kind, then.Gap, then.Errors, then.Word)
		}
	}
}

// roleCPU says what the processes of each role used between two looks at them. One that died in between is
// not counted.
func roleCPU(from, to map[string]usage) string {
	sum := map[string]time.Duration{}
	for name, u := range to {
		role, _, _ := strings.Cut(name, " ")
		if before, ok := from[name]; ok && u.cpu >= before.cpu {
			sum[role] += u.cpu - before.cpu
		}
	}
	var all []string
	for _, role := range slices.Sorted(maps.Keys(sum)) {
		all = append(all, fmt.Sprintf("%s %v", role, sum[role]))
	}
	return strings.Join(all, ", ")
}

// stormVariable makes this program a process of clients of these doors. The clients of a storm are not in the
// process that measures what others see, and give way to it: real ones have machines of their own.
const stormVariable = "CLUSTER_TEST_STORM"

// stormElsewhere has another process make the connections and returns how long each took, in order.
func stormElsewhere(t *testing.T, c *local.Cluster, login bool, meanwhile func()) (took []time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nice", os.Args[0], fmt.Sprintf("-storm=%d", *storm), fmt.Sprintf("-storm-login=%v", login))
	cmd.Env = append(os.Environ(), stormVariable+"="+strings.Join(doorAddresses(c), ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // it begins
	meanwhile()
	for lines.Scan() {
		d, err := time.ParseDuration(lines.Text())
		if err != nil {
			t.Fatalf("client: %s", lines.Text())
		}
		took = append(took, d)
	}
	if err := cmd.Wait(); err != nil || len(took) != *storm {
		t.Fatalf("%d clients, %v", len(took), err)
	}
	slices.Sort(took)
	return took
}

// throng is that other process.
func throng(addresses []string) {
	fmt.Println("begin")
	begun := time.Now()
	var all sync.WaitGroup
	results := make([]string, *storm)
	for i := range results {
		all.Go(func() {
			o := client.Options{Address: addresses[i%len(addresses)], RetryFor: stormLimit, Timeout: 2 * stormLimit}
			if *stormLogin {
				o.Username, o.Password = fmt.Sprintf("account-%d", i%stormAccounts), "secret"
			}
			one, err := client.Dial(context.Background(), o)
			if err == nil {
				err = one.Ping()
			}
			if results[i] = time.Since(begun).String(); err != nil {
				results[i] = err.Error()
			}
		})
	}
	all.Wait()
	for _, r := range results {
		fmt.Println(r)
	}
}
