package compose

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/cluster/lanes"
)

var (
	everything = flag.Bool("all", false, "strike every kind of container in every way, and upgrade all, not a few; try every variant")
	window     = flag.Duration("window", 700*time.Millisecond, "TestUnderLoad: look so long before, during and after each blow")
	onlyBlows  = flag.String("blow", "", "TestUnderLoad: only blows with this in their name")
)

// Gaps beyond this fail the test. The table has the figures: what is wanted is less than a second, on a machine
// that has nothing else to do.
const gapLimit = 5 * time.Second

// victims are the kinds of containers, and how one of them is found.
var victims = []struct {
	name string
	find func(*project) *container
	door int // index + 1 of the front-door it is
}{
	{"partition replica", func(p *project) *container { return p.of("partition-replica")[0] }, 0},
	{"metadata primary", func(p *project) *container { c, _ := p.metadataPrimary(); return c }, 0},
	{"metadata backup", func(p *project) *container { _, c := p.metadataPrimary(); return c[0] }, 0},
	{"front-door", func(p *project) *container { return p.of("front-door-0")[0] }, 1},
	{"NATS", func(p *project) *container { return p.of("nats")[0] }, 0},
}

// ways are what happens to a container, and how it is well again.
var ways = []struct {
	name     string
	do, undo func(*container)
}{
	{"killed", func(c *container) { c.do("kill") }, func(c *container) { c.do("start") }},
	{"paused", func(c *container) { c.do("pause") }, func(c *container) { c.do("unpause") }},
	{"cut off", func(c *container) { c.cut("cluster") }, (*container).join},
}

// few are the blows of a short run.
var few = []string{"partition replica killed", "metadata primary paused", "partition replica cut off"}

// TestUnderLoad strikes containers under load, then replaces them by others of another build: nothing acknowledged
// is lost, nobody waits long, and of the upgrade no client sees an error.
func TestUnderLoad(t *testing.T) {
	p := newProject(t, "")
	p.up(oldVersion)
	images(t, newVersion)
	l := p.load()
	l.blows()
	l.upgradeAll()
	l.check()
}

func (l *loaded) blows() {
	l.t.Helper()
	l.t.Logf("%-45s | before: n, longest gap, p50, p99 (ms) | during | after", "")
	for _, way := range ways {
		for _, v := range victims {
			if name := v.name + " " + way.name; wanted(name) {
				l.strike(name, v.find(l.project), v.door, way.do, way.undo)
			}
		}
	}
}

func wanted(name string) bool {
	if *onlyBlows != "" || *everything {
		return strings.Contains(name, *onlyBlows)
	}
	return slices.Contains(few, name)
}

// strike has steady load see one blow.
func (l *loaded) strike(name string, c *container, door int, do, undo func(*container)) {
	l.t.Helper()
	steady := l.lanes()
	steady.Start(l.t.Context())
	before := time.Now()
	elapse(*window)
	during := time.Now()
	if door > 0 { // as a load balancer would notice
		steady.Shut(door - 1)
		l.shut.Store(int64(door))
	}
	do(c)
	elapse(2 * *window)
	undo(c)
	c.awaitHealthy()
	after := time.Now()
	elapse(*window)
	end := time.Now()
	steady.Still()
	l.shut.Store(0)
	for _, kind := range steady.Kinds() {
		first, then, last := steady.Look(kind, lanes.Span{From: before, To: during}), steady.Look(kind, lanes.Span{From: during, To: after}), steady.Look(kind, lanes.Span{From: after, To: end})
		l.t.Log(lanes.Row(name, kind, first, then, last))
		if longest := max(then.Gap, last.Gap); longest > gapLimit {
			l.t.Errorf("%s: %s: no answer for %v", name, kind, longest)
		}
		if last.Errors > 0 {
			l.t.Errorf("%s: %s: %d errors, the last: %s", name, kind, last.Errors, last.Word)
		}
	}
}
