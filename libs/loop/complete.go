package loop

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

var errOverBudget = errors.New("loop: journal is over its budget")

// done takes a round's completion: each group of the round is stepped, then applies what that
// committed.
func (l *Loop) done(d journal.Done) {
	b := l.takeFlight(d)
	for i := range b.marks {
		m := &b.marks[i]
		l.touch(m.group)
		switch {
		case m.group.gone || m.op < m.first:
		case d.Err != nil:
			l.fail(m.group, m.first, d.Err)
		default:
			l.complete(m.group, m.op, d.Synced)
		}
	}
	for _, n := range b.notes {
		l.noted(n, d.Err)
	}
	b.reset()
	l.free = append(l.free, b)
	if len(l.retired)+len(l.shut) > 0 {
		l.passed()
	}
	if len(l.flight) == 0 && l.written == nil && l.durable == nil {
		if len(l.failing)+len(l.owing) > 0 {
			l.restart()
		}
		l.part()
	}
}

// takeFlight finds the completed round and moves the position below which every round is complete.
func (l *Loop) takeFlight(d journal.Done) *batch {
	for i, b := range l.flight {
		if b.round.Seq != d.Seq {
			continue
		}
		l.flight = append(l.flight[:i], l.flight[i+1:]...)
		if d.Err == nil {
			l.newest = max(l.newest, d.LSN)
		}
		switch {
		case len(l.flight) == 0:
			l.reached = l.newest
		case i == 0 && d.Err == nil:
			l.reached = max(l.reached, d.LSN)
		}
		return b
	}
	panic("loop: completion of a round that is not in flight")
}

func (l *Loop) complete(g *Group, op uint64, synced bool) {
	if g.peers != nil {
		l.holds(g, completion{op, synced})
		return
	}
	kind := vsr.InputWritten
	if synced {
		kind = vsr.InputSynced
	}
	l.in = vsr.Input{Kind: kind, Now: l.env.Now(), Op: op}
	l.step(g)
	if l.out.Commit > g.Applied() {
		l.apply(g, l.out.Commit)
	}
}

// part closes removed groups: the journal no longer reads their buffers.
func (l *Loop) part() {
	for i, g := range l.parted {
		g.tail.cut(g.tail.first)
		g.Machine.Close()
		l.parted[i] = nil
	}
	l.parted = l.parted[:0]
}

// apply executes prepares up to the commit point.
func (l *Loop) apply(g *Group, commit uint64) {
	view, now := g.core.View(), uint64(0)
	for g.Applied() < commit {
		e := g.tail.at(g.tail.first)
		g.Machine.Apply(&e.header, e.body(), e.call)
		if c := e.call; c != nil {
			c.Op, c.Commit, c.Time = e.header.Op, e.header.Op, e.header.Timestamp
			l.finished = append(l.finished, finished{c, view})
			if l.Committed != nil {
				now = max(now, e.header.Timestamp, l.env.Now())
				l.Committed(now - e.header.Timestamp)
			}
		}
		g.applied = e.header
		g.tail.pop()
	}
	l.settleSoon(g)
	if g.peers != nil {
		l.tell(g, vsr.Input{Kind: vsr.InputApplied, Op: commit})
		return
	}
	l.in = vsr.Input{Kind: vsr.InputApplied, Now: l.env.Now(), Op: commit}
	l.step(g)
}

// settleSoon has the machine publish what it applied at the end of this turn.
func (l *Loop) settleSoon(g *Group) {
	if !g.settle {
		g.settle = true
		l.settling = append(l.settling, g)
	}
}

// finish publishes what this turn applied, then hands the answered calls back.
func (l *Loop) finish() {
	for i, g := range l.settling {
		g.settle = false
		g.Machine.Settle()
		g.settledReads()
		l.settling[i] = nil
		l.markDirty(g)
	}
	l.settling = l.settling[:0]
	for i := range l.finished {
		f := &l.finished[i]
		f.call.View = f.view
		f.call.Finish()
		*f = finished{}
	}
	l.finished = l.finished[:0]
}

func (l *Loop) touch(g *Group) {
	if !g.touched {
		g.touched = true
		l.touched = append(l.touched, g)
	}
}

// fail remembers the lowest op that the journal does not hold. The journal fails every later round
// until it is resumed, so no record of the group stands behind the hole.
func (l *Loop) fail(g *Group, op uint64, err error) {
	if g.failed == 0 {
		l.failing = append(l.failing, g)
	}
	if g.failed == 0 || op < g.failed {
		g.failed = op
	}
	if errors.Is(err, journal.ErrFailed) {
		l.lost = true
		in := vsr.Input{Kind: vsr.InputWriteFailed, Now: l.env.Now(), Op: op, SyncLost: true}
		if g.peers != nil {
			l.tell(g, in)
		} else {
			l.in = in
			l.step(g)
		}
	}
	if l.Failed != nil {
		l.Failed(err)
	}
}

// restart cuts the failed tails once no round is in flight: waiting calls are refused (nothing of
// them is in the log), those in the queue too, and the groups go on from their last good op. When the
// journal failed for good the outcome is open and the groups stay halted.
func (l *Loop) restart() {
	code := wire.CodeTransientNotAccepted
	if l.lost {
		code = wire.CodeTransientNotCommitted
	}
	for _, g := range l.failing {
		from := g.failed
		g.failed = 0
		if g.gone || from == 0 { // or it was given a newer state meanwhile
			continue
		}
		answer := code
		if g.peers != nil {
			answer = wire.CodeTransientNotCommitted // other members may have it
		}
		for op := max(from, g.tail.first); op < g.tail.next(); op++ {
			if e := g.tail.at(op); e.call != nil {
				e.call.Refuse(answer, link.ReasonDiskFull)
				e.call = nil
			}
		}
		g.refuseQueue(link.ReasonDiskFull)
		if l.lost {
			continue
		}
		if g.peers != nil {
			l.unwritten(g, from)
			continue
		}
		g.tail.cut(from)
		g.Machine.Unstage(from)
		g.core.Rollback(from)
	}
	clear(l.failing)
	l.failing = l.failing[:0]
	if !l.lost {
		l.env.Resume()
		l.repay()
	}
}

// unwritten takes the ops from op on out of the group: the journal does not hold them. Their numbers
// are spent, because other members may have them.
func (l *Loop) unwritten(g *Group, op uint64) {
	l.truncate(g, op)
	g.peers.logged = min(g.peers.logged, op-1)
	l.tell(g, vsr.Input{Kind: vsr.InputWriteFailed, Op: op})
}

// holds takes a completion of a group with peers: the core acknowledges it, and what was committed
// meanwhile can be applied.
func (l *Loop) holds(g *Group, c completion) {
	p := g.peers
	p.held = c.op
	for n := len(p.adopted); n > 0 && p.adopted[n-1].Op <= c.op; n-- {
		p.adopted = p.adopted[:n-1]
	}
	if p.birth {
		p.kept = c
		l.advance(g)
		return
	}
	l.tellHeld(g, c)
}
