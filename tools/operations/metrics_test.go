package operations

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// The page of metrics and the scrape of a server that has worked name the same families.
func TestMetricsPage(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c := s.connect("iggy", "iggy")
	fill(t, c, 10)
	expect(t, c, 10)
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
	contains(t, scraped, `whippet_logins_total{result="ok"} 1`, "\nmessages 10\n", "\nstreams 1\n", "whippet_ready 1")
}
