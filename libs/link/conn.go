package link

import (
	"fmt"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Conn is the connection of another process to the service plane of this one.
type Conn struct {
	server *Server
	stream *stream
	who    Peer
	fed    bool // the feed has heard of it; reading goroutine only
}

// Peer is the process at the other end.
func (c *Conn) Peer() Peer { return c.who }

// Done is closed when the connection has ended and nothing sent on it is used any more.
func (c *Conn) Done() <-chan struct{} { return c.stream.done }

// Close ends the connection.
func (c *Conn) Close() { c.stream.close() }

// Send queues a frame for the process and never blocks; the rules for body and owner are those of
// Mesh.Send. False: the connection has ended or its queue is full.
func (c *Conn) Send(h *wire.Header, body []byte, owner *buffer.Frame) bool {
	switch c.stream.out.push(h, &post{body: body, owner: owner}, false) {
	case queued:
		return true
	case full:
		c.stream.count.full.Inc()
	}
	return false
}

// SendWait is Send that waits for room in the queue; false: the connection has ended.
func (c *Conn) SendWait(h *wire.Header, body []byte, owner *buffer.Frame) bool {
	return c.stream.out.pushWait(h, &post{body: body, owner: owner}) == queued
}

// smallRequest is the body up to which a request is copied instead of taking a buffer of its own.
const smallRequest = 4 << 10

// borrows implements receiver. A send's buffer is where its prepare is built.
func (c *Conn) borrows(h *wire.Header) bool {
	if h.Command() != wire.CommandRequest {
		return true
	}
	p, err := wire.DecodePreamble(h[:])
	return err == nil && p.Size <= wire.HeaderSize+smallRequest && wire.Operation(h[176]) != wire.OpSendMessages
}

// frame implements receiver.
func (c *Conn) frame(h *wire.Header, body []byte, f *buffer.Frame) (err error) {
	switch h.Command() {
	case wire.CommandRequest:
		return c.request(h, body, f)
	case wire.CommandPing:
		err = c.pong(h)
	case wire.CommandRequestPrepares, wire.CommandRequestStateTransfer, wire.CommandRequestStateChunk:
		c.ask(h)
	}
	release(f)
	return err
}

// pong tells the other side that this one is alive.
func (c *Conn) pong(h *wire.Header) error {
	var ping wire.PingHeader
	if err := ping.Decode(h[:]); err != nil {
		return fmt.Errorf("%w: %w", errRule, err)
	}
	node := c.server.cfg.Node
	pong := wire.PingHeader{
		Preamble: wire.Preamble{Cluster: node.Cluster, Command: wire.CommandPong}, ClusterUUID: node.ClusterUUID(), NodeUUID: node.UUID,
		Epoch: node.Epoch, Node: node.ID, Mixed: node.Mixed, Echo: ping.Sent,
	}
	b := wire.AppendPing(nil, &pong, &wire.PingBody{})
	c.stream.out.push(nil, &post{body: b, urgent: true}, true)
	return nil
}

// ask hands a follower's question to the feed.
func (c *Conn) ask(h *wire.Header) {
	feed := c.server.cfg.Feed
	if feed == nil {
		c.stream.count.unasked.Inc()
		return
	}
	c.fed = true
	switch h.Command() {
	case wire.CommandRequestPrepares:
		var q wire.RequestPreparesHeader
		if q.Decode(h[:]) == nil {
			feed.Subscribe(c, q)
			return
		}
	case wire.CommandRequestStateTransfer:
		var q wire.RequestStateTransferHeader
		if q.Decode(h[:]) == nil {
			feed.StateTransfer(c, q)
			return
		}
	default:
		var q wire.RequestStateChunkHeader
		if q.Decode(h[:]) == nil {
			feed.Chunk(c, q)
			return
		}
	}
	c.stream.count.field.Inc()
}

// overBudget implements receiver: a request is refused, not forgotten.
func (c *Conn) overBudget(h *wire.Header) {
	if h.Command() == wire.CommandRequest {
		c.refuse(h, ReasonBudget)
	}
}

// refuse answers a request without looking at its body.
func (c *Conn) refuse(h *wire.Header, why Reason) {
	var r wire.Routed
	var q wire.RequestHeader
	if q.Decode(h[:]) != nil || r.Decode(h[:]) != nil {
		return
	}
	call := Call{Header: q, Status: wire.CodeTransientNotAccepted, Reason: why, Primary: wire.NoPrimary, MetadataOp: r.MetadataOp}
	var head wire.Header
	putAnswer(head[:], &call, 0, r.Correlation)
	c.stream.out.push(&head, &post{urgent: true}, true)
}
