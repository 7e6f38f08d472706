package partitionreplica

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/wire"
)

// admitSend lets a batch in that the front-door has verified, unless it is a repeat or there is no
// room to keep it.
func (p *Partition) admitSend(c *link.Call, prop *loop.Proposal) bool {
	if w, ok := p.recent.find(c.Connection, c.Sequence); ok {
		p.repeated(c, w, confirmation(c.Out[:0], p.stream, p.topic, p.number, w.base))
		return false
	}
	if why := p.replica.full(p.engine, len(c.Body)); why != link.ReasonNone {
		c.Refuse(wire.CodeTransientNotAccepted, why)
		return false
	}
	*prop = loop.Proposal{
		Operation: wire.OpSendMessages, Client: c.Connection, Request: c.Sequence,
		RequestChecksum: c.Header.RequestChecksum,
		Frame:           c.Frame, BodyStart: c.BodyStart, BodyLen: len(c.Body),
	}
	c.Frame = nil
	return true
}

// repeated answers a write that is in the log already.
func (p *Partition) repeated(c *link.Call, w recentWrite, out []byte) {
	if w.op > p.group.Applied() {
		c.Refuse(wire.CodeTransientNotCommitted, link.ReasonBusy)
		return
	}
	p.Settle() // it may have been applied in this very turn
	c.ReplyOp, c.Op, c.Commit, c.View, c.Out = c.Header.Operation, w.op, w.op, p.group.View(), out
	c.Finish()
}

func (p *Partition) applySend(h *wire.PrepareHeader, c *link.Call) {
	s := p.staged[0]
	if s.op != h.Op {
		panic("partition: applied a send that was not staged")
	}
	p.staged = p.staged[:copy(p.staged, p.staged[1:])]
	p.published, p.publishing = s.next, true
	if c == nil { // nobody waits here: another member leads, or did when it was sent
		p.replica.metrics.copied.Add(float64(s.next - s.base))
	} else {
		p.replica.metrics.messages.Add(float64(s.next - s.base))
		c.Out = confirmation(c.Out[:0], p.stream, p.topic, p.number, s.base)
	}
}
