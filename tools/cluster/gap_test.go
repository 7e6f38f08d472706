package cluster

import (
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/cluster/lanes"
	"github.com/whippet-mq/whippet/tools/local"
)

var (
	gapWindow = flag.Duration("gap", 0, "TestGap: look so long before, during and after each blow, and strike all of them; 0 is a short run")
	gapOnly   = flag.String("blow", "", "TestGap: only blows with this in their name")
)

// What is wanted is less than a second without an answer, and requests that take no longer when a backup is away,
// on a machine that has nothing else to do. How far this one is from that the pings say, which need nothing of what
// is struck: their longest gap counts gapFactor times on top.
const (
	gapLimit   = 1500 * time.Millisecond
	gapFactor  = 8
	awayLimit  = 25 * time.Millisecond // median, on top of twice what it was before
	awayFactor = 2
)

// blow is something that happens to a process under steady load.
type blow struct {
	name   string
	victim func(*gapWorld) local.Member
	stops  bool // it is stopped and goes on, instead of being killed and started again
	always bool // in the short run too
	// control: nothing happens. What the table shows then is the machine's doing.
	control bool
}

var blows = map[string][]blow{
	"services": {
		{"nothing", func(w *gapWorld) local.Member { return w.find(local.Partition, 0) }, false, false, true},
		{"partition replica killed", func(w *gapWorld) local.Member { return w.find(local.Partition, 0) }, false, true, false},
		{"metadata primary killed", func(w *gapWorld) local.Member { return metadataPrimary(w.t, w.cluster) }, false, true, false},
		{"metadata backup killed", (*gapWorld).metadataBackup, false, false, false},
		{"front-door killed", func(w *gapWorld) local.Member { return w.find(local.FrontDoor, 0) }, false, true, false},
		{"partition replica stopped", func(w *gapWorld) local.Member { return w.find(local.Partition, 1) }, true, true, false},
		{"metadata primary stopped", func(w *gapWorld) local.Member { return metadataPrimary(w.t, w.cluster) }, true, false, false},
		{"metadata backup stopped", (*gapWorld).metadataBackup, true, false, false},
	},
	"all-role": {
		{"nothing", (*gapWorld).metadataBackup, false, false, true},
		{"primary killed", func(w *gapWorld) local.Member { return metadataPrimary(w.t, w.cluster) }, false, true, false},
		{"backup killed", (*gapWorld).metadataBackup, false, false, false},
		{"backup stopped", (*gapWorld).metadataBackup, true, false, false},
		{"primary stopped", func(w *gapWorld) local.Member { return metadataPrimary(w.t, w.cluster) }, true, false, false},
	},
}

// TestGap strikes processes of a cluster while clients send, poll and change metadata at a fixed rate, and
// shows how long each kind of request had to wait.
func TestGap(t *testing.T) {
	forms(t, func(t *testing.T, p local.Plan) {
		form := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		w := &gapWorld{t: t, cluster: start(t, p), window: *gapWindow}
		if w.window == 0 {
			w.window = 500 * time.Millisecond
		}
		w.admin = connect(t, w.cluster.Process(doors(w.cluster)[1]).TCP)
		t.Logf("%-45s | before: n, longest gap, p50, p99 (ms) | during | after | p99 during / before", "")
		for _, b := range blows[form] {
			if strings.Contains(b.name, *gapOnly) && (b.always || *gapWindow > 0) {
				w.strike(b)
			}
		}
	})
}

// gapWorld is a cluster that is struck again and again.
type gapWorld struct {
	t       *testing.T
	cluster *local.Cluster
	window  time.Duration
	admin   *client.Client
	streams int
}

