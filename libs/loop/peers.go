package loop

import (
	"slices"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Frame is a frame for another node. Body follows the header on the wire. Who queues it retains Hold
// until it is written; without Hold the body is memory that nobody changes or reuses.
type Frame struct {
	Group  uint64
	Header *wire.Header // read during the call
	Body   []byte
	Hold   *buffer.Frame
}

// Peers is the way to the other nodes.
type Peers interface {
	// Send queues a frame and never blocks. False: there is no room, or no connection; the frame is lost.
	Send(node uint8, f Frame) bool
}

// peering is what a group of several members has besides a group of one.
type peering struct {
	cluster wire.U128
	nodes   []uint8 // node id of each member
	self    uint8
	leased  bool
	status  atomic.Uint64 // see publish

	inherited uint64 // head of the log when this process became primary
	settled   uint64 // op that readers see

	// The log: of the ops the core has appended, those up to logged are in rounds, those up to held in
	// complete ones. parked ones wait to be staged.
	commit uint64 // commit point of the core; what of it is above held waits
	held   uint64
	logged uint64
	parked []parked
	spoilt uint64 // first op the machine refused to stage, until the core knows
	shut   uint64 // rounds up to this one must be complete before anything is staged again; 0 = none

	// installing: the group's state came from another member, and the core knows it once a checkpoint
	// keeps it. What it knows as its log until then is gone.
	installing bool
	stale      uint64 // entries from here on are in the journal and not in the log any more; 0 = none

	adopting  *adoption // the last one, until it is durable
	forced    uint64    // number of the round its records are in
	owed      uint64    // a truncate that a failed round held; 0 = none
	failed    bool      // in Loop.owing
	adopted   []wire.PrepareHeader
	adoptView uint32

	vote    vsr.Vote // the one asked for last
	epoch   uint64   // suspect epoch in which the log is known to be whole
	fenced  bool     // the journal knows that it is not, whatever the epoch
	birth   bool     // the first vote is not saved: nothing is acknowledged
	kept    completion
	guarded bool     // no vote is saved: see fence
	voting  bool     // in Loop.votes
	asked   bool     // the core waits for the vote in Loop.votes
	late    vsr.Vote // one that waits until the promise to the primary it leaves is over
	bound   vsr.Tick // when that is, 0: there is none
	voteSeq uint64   // batch of votes the core waits for

	known    uint64 // Loop.alive.version the core has heard of
	dead     uint32 // members the core believes dead
	isolated bool
	grief    grief
	changing bool // counted in Loop.changing
	behind   bool // in Loop.behind

	wake vsr.Tick
	slot int // position in Loop.timers, plus one
}

// completion is what the core is not told before the first vote is saved.
type completion struct {
	op     uint64
	synced bool
}

// parked is a prepare the core has taken into the log that can not be staged yet.
type parked struct {
	header wire.PrepareHeader
	body   body
}

// member is the index of a node in the group.
func (p *peering) member(node uint8) (uint8, bool) {
	i := slices.Index(p.nodes, node)
	return uint8(i), i >= 0
}

// Positions in the published status.
const (
	statusLeader  = 32
	statusPrimary = 1 << 40
	statusReads   = 1 << 41
	statusCurrent = 1 << 42
	statusFollows = 1 << 43
)

// publish makes view and role visible to other goroutines.
func (g *Group) publish() {
	p := g.peers
	v := uint64(g.core.View()) | uint64(g.core.Leader())<<statusLeader
	if g.core.Primary() {
		v |= statusPrimary
		if p.settled >= p.inherited && !g.core.Doubted() { // what earlier primaries acknowledged is not committed before
			v |= statusReads
		}
	}
	if g.core.Current() {
		v |= statusCurrent
	}
	if g.core.Follows() {
		v |= statusFollows
	}
	if p.status.Load() != v {
		p.status.Store(v)
	}
}

// settledReads notes that readers see everything applied.
func (g *Group) settledReads() {
	if g.peers != nil && g.peers.settled < g.Applied() {
		g.peers.settled = g.Applied()
		g.publish()
	}
}

// View is the group's view, as published by its loop. Any goroutine.
func (g *Group) View() uint32 {
	if g.peers == nil {
		return 0
	}
	return uint32(g.peers.status.Load())
}

// Leader is the node that leads the group's view, whether it is up or not. Any goroutine; ok is false
// for a group of one.
func (g *Group) Leader() (node uint8, ok bool) {
	p := g.peers
	if p == nil {
		return 0, false
	}
	return p.nodes[uint8(p.status.Load()>>statusLeader)], true
}

// LeaderIndex is the member index of the node that leads the group's view. Any goroutine.
func (g *Group) LeaderIndex() uint8 {
	if g.peers == nil {
		return 0
	}
	return uint8(g.peers.status.Load() >> statusLeader)
}

// Primary reports whether this process is the acting primary. Any goroutine.
func (g *Group) Primary() bool {
	return g.peers == nil || g.peers.status.Load()&statusPrimary != 0
}

// Nodes are the node ids of the members, by member index; nil for a group of one. Not to be changed.
func (g *Group) Nodes() []uint8 {
	if g.peers == nil {
		return nil
	}
	return g.peers.nodes
}

// muted reports whether the group takes no part: its state can not be read, or is not durable yet.
func (g *Group) muted() bool { return g.damage.image != nil || g.unborn }
