package loop

import (
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Inherit hosts a group that goes on from a state instead of being born empty: m holds everything up to last. If last
// is a genesis (vsr.Genesis) nobody may have acted in the group before, and it begins in view 0; else last is an op
// of the group itself, which others have begun, and this member asks them for the view. The group is hosted at once and
// takes part as soon as a checkpoint keeps its state; until then calls are refused.
//
// A sealed group old whose machine m took its state from ends here in the same turn: whatever checkpoint knows the one
// does not know the other. Called in a turn.
func (e *Engine) Inherit(s Spec, m Machine, last wire.PrepareHeader, old *Group) *Group {
	l := e.Loop
	g := &Group{ID: s.ID, Machine: m, synced: s.Policy.Synced, peers: e.peering(&s), applied: last, unborn: true}
	g.tail.first = last.Op + 1
	if old != nil {
		l.bequeath(old, g)
	}
	l.groups[g.ID] = g
	if g.peers != nil {
		l.missed(g)
	}
	kept := func() {
		if old != nil {
			l.bury(old)
		}
		if !g.gone {
			e.begin(g, &s, last)
		}
	}
	e.Do(func() { e.insist(kept) }) // the caller gives the machine its group first
	return g
}

// begin lets a group that inherited its state take part.
func (e *Engine) begin(g *Group, s *Spec, last wire.PrepareHeader) {
	g.unborn = false
	boot := vsr.Boot{
		State: vsr.Born, Head: last.Op, Commit: last.Op, Tail: []wire.PrepareHeader{last}, TimeFloor: max(s.TimeFloor, last.Timestamp),
	}
	if g.peers == nil {
		g.core = vsr.New(s.group(), vsr.Limits{Pipeline: e.options.Limits.Pipeline}, boot)
	} else {
		if !genesis(&last) {
			boot.State = vsr.Whole // it never acted, but others did
			g.peers.birth, g.peers.epoch = true, e.options.Evidence.Epoch
			e.Loop.vote(g)
		}
		e.join(g, s, boot)
	}
	e.Loop.settleSoon(g)
	e.Loop.markDirty(g)
}

// genesis reports whether a log that ends here has nothing behind what it inherited.
func genesis(last *wire.PrepareHeader) bool { return last.Operation == wire.OpSucceedPartition }

// bequeath takes a sealed group out of the loop without a record of its end: until a checkpoint knows its heir a restart
// has to find it.
func (l *Loop) bequeath(old, heir *Group) {
	if old.tail.count > 0 {
		panic("loop: a group with uncommitted ops is inherited")
	}
	old.gone, old.heir = true, heir
	delete(l.groups, old.ID)
	if old.peers != nil {
		l.leave(old)
	}
	old.refuseQueue(link.ReasonViewChange)
}

// bury records the end of a group that has an heir.
func (l *Loop) bury(old *Group) {
	l.record(old, journal.Record{Kind: journal.KindGone, Group: old.ID})
	if old.peers != nil {
		l.vote(old)
	}
}

// Forget ends, before Start, a group that a restart found in the log beside the one that inherited its state.
func (e *Engine) Forget(group uint64) error {
	return e.journal.Write(&journal.Round{Sync: true, Reserved: true, Records: []journal.Record{{Kind: journal.KindGone, Group: group}}})
}

// Sync makes everything durable that was written before. done is called in a turn.
func (e *Engine) Sync(done func(error)) { e.Go(e.journal.SyncAll, done) }

// Sealed returns the seal of the group once it is committed. Called in a turn.
func (g *Group) Sealed() (seal wire.LogSeal, ok bool) {
	if g.core == nil {
		return seal, false
	}
	return g.core.Sealed()
}

// Begun reports whether this member takes part, or took part, in the group: what it inherited is durable. Called in a
// turn.
func (g *Group) Begun() bool { return !g.unborn }