func (w *gapWorld) find(role local.Role, id int) local.Member {
	m, err := w.cluster.Find(role, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *gapWorld) metadataBackup() local.Member {
	leader := metadataPrimary(w.t, w.cluster)
	for _, m := range keepers(w.cluster) {
		if m.ID != leader.ID {
			return m
		}
	}
	w.t.Fatal("no backup")
	return local.Member{}
}

// strike has steady load see one blow: the same load before it, while the process is away, and from its return on.
func (w *gapWorld) strike(b blow) {
	victim := b.victim(w)
	l := w.load(victim)
	l.Start(w.t.Context())
	elapse(w.window / 2) // connections, caches
	before := time.Now()
	elapse(w.window)
	during := time.Now()
	back := w.hit(b, l, victim)
	elapse(2 * w.window)
	after := time.Now()
	back()
	elapse(w.window)
	end := time.Now()
	l.Still()
	pings := max(l.Look("ping", lanes.Span{From: during, To: after}).Gap, l.Look("ping", lanes.Span{From: after, To: end}).Gap)
	for _, kind := range l.Kinds() {
		first, then, last := l.Look(kind, lanes.Span{From: before, To: during}), l.Look(kind, lanes.Span{From: during, To: after}), l.Look(kind, lanes.Span{From: after, To: end})
		w.t.Logf("%s | %.1f", lanes.Row(b.name, kind, first, then, last), then.P99.Seconds()/max(first.P99.Seconds(), 1e-6))
		if longest := max(then.Gap, last.Gap); longest > gapLimit+gapFactor*pings {
			w.t.Errorf("%s: %s: no answer for %v, to a ping for %v", b.name, kind, longest, pings)
		}
		if backup := kind == "send"; backup && then.P50 > awayFactor*first.P50+awayLimit+pings {
			w.t.Errorf("%s: %s: the median goes from %v to %v", b.name, kind, first.P50, then.P50)
		}
		if then.Errors > 0 {
			w.t.Errorf("%s: %s: %d errors, the last: %s", b.name, kind, then.Errors, then.Word)
		}
		if *gapWindow > 0 && (kind == "send" || kind == "poll") && then.P99 > 2*first.P99+noise {
			w.t.Errorf("%s: %s: p99 went from %v to %v although somebody else leads", b.name, kind, first.P99, then.P99)
		}
	}
}

// noise is how much a p99 may differ in two windows in which nothing happens.
const noise = 3 * time.Millisecond

// hit does what a blow does and returns how it ends.
func (w *gapWorld) hit(b blow, l *lanes.Lanes, victim local.Member) (back func()) {
	switch {
	case b.control:
		return func() {}
	case b.stops:
		w.signal(victim, syscall.SIGSTOP)
		return func() { w.signal(victim, syscall.SIGCONT) }
	}
	w.shut(l, victim)
	if err := w.cluster.Kill(victim); err != nil {
		w.t.Fatal(err)
	}
	return func() { again(w.t, w.cluster, victim) }
}

func (w *gapWorld) signal(m local.Member, s syscall.Signal) {
	if err := w.cluster.Signal(m, s); err != nil {
		w.t.Fatal(err)
	}
}

// shut tells the lanes that a door is about to go.
func (w *gapWorld) shut(l *lanes.Lanes, victim local.Member) {
	for i, d := range doors(w.cluster) {
		if d.Role == victim.Role && d.ID == victim.ID {
			l.Shut(i)
		}
	}
}

// load is one lane of each kind through two doors, for topics the victim leads and for others.
func (w *gapWorld) load(victim local.Member) *lanes.Lanes {
	l := through(w.cluster)
	w.streams++
	stream := fmt.Sprintf("gap-%d", w.streams)
	if _, err := w.admin.CreateStream(stream); err != nil {
		w.t.Fatal(err)
	}
	topics, rate := w.topics(stream, victim), 25
	if *gapWindow > 0 {
		rate = 100 // enough for a p99
	}
	for i, home := range doors(w.cluster)[:2] {
		suffix := ""
		if home.Role == victim.Role && home.ID == victim.ID {
			suffix = " (its door)"
		}
		for kind, topic := range topics {
			l.Add("send"+kind+suffix, i, rate, lanes.Sends(stream, topic))
			l.Add("poll"+kind+suffix, i, rate, lanes.Polls(stream, topic))
		}
		l.Add("metadata"+suffix, i, 10, lanes.Changes(fmt.Sprintf("%s-%d", stream, i)))
		l.Add("ping"+suffix, i, rate, lanes.Pings)
	}
	return l
}

// topics makes a topic that the victim leads and one that it does not, where there are both.
func (w *gapWorld) topics(stream string, victim local.Member) map[string]string {
	found := map[string]string{}
	for i := 0; len(found) < 2 && i < 4; i++ {
		led := w.led()
		name := fmt.Sprintf("t%d", i)
		q := wire.CreateTopicRequest{Stream: wire.NamedID(stream), PartitionsCount: 1, Name: []byte(name)}
		if _, err := w.admin.CreateTopic(q); err != nil {
			w.t.Fatal(err)
		}
		if err := lanes.Sends(stream, name)(w.admin); err != nil {
			w.t.Fatal(err)
		}
		leader := w.leader(led)
		if kind := ", its"; leader == victim.ID && found[kind] == "" && victim.Role != local.Metadata {
			found[kind] = name
		} else if leader != victim.ID || victim.Role == local.Metadata {
			found[""] = name
		}
	}
	return found
}

// led is how many partitions each host leads.
func (w *gapWorld) led() map[int]float64 {
	all := map[int]float64{}
	for _, m := range holders(w.cluster) {
		all[m.ID] = metric(w.cluster, m, "whippet_partitions_led")
	}
	return all
}

// leader waits until one host leads more partitions than before.
func (w *gapWorld) leader(before map[int]float64) int {
	deadline := time.Now().Add(readyTime)
	for time.Now().Before(deadline) {
		for id, n := range w.led() {
			if n > before[id] {
				return id
			}
		}
	}
	w.t.Fatal("nobody leads a partition that takes sends")
	return 0
}
