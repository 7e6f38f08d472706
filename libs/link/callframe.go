package link

import (
	"encoding/binary"

	"github.com/whippet-mq/whippet/libs/wire"
)

// putCall writes the header of the routed Request that carries c: size counts header, body and the
// in-flight list.
func putCall(b []byte, c *Call, size int, number uint64, deadline uint32) {
	h := c.Header
	h.Size, h.Group = uint32(size), c.Group
	h.Put(b)
	r := wire.Routed{
		Connection: c.Connection, Sequence: c.Sequence, MetadataOp: c.MetadataOp, Floor: c.Floor,
		Generation: c.Generation, Deadline: deadline, Code: uint32(h.Code), ConsumerKind: c.ConsumerKind, ConsumerID: c.ConsumerID,
		MaxReply: uint32(max(c.MaxReply, 0)), InFlight: uint32(len(c.InFlight)), Correlation: number,
	}
	if c.Internal != InternalNone {
		r.Internal, r.Code = true, uint32(c.Internal)
	}
	r.Put(b)
}

// takeCall fills a cleared call with what a Request header says. Body and in-flight list are the caller's.
func takeCall(c *Call, h *wire.RequestHeader, r *wire.Routed) {
	c.Header, c.Group = *h, h.Group
	c.Header.Code = 0
	if r.Internal {
		c.Internal = Internal(r.Code)
	} else {
		c.Header.Code = wire.Cmd(r.Code)
	}
	c.Connection, c.Sequence, c.MetadataOp = r.Connection, r.Sequence, r.MetadataOp
	c.Floor, c.Generation = r.Floor, r.Generation
	c.ConsumerKind, c.ConsumerID, c.MaxReply, c.Deadline = r.ConsumerKind, r.ConsumerID, int(r.MaxReply), r.Deadline
}

// putAnswer writes the header of the frame that answers c with bodySize bytes: a Reply, or an Eviction
// without body.
func putAnswer(b []byte, c *Call, bodySize int, number uint64) {
	if c.Evict != wire.EvictNone {
		e := wire.EvictionHeader{Cluster: c.Header.Cluster, Client: c.Header.Client, Reason: c.Evict}
		if e.Client.IsZero() {
			e.Client.Lo = 1 // the field must not be 0, and nobody looks at it here
		}
		e.Put(b)
		wire.PutCorrelation(b, number)
		return
	}
	h := wire.ReplyHeader{
		Cluster: c.Header.Cluster, Size: uint32(wire.HeaderSize + bodySize), View: c.View, Client: c.Header.Client, Op: c.Op, Commit: c.Commit,
		Timestamp: c.Time, Request: c.Header.Request, Operation: c.ReplyOp, Status: c.Status,
	}
	h.Put(b)
	context := wire.ReplyContext{
		View: c.View, Primary: c.Primary, Reason: uint8(c.Reason), Framed: c.OutFrame != nil && bodySize > 0, MetadataOp: c.MetadataOp, Correlation: number,
	}
	context.Put(b)
}

// takeAnswer fills a call with what a Reply says, apart from its body.
func takeAnswer(c *Call, h *wire.ReplyHeader, r *wire.ReplyContext) {
	c.Status, c.ReplyOp, c.Op, c.Commit, c.Time = h.Status, h.Operation, h.Op, h.Commit, h.Timestamp
	c.View, c.Primary, c.Reason, c.MetadataOp = r.View, r.Primary, Reason(r.Reason), r.MetadataOp
}

// appendNumbers writes partition ids as they stand behind a body.
func appendNumbers(dst []byte, numbers []uint32) []byte {
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint32(dst, n)
	}
	return dst
}
