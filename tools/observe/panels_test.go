package observe

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/bench"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

var pictures = flag.String("pictures", "", "draw what each dashboard shows into this directory, after a minute of load")

// services is a cluster in which everything that scales is there more than once.
var services = local.Plan{Metadata: 3, Partition: 3, FrontDoor: 2, Env: map[string]string{
	"IGGY_ROOT_USERNAME": "iggy", "IGGY_ROOT_PASSWORD": "iggy", "WHIPPET_TELEMETRY_PER_TOPIC": "true",
}}

// start brings a cluster up; it is down again when the test ends.
func start(t *testing.T, plan local.Plan) *local.Cluster {
	t.Helper()
	plan.Bin = built(t)
	c, err := local.Make(filepath.Join(t.TempDir(), "cluster"), plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Down() })
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

var binaries struct {
	sync.Once
	dir string
	err error
}

// TestMain removes the binaries the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir)
	}
	os.Exit(code)
}

func built(t *testing.T) string {
	t.Helper()
	binaries.Do(func() {
		if binaries.dir, binaries.err = os.MkdirTemp("", "observe"); binaries.err == nil {
			binaries.err = process.BuildAll(binaries.dir)
		}
	})
	if binaries.err != nil {
		t.Fatal(binaries.err)
	}
	return binaries.dir
}

func doors(c *local.Cluster) (addresses []string) {
	for _, p := range c.Status() {
		if p.Role == local.FrontDoor {
			addresses = append(addresses, p.TCP)
		}
	}
	return addresses
}

// panel is a panel of a deployed dashboard.
type panel struct {
	dashboard, Title, Description, Type string
	FieldConfig                         struct{ Defaults struct{ Unit string } }
	Targets                             []struct{ Expr, LegendFormat string }
}

// panelsOf reads the deployed dashboards, as Grafana will.
func panelsOf(t *testing.T) (all []panel) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Panels []panel }
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			if p.dashboard = strings.TrimSuffix(filepath.Base(file), ".json"); p.Type != "row" {
				all = append(all, p)
			}
		}
	}
	return all
}

// work keeps a cluster busy until the test ends: sends, polls, groups, requests that can not be done, and an offset
// that stays behind.
func work(t *testing.T, c *local.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	address := doors(c)
	connect := client.Options{Address: address[0], Username: "iggy", Password: "iggy"}
	load := bench.Workload{
		Connect: connect, Producers: 2, Consumers: 2, Groups: 1, Partitions: 2, Batch: 10, Size: 200, Rate: 2000, Duration: time.Hour, Keep: true, Prefix: "load",
	}
	all.Go(func() { _, _ = bench.Run(ctx, load) })
	connect.Address = address[1]
	one, err := client.Dial(ctx, connect)
	if err != nil {
		t.Fatal(err)
	}
	at := wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(7)}, Stream: wire.NamedID("load-1"), Topic: wire.NamedID("topic-1"), Partition: wire.SelectPartition(0),
	}
	all.Go(func() {
		defer one.Close()
		for again := time.NewTicker(lookAgain); ctx.Err() == nil; {
			_ = one.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: at, Offset: 3}) // once there is such an offset
			if err := one.DeleteStream(wire.NamedID("not-there")); err == nil {
				t.Error("a stream that is not there was deleted")
			}
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	})
}

// TestPanels has a cluster work, and a Prometheus scrape it. Every query of every panel returns data, every label
// they, the rules and their texts name is one that the series have, every metric a document names is there, and
// every metric that is there is used.
func TestPanels(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of processes")
	}
	p := watch(t, func(rules string) string { return rules })
	c := start(t, services)
	p.scrape(c, nil)
	work(t, c)
	panels, queries := panelsOf(t), 0
	check := newNames(p)
	for _, panel := range panels {
		for _, target := range panel.Targets {
			queries++
			p.shown(panel.dashboard+", "+panel.Title, target.Expr, target.LegendFormat)
			check.uses(panel.dashboard+", "+panel.Title, target.Expr)
		}
	}
	ruled := append(rules(t, "recording.yml"), rules(t, "alerts.yml")...)
	for _, r := range ruled {
		check.uses(r.Record+r.Alert, r.Expr)
		for _, text := range r.Annotations {
			check.shows(r.Alert, r.Expr, labelsOf(text))
		}
	}
	documents := check.documents(t)
	check.unused(t)
	t.Logf("%d panels with %d queries, %d rules, %d documents; %d metrics and %d labels of theirs checked",
		len(panels), queries, len(ruled), documents, len(check.used), check.labels)
	if *pictures != "" {
		soon(shownFor, func() bool { return false })
		draw(t, p, panels, *pictures)
	}
}

