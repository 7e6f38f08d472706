package link

import "github.com/whippet-mq/whippet/libs/wire"

// Feed serves the followers that are connected to the service plane of this process. Its methods are
// called on the connection's reading goroutine and must not block it: what takes long belongs on a
// goroutine of the feed's own, which ends at Closed. Answers go through the connection: Commit,
// RepairPrepare, RepairDone, RangeEvicted, StateTransferTarget and StateChunk frames, in any number.
type Feed interface {
	// Subscribe opens a stream of applied ops from h.FromOp on; h.ToOp 2^64-1 means without end.
	Subscribe(c *Conn, h wire.RequestPreparesHeader)
	// StateTransfer asks for an offer of the state.
	StateTransfer(c *Conn, h wire.RequestStateTransferHeader)
	// Chunk asks for a piece of an offered artifact.
	Chunk(c *Conn, h wire.RequestStateChunkHeader)
	// Closed is the last call for c.
	Closed(c *Conn)
}
