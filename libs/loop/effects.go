package loop

import (
	"errors"
	"slices"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ErrWait is Machine.Follow's answer to a prepare that can be staged only when what is in flight has
// been applied. It is offered again.
var ErrWait = errors.New("loop: an op in flight has to be applied first")

// tell steps the core of a group with peers and carries out what comes of it.
func (l *Loop) tell(g *Group, in vsr.Input) {
	in.Now, in.Tick, in.Rand = l.env.Now(), l.env.Tick(), l.env.Rand()
	l.in = in
	l.step(g)
	l.carry(g)
}

// carry performs the effects of the last step. Nothing in it steps a core before all of them are taken
// out of l.out: what has to be told to the core follows at the end.
func (l *Loop) carry(g *Group) {
	o, p := &l.out, g.peers
	if o.Fault != vsr.FaultNone {
		l.Counters.Faults[o.Fault].Add(1)
	}
	l.answerRefused(g, o.Refused)
	if o.Truncate != 0 {
		l.truncate(g, o.Truncate)
	}
	if o.Truncate != 0 || len(o.Adopt) > 0 || o.AdoptView != 0 {
		l.adopt(g, o)
	}
	for i := range o.Append {
		l.follow(g, &o.Append[i])
	}
	if o.Vote.Save {
		if p.bound = l.promised(g, &o.Vote); p.bound != 0 {
			p.late = o.Vote
		} else {
			l.cast(g, o.Vote)
		}
	}
	for i := range o.Send {
		l.send(g, &o.Send[i])
	}
	for i := range o.Serve {
		l.serve(g, o.Serve[i])
	}
	for _, b := range o.Drop {
		l.release(b)
	}
	if o.Lost > 0 {
		l.Counters.Lost.Add(o.Lost)
		if l.LostOps != nil {
			l.LostOps(g, o.Lost)
		}
	}
	p.commit = max(p.commit, o.Commit)
	l.schedule(g, o.Wake)
	role, transfer := o.Role, o.Transfer
	if role.Changed && role.Primary {
		p.inherited = g.core.Head().Op
	}
	l.observe(g)
	if role.Changed {
		l.role(g, role)
	}
	if transfer.Wanted {
		l.transfer(g, transfer)
	}
	l.advance(g)
	if len(g.queue) > 0 {
		l.touch(g) // there may be room
	}
}

// observe publishes what the core is now.
func (l *Loop) observe(g *Group) {
	if now := g.core.ViewChanging(); now != g.peers.changing {
		g.peers.changing = now
		if now {
			l.changing++
		} else {
			l.changing--
		}
	}
	g.publish()
	if !g.takesPart() {
		l.missed(g)
	}
}

func (l *Loop) role(g *Group, r vsr.Role) {
	if !r.Primary {
		l.refuseWaiting(g)
	}
	g.Machine.Role(r.Primary, r.View)
	l.touch(g)
}

// refuseWaiting answers the calls that wait for the pipeline of a group that is not led here any more.
func (l *Loop) refuseWaiting(g *Group) {
	for _, q := range g.queue {
		g.hint(q.call)
	}
	g.refuseQueue(link.ReasonNotPrimary)
}

// hint says where the group's primary may be.
func (g *Group) hint(c *link.Call) {
	c.View, c.Primary = g.core.View(), g.core.Leader()
}

// answerRefused answers the requests behind ops that will not be executed under this primary.
func (l *Loop) answerRefused(g *Group, refused []vsr.Refusal) {
	for i := range refused {
		r := &refused[i]
		if r.Op < g.tail.first || r.Op >= g.tail.next() {
			continue
		}
		if e := g.tail.at(r.Op); e.call != nil {
			g.hint(e.call)
			e.call.Refuse(r.Code, reason(r.Why))
			e.call = nil
		}
	}
}

// advance applies what is committed and complete here, then stages what waited for that. An op whose
// own round is not complete waits: the journal still reads its bytes.
func (l *Loop) advance(g *Group) {
	p := g.peers
	if upTo := min(p.commit, p.held); g.Applied() < upTo {
		l.apply(g, upTo)
	}
	for len(p.parked) > 0 && p.spoilt == 0 && l.place(g, &p.parked[0].header, p.parked[0].body) {
		p.parked = p.parked[:copy(p.parked, p.parked[1:])]
	}
	if len(p.parked) == 0 {
		p.parked = nil
	}
	if op := p.spoilt; op != 0 {
		l.spoil(g, op)
	}
}

// spoil tells the core that op and what follows it can not be in this log: the body does not continue
// what the machine has.
func (l *Loop) spoil(g *Group, op uint64) {
	p := g.peers
	for _, w := range p.parked {
		w.body.release()
	}
	p.parked, p.spoilt = nil, 0
	l.Counters.Refused.Add(1)
	l.tell(g, vsr.Input{Kind: vsr.InputWriteFailed, Op: op})
}

// follow takes a prepare of another member into the log.
func (l *Loop) follow(g *Group, a *vsr.Append) {
	p, b := g.peers, l.takeBody(a.Body)
	switch {
	case p.spoilt != 0:
		b.release()
	case len(p.parked) > 0 || !l.place(g, &a.Header, b):
		p.parked = append(p.parked, parked{a.Header, b})
	}
}

// place stages a prepare that came with its body. False: it has to wait.
func (l *Loop) place(g *Group, h *wire.PrepareHeader, b body) bool {
	p := g.peers
	if p.shut != 0 || g.failed != 0 {
		return false
	}
	if h.Op != g.tail.next() {
		panic("loop: the core appends out of order")
	}
	staged, err := g.Machine.Follow(h, b.bytes[wire.HeaderSize:])
	if errors.Is(err, ErrWait) && g.Applied() < g.tail.next()-1 {
		return false
	}
	if err != nil {
		p.spoilt = h.Op
		b.release()
		return true
	}
	h.Put(b.bytes)
	l.enter(g, h, b, nil, staged).bulk = true
	return true
}

// enter puts a staged prepare into the tail and into this turn's round, which it returns.
func (l *Loop) enter(g *Group, h *wire.PrepareHeader, b body, c *link.Call, staged Staged) *batch {
	l.heat(g)
	g.tail.push(entry{header: *h, frame: b.frame, bytes: b.bytes, call: c, floor: l.reached})
	if b.frame != nil {
		b.frame.Freeze()
	}
	rec := journal.Record{Kind: journal.KindPrepare, Group: g.ID, Op: h.Op, Frame: b.bytes, At: staged.At}
	if staged.At.Len > 0 {
		rec.Frame = b.bytes[:wire.HeaderSize]
	}
	synced := g.synced
	if p := g.peers; p != nil {
		if p.stale != 0 {
			l.writeAdoption(g, &adoption{})
		}
		p.logged = h.Op
		synced = synced || p.forced == l.seq+1 && l.durable != nil
	}
	round := l.building(synced)
	round.add(g, h.Op, rec, staged.Large)
	return round
}

// truncate cuts the log of the group: nothing of it from op on is there any more, in memory or in a
// round whose completion the core waits for.
func (l *Loop) truncate(g *Group, op uint64) {
	p := g.peers
	if op <= g.Applied() {
		if p.installing {
			return
		}
		panic("loop: an applied op is truncated")
	}
	for n := len(p.parked); n > 0 && p.parked[n-1].header.Op >= op; n-- {
		p.parked[n-1].body.release()
		p.parked = p.parked[:n-1]
	}
	if l.clip(g, op) {
		p.shut = l.seq + 2 // rounds being built get the next two numbers
		l.shut = append(l.shut, g)
	}
	for ; g.tail.next() > max(op, g.tail.first); g.tail.count-- {
		e := g.tail.at(g.tail.next() - 1)
		if e.call != nil {
			g.hint(e.call)
			e.call.Refuse(wire.CodeTransientNotCommitted, link.ReasonViewChange)
		}
		l.retire(e)
	}
	g.Machine.Unstage(op)
	p.held = min(p.held, op-1)
	p.kept.op = min(p.kept.op, op-1)
	for len(p.adopted) > 0 && p.adopted[0].Op >= op {
		p.adopted = p.adopted[1:]
	}
}

// clip takes the group's ops from op on out of every round that is not complete, and reports whether
// there were any.
func (l *Loop) clip(g *Group, op uint64) (any bool) {
	for _, b := range append([]*batch{l.written, l.durable}, l.flight...) {
		if b == nil {
			continue
		}
		for i := range b.marks {
			if m := &b.marks[i]; m.group == g && m.op >= op {
				m.op, any = op-1, true
			}
		}
	}
	return any
}

// retired is a frame a round that is not complete still reads.
type retired struct {
	entry entry
	seq   uint64
}

// retire drops a tail entry once no round reads it.
func (l *Loop) retire(e *entry) {
	e.call = nil
	if e.frame != nil && (len(l.flight) > 0 || l.written != nil || l.durable != nil) {
		l.retired = append(l.retired, retired{*e, l.seq + 2})
		*e = entry{}
		return
	}
	e.drop()
}

// passed sees to what waited for the rounds below the oldest open one.
func (l *Loop) passed() {
	open := ^uint64(0)
	if len(l.flight) > 0 {
		open = l.flight[0].round.Seq
	}
	n := 0
	for n < len(l.retired) && l.retired[n].seq < open {
		l.retired[n].entry.drop()
		n++
	}
	l.retired = slices.Delete(l.retired, 0, n)
	for n = 0; n < len(l.shut) && l.shut[n].peers.shut < open; n++ {
		g := l.shut[n]
		g.peers.shut = 0
		if !g.gone {
			l.advance(g)
		}
	}
	l.shut = slices.Delete(l.shut, 0, n)
}
