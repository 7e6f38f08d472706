package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// writeFailed takes a failed write: the log ends in front of it. A group of one takes the ops back and
// goes on: nobody else has seen them. A primary of several has sent them, their numbers are spent, and
// it leads no more (design-arguments 3). A backup acknowledged none of them and asks again. A failed
// sync ends every promise: what waits is answered with an open outcome.
func (r *Replica) writeFailed(in *Input, out *Output) {
	switch {
	case in.SyncLost:
		r.halt(out)
	case r.halted || in.Op > r.tail.head:
	case in.Op <= r.held:
		out.Fault = FaultCompletion
	case r.group.Members == 1:
		r.refuseFrom(in.Op, wire.CodeTransientNotAccepted, WhyWriteFailed, out)
		r.truncate(in.Op, out)
	case r.acting():
		r.refuseFrom(in.Op, wire.CodeTransientNotCommitted, WhyWriteFailed, out)
		r.truncate(in.Op, out)
		r.handOver(out)
	default:
		r.refuseFrom(in.Op, wire.CodeTransientNotCommitted, WhyWriteFailed, out)
		r.goal = max(r.goal, r.tail.head)
		r.truncate(in.Op, out)
		r.plan.stored = false
		r.pursue(out)
		r.armIfNot(timerRepair, repairInterval)
	}
}

// truncate removes the ops from op on.
func (r *Replica) truncate(op uint64, out *Output) {
	out.Truncate = op
	r.cutTail(op)
}

func (r *Replica) cutTail(op uint64) {
	r.tail.head = min(r.tail.head, op-1)
	r.held = min(r.held, op-1)
	r.acked = min(r.acked, op-1)
}

// refuseFrom refuses the requests that wait for the ops from op on.
func (r *Replica) refuseFrom(op uint64, code wire.Code, why Why, out *Output) {
	for op = max(op, r.committed+1); op <= r.tail.head; op++ {
		if s := r.tail.at(op); s.waiter {
			s.waiter = false
			out.Refused = append(out.Refused, Refusal{Body: s.body, Op: op, Code: code, Why: why})
		}
	}
}

func (r *Replica) halt(out *Output) {
	if r.halted {
		return
	}
	if r.acting() && r.group.Members > 1 {
		r.sendProbe(Everyone, out)
	}
	r.halted = true
	r.refuseFrom(r.committed+1, wire.CodeTransientNotCommitted, WhyHalted, out)
	r.early.drop(^uint64(0), out)
	r.timers = [timerCount]Tick{}
}
