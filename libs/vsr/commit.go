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
	r.advance(out)
}

// advance moves the commit point over the ops that a quorum holds, in order.
func (r *Replica) advance(out *Output) {
	before := r.committed
	for next := before + 1; next <= r.tail.head; next++ {
		if bits.OnesCount32(r.tail.at(next).acks) < r.quorums.Replication {
			break
		}
		r.committed = next
	}
	if r.committed > before {
		r.tail.low = r.committed
		out.Commit = r.committed
	}
}

// reportApplied takes the caller's word that ops up to op are applied.
func (r *Replica) reportApplied(op uint64, out *Output) {
	if op > r.committed {
		out.Fault = FaultCompletion
		return
	}
	r.applied = max(r.applied, op)
}

// writeFailed takes a failed write. A group of one takes the ops back and goes on: nobody else has
// seen them. With more members the ops were sent, their numbers are spent, and this replica stops
// leading. A failed sync ends every promise: what waits is answered with an open outcome.
func (r *Replica) writeFailed(in *Input, out *Output) {
	switch {
	case in.SyncLost:
		r.halt(out)
	case in.Op <= r.held:
		out.Fault = FaultCompletion
	case in.Op > r.tail.head:
	case r.group.Members > 1:
		r.spent = true
		out.Role = Role{Changed: true, View: r.view}
	default:
		r.drop(in.Op, wire.CodeTransientNotAccepted, WhyWriteFailed, out)
		out.Truncate = in.Op
		r.tail.head = in.Op - 1
	}
}

// drop refuses the requests behind the uncommitted ops from op on.
func (r *Replica) drop(op uint64, code wire.Code, why Why, out *Output) {
	for ; op <= r.tail.head; op++ {
		out.Refused = append(out.Refused, Refusal{Body: r.tail.at(op).body, Op: op, Code: code, Why: why})
	}
}

func (r *Replica) halt(out *Output) {
	if r.halted {
		return
	}
	r.halted = true
	r.drop(r.committed+1, wire.CodeTransientNotCommitted, WhyHalted, out)
	out.Role = Role{Changed: true, View: r.view}
}
