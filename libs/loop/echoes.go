package loop

import (
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/vsr"
)

// Times of the promises between nodes, in microseconds (design-arguments 14). A primary stops before its members may
// follow another one.
const (
	// echoLimit is how old the newest answered Ping of a member may be for it to count as reached.
	echoLimit = 400_000
	// quiet is how long after a Ping of its primary a member leaves it for no other one.
	quiet = 500_000
)

// Echoes is what a node knows of hearing and being heard, for each other node. One per process; any goroutine.
type Echoes struct {
	at      [256]atomic.Uint64          // send time of the newest Ping it answered
	pledged [256]atomic.Pointer[pledge] // the newest one it answered as a member of the metadata group
	heard   [256]atomic.Uint64          // when its newest Ping came
	gaps    [256]atomic.Uint32          // how often it did not answer for so long that others may have been followed
	gapped  atomic.Uint32               // sum of gaps
}

// pledge is an answer to a Ping sent at: until quiet is over the node follows nobody but the primary of view.
type pledge struct {
	at   vsr.Tick
	view uint32
}

// Set notes that a node answered a Ping sent at.
func (e *Echoes) Set(node uint8, at vsr.Tick) {
	old, v := e.at[node].Load(), uint64(at)
	if v <= old {
		return
	}
	e.at[node].Store(v)
	if old > 0 && v > old+echoLimit {
		e.gaps[node].Add(1)
		e.gapped.Add(1)
	}
}

// Pledge notes that a node answered a Ping sent at as a member of the metadata group that takes part in view.
func (e *Echoes) Pledge(node uint8, at vsr.Tick, view uint32) {
	if old := e.pledged[node].Load(); old == nil || old.at < at {
		e.pledged[node].Store(&pledge{at, view})
	}
}

// Hear notes that a Ping of a node came. It is called before the view is looked at that the answer names: who is
// about to leave that view sees the one or is seen in the other.
func (e *Echoes) Hear(node uint8, now vsr.Tick) { e.heard[node].Store(uint64(now)) }

// bound is until when a member follows nobody but the primary at node, 0 if it never heard of it.
func (e *Echoes) bound(node uint8) vsr.Tick {
	if e == nil {
		return 0
	}
	if at := e.heard[node].Load(); at > 0 {
		return vsr.Tick(at + quiet)
	}
	return 0
}

// reached reports whether enough members answer for one of them to lead the group.
func (e *Echoes) reached(p *peering, now vsr.Tick) bool {
	return e == nil || p.enough(func(node uint8) bool { return e.Answers(node, now) })
}

// leased reports whether enough members follow nobody but the primary of view.
func (e *Echoes) leased(p *peering, view uint32, now vsr.Tick) bool {
	return e == nil || p.enough(func(node uint8) bool {
		a := e.pledged[node].Load()
		return a != nil && a.view == view && a.at+echoLimit >= now
	})
}

func (e *Echoes) Answers(node uint8, now vsr.Tick) bool {
	at := e.at[node].Load()
	return at > 0 && at+echoLimit >= uint64(now)
}

// enough reports whether with this member those for which it holds are as many as commit an op.
func (p *peering) enough(holds func(node uint8) bool) bool {
	n := 1
	for i, node := range p.nodes {
		if uint8(i) != p.self && holds(node) {
			n++
		}
	}
	return n >= vsr.QuorumsOf(len(p.nodes)).Replication
}

// answering are the nodes that answered a Ping lately.
func (e *Echoes) answering(now vsr.Tick) (nodes [4]uint64) {
	if e == nil {
		return nodes
	}
	for i := range e.at {
		if e.Answers(uint8(i), now) {
			nodes[i/64] |= 1 << (i % 64)
		}
	}
	return nodes
}
