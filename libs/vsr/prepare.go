package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// request mints the next op for an admitted request, or refuses it.
func (r *Replica) request(in *Input, out *Output) {
	if code, why := r.admit(&in.Request); why != WhyNone {
		out.refuse(in, code, why)
		return
	}
	if r.group.Members > 1 && r.known == r.tail.head {
		r.arm(timerPrepare, prepareInterval)
	}
	parent := r.tail.parent(r.tail.head)
	s := r.tail.push()
	r.timeFloor = max(in.Now, r.timeFloor+1)
	s.body, s.waiter = in.Body, true
	s.header = wire.PrepareHeader{
		Cluster: r.group.Cluster, Size: in.Request.Size, View: r.view, Release: in.Request.Release,
		Command: wire.CommandPrepare, Replica: r.group.Self,
		Client: in.Request.Client, Parent: parent, RequestChecksum: in.Request.Checksum,
		Op: r.tail.head, Commit: r.committed, Timestamp: r.timeFloor,
		Request: in.Request.Request, Operation: in.Request.Operation, Group: r.group.ID, UserID: in.Request.UserID,
	}
	if r.group.Policy.SealBody {
		s.header.ChecksumBody = wire.U128{Lo: in.BodyHash}
	}
	s.header.Checksum = s.header.Identity()
	out.Append = append(out.Append, Append{Header: s.header, Body: in.Body})
	if r.group.Members > 1 {
		r.sendPrepare(s.header.Op, Everyone, out)
	}
}

// sendPrepare sends an op of the log, stamped with the current view.
func (r *Replica) sendPrepare(op uint64, to uint8, out *Output) {
	h := r.tail.at(op).header
	h.View = r.view
	h.Put(out.send(to, op)[:])
}

func (r *Replica) admit(q *Request) (wire.Code, Why) {
	switch {
	case r.halted:
		return wire.CodeTransientNotAccepted, WhyHalted
	case r.isolated && r.acting():
		return wire.CodeTransientNotAccepted, WhyIsolated
	case !r.Primary():
		return wire.CodeTransientNotAccepted, WhyNotPrimary
	case r.closed():
		return wire.CodeTransientNotAccepted, WhySealed
	case r.tail.head-r.committed >= r.limit:
		return wire.CodeTransientNotAccepted, WhyPipeline
	case q.Size < wire.HeaderSize || q.Size > wire.MaxFrameSize:
		return wire.CodeTransientNotAccepted, WhySize
	case r.inFlight(q):
		return wire.CodeTransientNotAccepted, WhyInFlight
	}
	return 0, WhyNone
}

// inFlight reports whether an uncommitted op of the same client is in the pipeline. The client table
// knows only what was applied, so one request of a client at a time keeps it exact. Registers and
// logouts are judged by it when they are applied; client 0 is the server itself.
func (r *Replica) inFlight(q *Request) bool {
	if !r.group.Policy.SealBody || q.Client.IsZero() || q.Operation == wire.OpRegister || q.Operation == wire.OpLogout {
		return false
	}
	for op := r.committed + 1; op <= r.tail.head; op++ {
		if r.tail.at(op).header.Client == q.Client {
			return true
		}
	}
	return false
}

// Rollback takes back the ops from op on, none of which has left this process: the next request gets
// op again, with a later timestamp. It panics below the commit point, and in a group of several
// members for anything but the newest op: a number that was sent is spent.
func (r *Replica) Rollback(op uint64) {
	if op <= r.committed || r.group.Members > 1 && op < r.tail.head {
		panic("vsr: rollback of an op that may be known elsewhere")
	}
	r.cutTail(op)
}
