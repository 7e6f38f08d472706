package vsr

import (
	"math/bits"

	"github.com/whippet-mq/whippet/libs/wire"
)

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

// advance moves the commit point over the ops that a quorum holds, in order.
func (r *Replica) advance(out *Output) {
	before := r.known
	for next := before + 1; next <= r.tail.head; next++ {
		if bits.OnesCount32(r.tail.at(next).acks) < r.quorums.Replication {
			break
		}
		r.known = next
	}
	if r.known > before {
		r.resent = 0
		r.disarm(timerPrepare)
		r.disarm(timerLag)
		if r.group.Members > 1 && r.known < r.tail.head {
			r.arm(timerPrepare, prepareInterval)
		}
	}
	r.raise(out)
}

// raise makes the ops that are known committed and held here the commit point. An op that others
// committed before the own journal has it waits: what is applied is never above what is held.
func (r *Replica) raise(out *Output) {
	if to := min(r.known, r.held); to > r.committed {
		r.committed, r.tail.low = to, to
		out.Commit = to
	}
}

// reportApplied takes the caller's word that ops up to op are applied. Once everything is, the primary
// says so: the backups would otherwise learn of the last op with the next one.
func (r *Replica) reportApplied(op uint64, out *Output) {
	if op > r.committed {
		out.Fault = FaultCompletion
		return
	}
	r.applied = max(r.applied, op)
	if r.group.Members > 1 && r.applied == r.tail.head && r.applied > r.told && r.acting() {
		r.sendCommit(Everyone, out)
		r.reminded = 0
		r.remindLater()
	}
}

// remindLater arms the reminder while a member that is heard has not acknowledged the newest op: what
// told it of that op, and the Commit frame too, may be lost, and in a quiet group nothing would follow.
func (r *Replica) remindLater() {
	if r.disarm(timerLag); r.reminded < remindersMax && r.lagging() != 0 {
		r.arm(timerLag, remindInterval<<r.reminded)
	}
}

// lagging are the members that are heard and have not acknowledged the newest op. What a view inherited
// as committed is not acknowledged again.
func (r *Replica) lagging() uint32 {
	acks := r.tail.at(r.tail.head).acks
	if bits.OnesCount32(acks) < r.quorums.Replication {
		return 0
	}
	all := uint32(1)<<r.group.Members - 1
	return all &^ (r.deaf | acks | 1<<r.group.Self)
}

func (r *Replica) remind(out *Output) {
	if !r.acting() || r.tail.head == 0 || r.known < r.tail.head {
		return
	}
	for m := range r.group.Members {
		if r.lagging()>>m&1 == 1 {
			r.sendCommit(m, out)
		}
	}
	r.reminded++
	r.remindLater()
}

func (r *Replica) sendCommit(to uint8, out *Output) {
	r.token = max(r.token, uint64(r.view)<<32) + 1
	if to == Everyone {
		r.told = r.applied
	}
	h := wire.CommitHeader{Preamble: r.preamble(r.view), TimestampMonotonic: r.token, Commit: r.applied, Group: r.group.ID}
	h.Put(out.send(to, 0)[:])
}

// commitFrame takes the primary's commit point.
func (r *Replica) commitFrame(in *Input, out *Output) {
	var h wire.CommitHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	switch {
	case in.From != r.leads(h.View):
		out.fault(FaultSender)
	case h.View < r.view:
		r.correct(in.From, out)
	case h.View > r.view:
		r.askView(in.From, out)
	case r.plan.active:
		r.plan.commit = max(r.plan.commit, h.Commit)
	case r.status == statusNormal:
		r.token = max(r.token, h.TimestampMonotonic)
		r.news(h.Commit)
		r.goal = max(r.goal, h.Commit)
		r.learn(out)
		r.missing(repairDelay, out)
	}
}

// news notes that the primary of this view is there and has committed up to commit.
func (r *Replica) news(commit uint64) {
	r.known = max(r.known, commit)
	r.rejoin.unanswered = 0
	r.disarm(timerNews)
}

// learn is what a backup does after it holds or hears of more: commit, acknowledge, become whole.
func (r *Replica) learn(out *Output) {
	if !r.settled() {
		return
	}
	r.raise(out)
	r.mend(out)
	r.acknowledge(out)
	if r.tail.head > r.known {
		r.armIfNot(timerNews, newsInterval)
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
	p := r.tail.header(op)
	if p == nil {
		return
	}
	h := wire.PrepareOkHeader{
		Preamble: r.preamble(r.view), Parent: p.Parent, PrepareChecksum: p.Checksum, Op: op, Commit: r.committed,
		Timestamp: p.Timestamp, Request: p.Request, Operation: p.Operation, Group: r.group.ID,
	}
	h.Put(out.send(r.leader(), 0)[:])
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
	case h.View > r.view || r.status != statusNormal || r.leader() != r.group.Self || !r.settled():
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
