package vsr

import (
	"math/bits"

	"github.com/whippet-mq/whippet/libs/wire"
)

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
		if h.Commit > r.okSent && h.Commit <= r.held && r.mayAck() { // it may be a reminder
			r.sendOk(r.held, out)
		}
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
