package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// maxUnapplied bounds the ops between commit point and head: a backup with a slow disk takes no more
// prepares and fetches them later.
const maxUnapplied = 4 * wire.MaxSuffix

// prepare takes a prepare of the primary, whoever passes it on, or one served for repair. It reports
// whether the body's token was kept; out names the fault otherwise.
func (r *Replica) prepare(in *Input, out *Output) bool {
	var h wire.PrepareHeader
	err := h.Decode(in.Header[:])
	switch {
	case err == wire.ErrOperation && h.Verify() == nil:
		out.fault(FaultOperation)
		return false
	case err != nil || h.Verify() != nil || h.Cluster != r.group.Cluster || !r.bodyOK(&h, in):
		out.fault(FaultFrame)
		return false
	}
	if h.Op == 0 || r.halted || r.transfer {
		return false
	}
	if h.Command == wire.CommandRepairPrepare {
		return r.repaired(&h, in.Body, out)
	}
	switch {
	case h.View < r.view:
		if in.From == r.leads(h.View) {
			r.correct(in.From, out)
		}
		return false
	case h.View > r.view:
		r.askView(in.From, out)
		return false
	case r.leader() == r.group.Self:
		return false
	case r.plan.active: // this view's log is being taken on: what comes after it can wait here
		r.plan.commit = max(r.plan.commit, h.Commit)
		return r.keep(&h, in.Body)
	case r.status != statusNormal:
		return false
	}
	r.news(h.Commit)
	kept := r.take(&h, in.Body, out)
	if out.Fault == FaultNone {
		r.goal = max(r.goal, h.Op)
	}
	r.learn(out)
	r.missing(0, out)
	return kept
}

// bodyOK checks the body against the header: its hash on the metadata plane, its own checksums
// elsewhere.
func (r *Replica) bodyOK(h *wire.PrepareHeader, in *Input) bool {
	if !in.BodyOK || h.Size < wire.HeaderSize || h.Size > wire.MaxFrameSize {
		return false
	}
	return !r.group.Policy.SealBody || h.ChecksumBody == wire.U128{Lo: in.BodyHash}
}

// take appends a prepare that is known to be the view's, or keeps it until the ones below are there.
func (r *Replica) take(h *wire.PrepareHeader, body Body, out *Output) bool {
	switch {
	case h.Op <= r.tail.head:
		r.again(h, out)
		return false
	case h.Op > r.tail.head+1:
		return r.keep(h, body)
	case r.tail.head-r.committed >= maxUnapplied:
		return false
	case !r.tail.precedes(h):
		out.fault(FaultChain)
		return false
	}
	r.append(h, body, out)
	r.drain(out)
	return true
}

// keep holds a prepare above the head.
func (r *Replica) keep(h *wire.PrepareHeader, body Body) bool {
	return h.Op > r.tail.head && h.Op-r.tail.head <= windowOps && r.early.put(h, body)
}

// append puts a prepare behind the head.
func (r *Replica) append(h *wire.PrepareHeader, body Body, out *Output) {
	s := r.tail.push()
	s.header = *h
	s.header.Command = wire.CommandPrepare
	r.timeFloor = max(r.timeFloor, h.Timestamp)
	out.Append = append(out.Append, Append{Header: s.header, Body: body})
	if e, ok := r.early.take(h.Op); ok {
		out.Drop = append(out.Drop, e.body)
	}
}

// drain appends what waited for the ops below it.
func (r *Replica) drain(out *Output) {
	for r.tail.head-r.committed < maxUnapplied {
		e, ok := r.early.take(r.tail.head + 1)
		if !ok {
			return
		}
		if !r.tail.precedes(&e.header) {
			out.Drop = append(out.Drop, e.body)
			out.fault(FaultChain)
			return
		}
		r.append(&e.header, e.body, out)
	}
}

// again answers a prepare that is here already: the acknowledgement was lost.
func (r *Replica) again(h *wire.PrepareHeader, out *Output) {
	own := r.tail.header(h.Op)
	switch {
	case own == nil:
	case own.Checksum != h.Checksum:
		out.fault(FaultConflict)
	case h.Op <= r.held && r.mayAck():
		r.sendOk(r.held, out)
	}
}
