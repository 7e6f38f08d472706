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
	if c.Internal != link.InternalNone {
		return r.ask(c, p)
	}
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
	short := wire.Code(0)
	op, body, code := c.Header.Operation, make([]byte, wire.HeaderSize, wire.HeaderSize+len(c.Body)+256), wire.Code(0)
	switch op {
	case wire.OpRegister, wire.OpLogout:
	default:
		op, body, code = v.Admit(body, &metadata.Request{
			Operation: op, Body: c.Body, UserID: c.Header.UserID, Client: c.Header.Client,
			InFlight: c.InFlight, MaxTokens: r.config.MaxTokens, Place: r.placer(&short),
		})
	}
	if code == 0 {
		code = short
	}
	if code != 0 {
		c.Refuse(code, link.ReasonNone)
		return false
	}
	*p = proposal(op, c.Header.Client, c.Header.Request, c.Header.UserID, body)
	p.RequestChecksum = c.Header.RequestChecksum
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
	case metadata.ActionAdmit:
		return true
	case metadata.ActionFull:
		// A full table makes room: the quietest client leaves, its request numbers are remembered. One that a
		// front-door holds does not.
		if !r.claims.holds(v.Client(verdict.Victim), r.engine.Now(), r.claimLimit()) {
			return true
		}
		c.Refuse(verdict.Code, link.ReasonBusy)
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

// Stage implements loop.Machine: metadata bodies are final when admitted. What another primary admitted
// counts as in flight here too, should this member lead next.
func (r *Replica) Stage(h *wire.PrepareHeader, body []byte) (loop.Staged, error) {
	r.staged = append(r.staged, stagedOp{h.Op, h.Client, placed(h.Operation, body)})
	r.pipelined[h.Client]++
	return loop.Staged{}, nil
}

// Follow implements loop.Machine.
func (r *Replica) Follow(h *wire.PrepareHeader, body []byte) (loop.Staged, error) {
	return r.Stage(h, body)
}

// Bodies implements loop.Machine: every body is in the log.
func (r *Replica) Bodies() func(journal.Location, []byte) error {
	return func(journal.Location, []byte) error { return journal.ErrDropped }
}

// Unstage implements loop.Machine.
func (r *Replica) Unstage(op uint64) {
	n := len(r.staged)
	for n > 0 && r.staged[n-1].op >= op {
		n--
		r.landed(r.staged[n].client)
	}
	r.staged = r.staged[:n]
}

// landed counts an op of a client out of the pipeline.
func (r *Replica) landed(client wire.U128) {
	if n := r.pipelined[client]; n > 1 {
		r.pipelined[client] = n - 1
	} else {
		delete(r.pipelined, client)
	}
}

// Apply implements loop.Machine.
func (r *Replica) Apply(h *wire.PrepareHeader, body []byte, c *link.Call) {
	next, reply := r.current.Apply(h, body)
	r.current = next
	if r.feed != nil {
		r.feed.Add(h, body)
	}
	if len(r.staged) > 0 && r.staged[0].op == h.Op { // not in a restart
		r.staged = r.staged[:copy(r.staged, r.staged[1:])]
		r.landed(h.Client)
	}
	if c != nil {
		if c.ReplyOp = h.Operation; c.Internal != link.InternalNone {
			c.ReplyOp = wire.OpNonReplicated // native operations are not for replies
		}
		c.Out = append(c.Out[:0], reply.Body...)
	}
	r.metrics.ops.Inc()
}

// Settle implements loop.Machine: the new view becomes everybody's.
func (r *Replica) Settle() {
	r.publish(r.current)
	r.feedOut()
}

// Work implements loop.Machine: the log and its checkpoints are all there is.
func (r *Replica) Work(uint64, bool) *loop.Work { return nil }

// Pending implements loop.Machine.
func (r *Replica) Pending() bool { return false }

// Rest implements loop.Machine.
func (r *Replica) Rest() {}

// Replay implements loop.Machine.
func (r *Replica) Replay(h *wire.PrepareHeader, body []byte, _ journal.Location, _ bool) error {
	_, err := r.Stage(h, body)
	return err
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
func (r *Replica) Role(primary bool, view uint32) {
	r.metrics.role(primary, view)
	r.tell(primary, view)
	if r.primary = primary; primary {
		r.lead()
	}
}

// lead begins a term as the primary, which starts without what earlier ones knew of others.
func (r *Replica) lead() {
	r.nodes.lead(r.engine.Now())
	r.claims.lead()
}

// Close implements loop.Machine.
func (r *Replica) Close() {}
