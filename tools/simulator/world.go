package simulator

import (
	"fmt"
	"io"

	"github.com/whippet-mq/whippet/libs/wire"
)

// World is one run: everything in it, and its time.
type World struct {
	config   Config
	now      uint64
	events   schedule
	network  *network
	nodes    []*node
	clients  []*client
	history  []*history
	trace    trace
	counts   map[string]uint64
	steps    uint64
	frames   uint64
	values   uint64
	answered uint64
	calm     bool // faults have ended
	slots    []register
	moves    *stream
	seals    map[identity][]int // targets, by the identity of the seal

	leaderTime, settleTime uint64 // µs that a healed cluster took
}

// doorCount is the front-doors that clients are spread over.
const doorCount = 2

// maxSteps ends a run that turns in circles.
const maxSteps = 3_000_000

// Violation is a broken rule. It ends the run.
type Violation struct {
	Rule   string
	Detail string
	At     uint64 // µs of virtual time
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s at %.3f ms: %s", v.Rule, float64(v.At)/millisecond, v.Detail)
}

func newWorld(c Config, out io.Writer) *World {
	w := &World{config: c, counts: map[string]uint64{}, moves: newStream(c.Seed, "moves"), seals: map[identity][]int{}}
	w.registers()
	w.trace = trace{hash: c.Seed, out: out, now: &w.now}
	w.network = newNetwork(w)
	for group := range c.Groups {
		w.history = append(w.history, newHistory(w, group))
	}
	clocks := newStream(c.Seed, "clocks")
	for id := range c.Nodes {
		n := &node{w: w, id: id, members: make([]*member, len(c.Groups)), gone: make([]bool, len(c.Groups)), left: make([]bool, len(c.Groups)), begun: make([]bool, len(c.Groups)), copied: make([]*copyOf, len(c.Groups)), random: newStream(c.Seed, "node "+string(rune('a'+id)))}
		n.clock = clock{w: w, rate: 1 + c.Rates[ClockSkew]*(clocks.fraction()-0.5), start: clocks.between(1, 1000*second), shift: clocks.below(10 * second)}
		n.disk = newDisk(n)
		w.nodes = append(w.nodes, n)
		w.after(clocks.below(50*millisecond), n.boot)
	}
	doors := [doorCount]door{}
	for i := range doors {
		doors[i] = door{floors: make([]wire.Floor, len(c.Groups)), shown: make([]uint64, len(c.Groups))}
	}
	for i := range c.Clients {
		k := &client{w: w, random: newStream(c.Seed, "client "+string(rune('a'+i))), target: make([]int, len(c.Groups)), door: &doors[i%doorCount]}
		k.id.Lo, k.id.Hi = uint64(i+1), 1
		w.clients = append(w.clients, k)
		w.after(k.random.about(c.Think), k.next)
	}
	return w
}

func (w *World) at(when uint64, run func())     { w.events.add(max(when, w.now), run) }
func (w *World) after(delay uint64, run func()) { w.events.add(w.now+delay, run) }

func (w *World) count(what string) { w.counts[what]++ }

// fail ends the run.
func (w *World) fail(rule, format string, args ...any) {
	panic(&Violation{Rule: rule, Detail: fmt.Sprintf(format, args...), At: w.now})
}

// memberOf is the member index of a node in a group, -1 when it is none.
func (w *World) memberOf(group, node int) int {
	for i, id := range w.config.Groups[group].Members {
		if id == node {
			return i
		}
	}
	return -1
}

// runUntil runs all events up to a time, or until done says so.
func (w *World) runUntil(end uint64, done func() bool) bool {
	for {
		if len(w.events.heap) == 0 || w.events.heap[0].at > end {
			w.now = max(w.now, end)
			return done != nil && done()
		}
		e, _ := w.events.next()
		w.now = e.at
		e.run()
		if w.steps > maxSteps {
			w.fail("L8", "%d steps in one run: something turns in circles", w.steps)
		}
		if done != nil && done() {
			return true
		}
	}
}

// lookForLoss has every history look for ops that nobody holds any more.
func (w *World) lookForLoss() {
	for _, h := range w.history {
		h.lookForLoss()
	}
}
