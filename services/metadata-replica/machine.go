package metadatareplica

import (
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Blocked implements loop.Machine.
func (r *Replica) Blocked() bool { return false }

// Admit implements loop.Machine.
func (r *Replica) Admit(c *link.Call, p *loop.Proposal) bool {
	v := r.current
	c.ReplyOp = c.Header.Operation
	if r.pipelined[c.Header.Client] > 0 {
		c.Refuse(wire.CodeTransientNotCommitted, link.ReasonBusy)
		return false
	}
	if !r.settled(c, v) {
		return false
	}
	if r.damaged != nil && c.Header.Operation != wire.OpRegister && c.Header.Operation != wire.OpLogout {
		c.Refuse(wire.CodeStateFileCorrupted, link.ReasonNone)
		return false
	}
	op, body, code := c.Header.Operation, make([]byte, wire.HeaderSize, wire.HeaderSize+len(c.Body)+256), wire.Code(0)
	switch op {
	case wire.OpRegister, wire.OpLogout:
	default:
		op, body, code = v.Admit(body, &metadata.Request{
			Operation: op, Body: c.Body, UserID: c.Header.UserID, Client: c.Header.Client,
			InFlight: c.InFlight, MaxTokens: r.config.MaxTokens,
		})
	}
	if code != 0 {
		c.Refuse(code, link.ReasonNone)
		return false
	}
	*p = proposal(op, c.Header.Client, c.Header.Request, c.Header.UserID, body)
	p.RequestChecksum = c.Header.RequestChecksum
	r.pipelined[c.Header.Client]++
	return true
}

// proposal carries a body that has room for the prepare header in front of it.
func proposal(op wire.Operation, client wire.U128, request uint64, user uint32, body []byte) loop.Proposal {
	return loop.Proposal{
		Operation: op, Client: client, Request: request, UserID: user,
		Buf: body, BodyStart: wire.HeaderSize, BodyLen: len(body) - wire.HeaderSize,
	}
}

// settled asks the client table. It answers the call unless the request has to be ordered.
func (r *Replica) settled(c *link.Call, v *metadata.View) bool {
	verdict := v.PreflightRequest(&c.Header)
	switch verdict.Action {
	case metadata.ActionAdmit, metadata.ActionFull:
		// A full table makes room: the quietest client leaves, its request numbers are remembered.
		return true
	case metadata.ActionReplay:
		rh := &verdict.Reply.Header
		c.ReplyOp, c.Op, c.Commit, c.Time, c.View = rh.Operation, rh.Op, rh.Commit, rh.Timestamp, rh.View
		c.Out = append(c.Out[:0], verdict.Reply.Body...)
		c.Finish()
	case metadata.ActionResult:
		c.Commit, c.Op = v.Op, v.Op
		c.Out = wire.AppendRejection(c.Out[:0], verdict.Code)
		c.Finish()
	case metadata.ActionEvict:
		c.Evict = verdict.Evict
		c.Finish()
	default:
		c.Refuse(verdict.Code, link.ReasonBusy)
	}
	return false
}

// Stage implements loop.Machine: metadata bodies are final when admitted.
func (r *Replica) Stage(*wire.PrepareHeader, []byte) (loop.Staged, error) { return loop.Staged{}, nil }

// Unstage implements loop.Machine.
func (r *Replica) Unstage(uint64) { clear(r.pipelined) }

// Apply implements loop.Machine.
func (r *Replica) Apply(h *wire.PrepareHeader, body []byte, c *link.Call) {
	next, reply := r.current.Apply(h, body)
	r.current = next
	if n := r.pipelined[h.Client]; n > 1 {
		r.pipelined[h.Client] = n - 1
	} else {
		delete(r.pipelined, h.Client)
	}
	if c != nil {
		c.ReplyOp = h.Operation
		c.Out = append(c.Out[:0], reply.Body...)
	}
	r.metrics.ops.Inc()
}

// Settle implements loop.Machine: the new view becomes everybody's.
func (r *Replica) Settle() { r.publish(r.current) }

// Work implements loop.Machine: the log and its checkpoints are all there is.
func (r *Replica) Work(uint64, bool) *loop.Work { return nil }

// Pending implements loop.Machine.
func (r *Replica) Pending() bool { return false }

// Replay implements loop.Machine.
func (r *Replica) Replay(h *wire.PrepareHeader, _ []byte, _ journal.Location, _ bool) error {
	return nil
}

// Ready implements loop.Machine.
func (r *Replica) Ready() error {
	r.publish(r.current)
	return r.unread
}

// Image implements loop.Machine: the snapshot in its documented form.
func (r *Replica) Image() loop.Image {
	view := r.current
	return loop.Image{Run: func() error { return nil }, Encode: view.EncodeSnapshot, Done: func(error) {}}
}

// Role implements loop.Machine.
func (r *Replica) Role(bool, uint32) {}

// Close implements loop.Machine.
func (r *Replica) Close() {}
