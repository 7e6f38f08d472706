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
// leading. A failed sync ends every promise.
func (r *Replica) writeFailed(in *Input, out *Output) {
	if in.Op <= r.held || in.Op == 0 {
		if in.SyncLost {
			r.halt(out)
			return
		}
		out.Fault = FaultCompletion
		return
	}
	if r.group.Members > 1 {
		r.spent = true
		out.Role = Role{Changed: true, View: r.view}
	} else if in.Op <= r.tail.head {
		for op := in.Op; op <= r.tail.head; op++ {
			s := r.tail.at(op)
			out.Refused = append(out.Refused, Refusal{Body: s.body, Op: op, Code: wire.CodeTransientNotAccepted, Why: WhyWriteFailed})
		}
		out.Truncate = in.Op
		r.tail.head = in.Op - 1
	}
	if in.SyncLost {
		r.halt(out)
	}
}

func (r *Replica) halt(out *Output) {
	if !r.halted {
		r.halted = true
		out.Role = Role{Changed: true, View: r.view}
	}
}
