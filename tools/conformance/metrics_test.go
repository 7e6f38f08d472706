package conformance

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

var (
	clusterRow = regexp.MustCompile("(?m)^\\| [a-z ]+ \\| `(whippet_[a-z_]+)` \\|")
	anyRow     = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	family     = regexp.MustCompile(`(?m)^# TYPE (whippet_\S+) `)
)

// TestMetricsOfAClusterPage compares deploy/docs/metrics.md with what the processes of a cluster show.
func TestMetricsOfAClusterPage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts server processes")
	}
	bin := t.TempDir()
	if err := process.BuildAll(bin); err != nil {
		t.Fatal(err)
	}
	plan := local.Plan{Bin: bin, Metadata: 3, Partition: 3, FrontDoor: 1}
	processes, err := local.Make(t.TempDir(), plan)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{processes: processes}
	t.Cleanup(func() { _ = c.Kill() })
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(processes.Kill(processes.Members[0]), c.Start()); err != nil { // connections are lost and made again
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../deploy/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	ofClusters, known := map[string]bool{}, map[string]bool{}
	for _, m := range clusterRow.FindAllStringSubmatch(string(page), -1) {
		ofClusters[m[1]], known[m[1]] = true, true
	}
	for _, m := range anyRow.FindAllStringSubmatch(string(page), -1) {
		known[m[1]] = true
	}
	shown := map[string]bool{}
	look := func() (all bool) {
		for _, p := range processes.Status() {
			for _, m := range family.FindAllStringSubmatch(scrape(t, p.Ops), -1) {
				shown[m[1]] = true
			}
		}
		for name := range ofClusters {
			if !shown[name] {
				return false
			}
		}
		return true
	}
	again := time.NewTicker(untilPause)
	defer again.Stop()
	for started := time.Now(); !look() && time.Since(started) < readyTime; {
		<-again.C
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if !known[name] {
			t.Errorf("%s is shown but not in deploy/docs/metrics.md", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ofClusters)) {
		if !shown[name] {
			t.Errorf("%s is in deploy/docs/metrics.md but not shown", name)
		}
	}
}

func scrape(t *testing.T, ops string) string {
	t.Helper()
	r, err := http.Get("http://" + ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
