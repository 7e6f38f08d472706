package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// begin starts the view as its primary, once every body is held: adopters may then fetch from it.
func (r *Replica) begin(out *Output) {
	if r.status != statusViewChange || !r.election.decided || r.plan.active || r.leader() != r.group.Self || r.logView != r.view {
		return
	}
	if r.tail.head < r.goal {
		r.missing(0, out)
		return
	}
	if r.held < r.tail.head {
		return
	}
	r.state = Whole
	if r.save(out); !r.settled() || !r.saved.Whole {
		return
	}
	r.status = statusNormal
	r.election = election{}
	r.repair = repair{}
	r.rejoin.settle(r.tail.head, true)
	r.timers = [timerCount]Tick{}
	r.resent, r.start, r.lossy = 0, r.tail.head, false
	for op := r.committed + 1; op <= r.tail.head; op++ {
		r.tail.at(op).acks = 1 << r.group.Self
	}
	r.sendStartView(Everyone, wire.U128{}, out)
	if r.known < r.tail.head {
		r.arm(timerPrepare, prepareInterval)
	}
	r.advance(out)
}

// sendStartView announces the log of the view, always with its headers: nobody takes it on trust. It names
// what is held: a member must not be bound to an op that a crash of this one can take from everybody.
func (r *Replica) sendStartView(to uint8, incarnation wire.U128, out *Output) {
	suffix := r.viewSuffix()
	h := wire.StartViewHeader{
		Preamble: r.preamble(r.view), Op: r.held, Commit: min(r.known, r.held), Group: r.group.ID, Incarnation: incarnation,
	}
	h.Size, h.ChecksumBody = suffixSize(suffix)
	h.Put(out.send(to, 0)[:])
	out.Send[len(out.Send)-1].Suffix = suffix
}

// correct tells a member that speaks of an older view of this one, not for each of its frames: with the StartView,
// or as a backup with an acknowledgement, which nobody sends in a view that has not begun. So a primary that was
// replaced learns it from whom it reaches, although it does not reach the one that leads.
func (r *Replica) correct(to uint8, out *Output) {
	if r.rejoin.corrected != 0 && r.now < r.rejoin.corrected+correctInterval {
		return
	}
	switch {
	case r.acting():
		r.rejoin.corrected = r.now
		r.sendStartView(to, wire.U128{}, out)
	case r.held > 0 && r.mayAck():
		r.rejoin.corrected = r.now
		r.vouch(to, r.held, out)
	}
}

// replaced is the proof that a newer view has begun: a primary is none any more.
func (r *Replica) replaced(view uint32, out *Output) {
	if r.acting() && view-r.view <= maxViewJump && r.leads(view) != r.group.Self {
		r.enter(view, out)
	}
}

// startView takes the log of a view that has begun.
func (r *Replica) startView(in *Input, out *Output) {
	var h wire.StartViewHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	p := plan{view: h.View, head: h.Op, commit: h.Commit, headers: in.Suffix}
	switch {
	case in.From != r.leads(h.View):
		out.fault(FaultSender)
	case !follows(in.Suffix, h.Op, h.Size) || len(in.Suffix) < wire.MaxSuffix && p.low() > max(h.Commit, 1):
		out.fault(FaultFrame)
	case h.View < r.view:
	case h.View-r.view > maxViewJump:
		out.fault(FaultFrame)
	case h.View == r.view && r.status == statusNormal:
		r.confirmed(&h, out)
	case h.View == r.view && (r.plan.active || r.election.decided):
	case r.contradicts(&p):
		out.fault(FaultConflict)
	case r.mayJoin(&h):
		p.fresh = r.fresh(&h)
		p.headers = append([]wire.PrepareHeader(nil), in.Suffix...)
		r.leave(h.View, out)
		r.adopt(p, out)
	}
}

// contradicts reports whether the plan lacks something that is committed here.
func (r *Replica) contradicts(p *plan) bool {
	if p.view == r.logView {
		return false
	}
	own, theirs := r.tail.header(r.committed), named(p.headers, r.committed)
	return p.head < r.committed || own != nil && theirs != nil && own.Checksum != theirs.Checksum
}

// confirmed is a StartView of the view this member is in: an answer to a question for news.
func (r *Replica) confirmed(h *wire.StartViewHeader, out *Output) {
	r.news(h.Commit)
	r.acked = h.Commit // who was asked has forgotten the rest
	r.goal = max(r.goal, h.Op)
	if r.fresh(h) {
		r.rejoin.target(h.Op)
	}
	r.learn(out)
	r.missing(0, out)
}

// requestStartView answers as the acting primary. From the leader of the own view it says that the
// leader has lost its role, by a restart or on purpose.
func (r *Replica) requestStartView(in *Input, out *Output) {
	var h wire.RequestStartViewHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	if h.View > r.view && h.View-r.view <= maxViewJump {
		r.rejoin.seen = max(r.rejoin.seen, h.View)
	}
	switch {
	case r.acting() && h.View > r.view:
		r.challenged()
	case r.acting():
		r.question(in.From, h.Incarnation, out)
	case in.From == r.leader() && h.View >= r.view:
		r.rejoin.gone, r.rejoin.released = true, true
		if r.status != statusRecovering {
			r.desert(out)
		}
	}
}

// question is a RequestStartView that waits until the primary holds what it had appended when it came.
type question struct {
	from        uint8
	head        uint64
	incarnation wire.U128
}

// question answers a member that asks for the view. It may have lost what it acknowledged: its
// acknowledgements do not count any more, it repeats what still holds; and the answer names everything
// up to the head, which is only done when it is held here too.
func (r *Replica) question(from uint8, incarnation wire.U128, out *Output) {
	for op := r.known + 1; op <= r.tail.head; op++ {
		r.tail.at(op).acks &^= 1 << from
	}
	if r.held >= r.tail.head {
		r.sendStartView(from, incarnation, out)
		return
	}
	for i := range r.questions {
		if q := &r.questions[i]; q.from == from {
			if q.incarnation != incarnation {
				q.head, q.incarnation = r.tail.head, incarnation
			}
			return
		}
	}
	r.questions = append(r.questions, question{from: from, head: r.tail.head, incarnation: incarnation})
}

// answer takes up the questions that waited for what is held now.
func (r *Replica) answer(out *Output) {
	waiting := r.questions[:0]
	for _, q := range r.questions {
		if q.head > r.held {
			waiting = append(waiting, q)
		} else {
			r.sendStartView(q.from, q.incarnation, out)
		}
	}
	if r.questions = waiting; len(waiting) == 0 {
		r.questions = nil
	}
}
