package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// completed takes a completion of the journal. counts says whether it is the one the policy waits for.
func (r *Replica) completed(op uint64, counts bool, out *Output) {
	if op > r.tail.head {
		out.Fault = FaultCompletion
		return
	}
	if !counts || op <= r.held || r.halted {
		return
	}
	for next := max(r.held, r.committed) + 1; next <= op; next++ {
		r.tail.at(next).acks |= 1 << r.group.Self
	}
	r.held = op
	if len(r.names) > 0 && r.names[0].Op <= op {
		r.names = nil
	}
	switch {
	case r.plan.active:
		r.pursue(out)
	case r.status == statusViewChange:
		r.begin(out)
	case r.status == statusNormal && r.leader() == r.group.Self:
		r.advance(out)
		if len(r.questions) > 0 && r.acting() {
			r.answer(out)
		}
	case r.status == statusNormal:
		r.learn(out)
		r.missing(repairDelay, out)
	}
}

// acknowledge tells the primary what is held. One PrepareOk stands for all ops below it: nothing is
// acknowledged above a hole, and an identity names everything in front of it. Reference nodes count
// each op by itself.
func (r *Replica) acknowledge(out *Output) {
	if r.held <= r.acked || !r.mayAck() {
		return
	}
	if r.group.Policy.Mixed {
		for op := max(r.acked, r.tail.low) + 1; op < r.held; op++ {
			r.sendOk(op, out)
		}
	}
	r.acked = r.held
	r.sendOk(r.held, out)
}

func (r *Replica) mayAck() bool {
	return r.status == statusNormal && r.settled() && r.state == Whole && r.saved.Whole && !r.transfer && !r.halted &&
		r.leader() != r.group.Self
}

func (r *Replica) sendOk(op uint64, out *Output) {
	r.vouch(r.leader(), op, out)
	r.okSent = max(r.okSent, op)
}

// vouch says that an op is held in this view.
func (r *Replica) vouch(to uint8, op uint64, out *Output) {
	p := r.tail.header(op)
	if p == nil {
		return
	}
	h := wire.PrepareOkHeader{
		Preamble: r.preamble(r.view), Parent: p.Parent, PrepareChecksum: p.Checksum, Op: op, Commit: r.committed,
		Timestamp: p.Timestamp, Request: p.Request, Operation: p.Operation, Group: r.group.ID,
	}
	h.Put(out.send(to, 0)[:])
}

// prepareOk counts a backup's acknowledgement.
func (r *Replica) prepareOk(in *Input, out *Output) {
	var h wire.PrepareOkHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	switch {
	case h.View < r.view:
		r.correct(in.From, out)
		return
	case h.View > r.view:
		r.replaced(h.View, out)
		return
	case r.status != statusNormal || r.leader() != r.group.Self || !r.settled():
		return
	case h.Op < r.tail.low || h.Op == 0 || h.Op > r.tail.head:
		return
	case r.tail.at(h.Op).header.Checksum != h.PrepareChecksum:
		out.fault(FaultConflict)
		return
	}
	bit := uint32(1) << in.From
	if h.Op <= r.known {
		if r.tail.at(h.Op).acks |= bit; h.Op == r.tail.head && r.lagging() == 0 {
			r.disarm(timerLag)
		}
		return
	}
	lowest := r.known
	if r.group.Policy.Mixed {
		lowest = h.Op - 1
	}
	for op := h.Op; op > lowest; op-- {
		s := r.tail.at(op)
		if s.acks&bit != 0 {
			break
		}
		s.acks |= bit
	}
	r.advance(out)
}

// Bounds of one retransmission to one member.
const (
	resendOps   = 16
	resendBytes = 1 << 20
)

// retransmit sends the members what they have not acknowledged, oldest first.
func (r *Replica) retransmit(out *Output) {
	if r.status != statusNormal || r.leader() != r.group.Self || !r.settled() || r.known == r.tail.head {
		return
	}
	for m := uint8(0); m < r.group.Members; m++ {
		if m != r.group.Self {
			r.resend(m, out)
		}
	}
	r.arm(timerPrepare, prepareInterval<<min(r.resent, prepareBackoff))
	if r.resent < prepareBackoff {
		r.resent++
	}
}

func (r *Replica) resend(m uint8, out *Output) {
	ops, bytes := 0, uint64(0)
	for op := r.known + 1; op <= r.tail.head && ops < resendOps && bytes < resendBytes; op++ {
		s := r.tail.at(op)
		if s.acks>>m&1 == 1 {
			continue
		}
		r.sendPrepare(op, m, out)
		ops++
		bytes += uint64(s.header.Size)
	}
}