// shown wants data for a query, and every label of its legend.
func (p *prometheus) shown(where, expr, legend string) {
	p.t.Helper()
	missing := ""
	if !soon(patience, func() bool {
		answer, err := p.query(expr)
		if err != nil {
			p.t.Fatalf("%s: %v", where, err)
		}
		if missing = ""; len(answer) == 0 {
			missing = "data"
		}
		for _, label := range labelsOf(legend) {
			if !slices.ContainsFunc(answer, func(s sample) bool { return s.Metric[label] != "" }) {
				missing = "label " + label
			}
		}
		return missing == ""
	}) {
		p.t.Errorf("%s: no %s: %s", where, missing, expr)
	}
}

// names compares what is named with what is there.
type names struct {
	p      *prometheus
	seen   map[string]map[string]bool // labels by metric
	used   map[string]bool
	labels int
}

func newNames(p *prometheus) *names {
	return &names{p: p, seen: map[string]map[string]bool{}, used: map[string]bool{}}
}

// of are the labels a metric has.
func (n *names) of(metric string) map[string]bool {
	if labels, ok := n.seen[metric]; ok {
		return labels
	}
	labels := map[string]bool{}
	all, err := n.p.series(metric)
	if err != nil {
		n.p.t.Fatal(err)
	}
	for _, one := range all {
		for label := range one {
			labels[label] = true
		}
	}
	n.seen[metric] = labels
	return labels
}

func (n *names) uses(where, expr string) {
	e := parse(expr)
	for _, metric := range e.metrics {
		if metric == "ALERTS" { // is there while an alert is
			continue
		}
		n.used[family(metric)] = true
		if labels := n.of(metric); len(labels) == 0 {
			n.p.t.Errorf("%s: there is no %s", where, metric)
		}
		for _, label := range e.selected[metric] {
			if n.labels++; !n.of(metric)[label] {
				n.p.t.Errorf("%s: %s has no label %s", where, metric, label)
			}
		}
	}
	n.shows(where, expr, e.labels)
}

// shows wants labels that one of the metrics of an expression has.
func (n *names) shows(where, expr string, labels []string) {
	for _, label := range labels {
		n.labels++
		if !slices.ContainsFunc(parse(expr).metrics, func(metric string) bool { return n.of(metric)[label] }) {
			n.p.t.Errorf("%s: nothing in %s has the label %s", where, expr, label)
		}
	}
}

// family is the metric that a series of a histogram belongs to.
func family(series string) string {
	for _, end := range []string{"_bucket", "_count", "_sum"} {
		if f, ok := strings.CutSuffix(series, end); ok && strings.HasSuffix(f, "_seconds") {
			return f
		}
	}
	return series
}

var (
	documented = regexp.MustCompile(`\bwhippet_[a-z_]+[a-z]\b-?`)
	ours       = regexp.MustCompile(`^(whippet_|http_requests_total$|(streams|topics|partitions|segments|messages|users|clients)$)`)
)

// documents wants every metric that a page names, and returns how many pages name any.
func (n *names) documents(t *testing.T) (count int) {
	t.Helper()
	there := n.families()
	for _, pattern := range []string{"../../README.md", "../../deploy/docs/*.md", "../../deploy/docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := documented.FindAllString(string(text), -1)
			found = slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "-") }) // a container's
			for _, metric := range found {
				if !there[family(metric)] && metric != "whippet_topic" {
					t.Errorf("%s names %s, which is not there", file, metric)
				}
			}
			if len(found) > 0 {
				count++
			}
		}
	}
	return count
}

// families are the metrics of our own that were scraped.
func (n *names) families() map[string]bool {
	var all []string
	if err := n.p.get("/api/v1/label/__name__/values", nil, &all); err != nil {
		n.p.t.Fatal(err)
	}
	found := map[string]bool{}
	for _, series := range all {
		if ours.MatchString(series) {
			found[family(series)] = true
		}
	}
	return found
}

// unused reports what no panel and no rule shows: somebody should see it, or it should not be there.
func (n *names) unused(t *testing.T) {
	t.Helper()
	for _, metric := range slices.Sorted(maps.Keys(n.families())) {
		if !n.used[metric] {
			t.Errorf("no panel and no rule uses %s", metric)
		}
	}
}
