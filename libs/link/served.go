package link

import (
	"encoding/binary"
	"fmt"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// overhead is what a call counts beside its bytes against what a connection may have outstanding.
const overhead = 1 << 10

// keptBytes is the largest buffer a served call keeps for the next one.
const keptBytes = 64 << 10

// served is a request of another process on its way through a service of this one.
type served struct {
	call   *Call
	conn   *Conn
	number uint64
	size   int    // bytes held against the connection
	small  []byte // body of a request without a frame
}

// request turns a Request frame into a call. What the connection has outstanding is bounded: reads are
// refused when too many answers wait to be written, and nothing more is read when that does not help.
func (c *Conn) request(h *wire.Header, body []byte, f *buffer.Frame) error {
	var q wire.RequestHeader
	var r wire.Routed
	err := q.Decode(h[:])
	if rerr := r.Decode(h[:]); err == nil {
		err = rerr
	}
	if err != nil {
		release(f)
		return fmt.Errorf("%w: %w", errRule, err)
	}
	out := &c.stream.out
	reads := q.Operation == wire.OpNonReplicated || r.Internal
	s := c.server.take()
	s.conn, s.number, s.size = c, r.Correlation, wire.HeaderSize+len(body)+overhead
	takeCall(s.call, &q, &r)
	s.keep(body, f, int(r.InFlight))
	if !out.hold(s.size, 2*c.server.cfg.Window) {
		c.server.giveBack(s)
		return nil // the connection has ended
	}
	c.server.serve(s, reads)
	return nil
}

// keep gives the call its body: in the frame it came in, or copied.
func (s *served) keep(body []byte, f *buffer.Frame, inFlight int) {
	c := s.call
	if f != nil {
		c.Frame, c.BodyStart = f, wire.HeaderSize
	} else {
		s.small = append(s.small[:0], body...)
		body = s.small
	}
	list := body[len(body)-4*inFlight:]
	c.Body = body[: len(body)-4*inFlight : len(body)-4*inFlight]
	for ; len(list) > 0; list = list[4:] {
		c.InFlight = append(c.InFlight, binary.LittleEndian.Uint32(list))
	}
}

// finished implements finisher: the service has answered.
func (s *served) finished(c *Call) {
	out := &s.conn.stream.out
	var head wire.Header
	var p post
	h := &head
	switch {
	case c.Evict != wire.EvictNone || c.Status != 0:
		putAnswer(head[:], c, 0, s.number)
	case c.OutFrame != nil:
		h, p.body, p.owner = nil, c.OutFrame.Bytes(), c.OutFrame
		putAnswer(p.body, c, len(p.body)-wire.HeaderSize, s.number)
	default:
		p.body = c.Out
		putAnswer(head[:], c, len(p.body), s.number)
	}
	p.urgent = p.size(h) < bulkRequest
	out.push(h, &p, true)
	out.unhold(s.size)
	s.conn.server.giveBack(s)
}
