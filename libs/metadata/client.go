package metadata

import (
	"cmp"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Client is an entry of the client table: the session of one client id and what is needed to
// answer its repeated requests.
type Client struct {
	ID                wire.U128
	Slot              uint32
	Epoch             uint64 // session number: op of its latest Register
	UserID            uint32
	Watermark         uint64 // highest committed request number
	WatermarkChecksum wire.U128
	Replies           []*Committed // oldest first, at most RepliesPerClient
}

// RepliesPerClient is how many committed replies the table keeps of each client, the Register
// reply included.
const RepliesPerClient = 5

// Committed is a committed reply as it was, or would have been, sent.
type Committed struct {
	Header wire.ReplyHeader
	Body   []byte
}

// Append writes the reply frame, header and body, behind dst.
func (c *Committed) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, wire.HeaderSize)...)
	c.Header.Put(dst[start:])
	return append(dst, c.Body...)
}

// recency orders clients by the op of their latest reply, then by slot.
type recency struct {
	op   uint64
	slot uint32
}

func compareRecency(a, b recency) int {
	return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.slot, b.slot))
}

func (c *Client) recency() recency {
	return recency{c.Replies[len(c.Replies)-1].Header.Op, c.Slot}
}
