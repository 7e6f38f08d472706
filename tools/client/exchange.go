package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	retryPause = 50 * time.Millisecond // between a transient refusal and the repetition
	readChunk  = 64 << 10              // least free space offered to one read
	copyLimit  = 16 << 10              // payloads up to this size are copied behind the header: one plain write
	maxReply   = 1 << 28               // largest reply accepted; the reference does not bound poll replies
)

// ErrProtocol says that the server answered with something that is no answer. The connection is
// unusable afterwards.
var ErrProtocol = errors.New("protocol error")

// Evicted says that the server ended the session or refused the login.
type Evicted struct {
	Reason                 wire.EvictionReason
	VersionMin, VersionMax uint32 // the server's protocol window, EvictIncompatibleProtocol only
}

func (e *Evicted) Error() string {
	return fmt.Sprintf("evicted (%s): %s", e.Reason, e.code().Error())
}

// Unwrap is the code official SDKs report for the reason.
func (e *Evicted) Unwrap() error { return e.code() }

func (e *Evicted) code() wire.Code {
	switch e.Reason {
	case wire.EvictInvalidCredentials:
		return wire.CodeInvalidCredentials
	case wire.EvictInvalidToken:
		return wire.CodeInvalidPersonalAccessToken
	case wire.EvictStaleClient:
		return wire.CodeStaleClient
	case wire.EvictIncompatibleProtocol:
		return wire.CodeIncompatibleProtocolVersion
	case wire.EvictMalformedLogin:
		return wire.CodeInvalidFormat
	case wire.EvictClientReleaseTooLow, wire.EvictClientReleaseTooHigh, wire.EvictInvalidRequestOperation,
		wire.EvictInvalidRequestBody, wire.EvictInvalidRequestBodySize:
		return wire.CodeInvalidCommand
	}
	return wire.CodeUnauthenticated
}

// read runs command cmd, whose body stands behind the header space of c.out.
func (c *Client) read(cmd wire.Cmd) ([]byte, error) {
	return c.exchange(wire.OpNonReplicated, cmd, nil)
}

// change runs a metadata operation and returns what follows its result section.
func (c *Client) change(op wire.Operation) ([]byte, error) {
	body, err := c.exchange(op, 0, nil)
	c.request++
	return body, err
}

// body starts a request: encoders append behind it, and the result goes to begin.
func (c *Client) body() []byte { return c.out[:wire.HeaderSize] }

// begin keeps the encoded request.
func (c *Client) begin(out []byte) { c.out = out }

// exchange sends the request in c.out, followed by payload, and returns the reply's body without
// the result section. Requests refused with 57 or 58 are repeated.
func (c *Client) exchange(op wire.Operation, cmd wire.Cmd, payload []byte) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	c.header(op, cmd, len(payload))
	var started time.Time
	for {
		if err := c.send(payload); err != nil {
			return nil, c.fail(err)
		}
		body, err := c.answer(op)
		if code, refused := err.(wire.Code); !refused || !code.IsTransient() || c.options.RetryFor < 0 {
			return body, err
		}
		if started.IsZero() {
			started = time.Now()
		}
		if time.Since(started) > c.options.RetryFor {
			return body, err
		}
		time.Sleep(retryPause)
	}
}

// header fills the header space of c.out.
func (c *Client) header(op wire.Operation, cmd wire.Cmd, payload int) {
	h := wire.RequestHeader{
		Size: uint32(len(c.out) + payload), Client: c.id, Request: max(1, c.request), Session: c.session,
		Operation: op, Code: cmd,
	}
	switch {
	case op == wire.OpRegister:
		h.Request, h.Session = 0, 0
		h.RequestChecksum = wire.Widened(c.out[wire.HeaderSize:])
	case op == wire.OpLogout || op.Metadata() || op == wire.OpDeleteSegments:
		h.RequestChecksum = wire.Widened(c.out[wire.HeaderSize:])
	}
	if h.Client.IsZero() {
		h.Client.Lo = 1
	}
	h.Put(c.out)
}

func (c *Client) send(payload []byte) (err error) {
	c.extend()
	switch {
	case len(payload) == 0:
		_, err = c.conn.Write(c.out)
	case len(payload) <= copyLimit:
		n := len(c.out)
		c.out = append(c.out, payload...)
		_, err = c.conn.Write(c.out)
		c.out = c.out[:n]
	default:
		c.parts = [2][]byte{c.out, payload}
		c.vector = net.Buffers(c.parts[:])
		_, err = c.vector.WriteTo(c.conn)
	}
	c.written = time.Now()
	return err
}

// extend gives the connection at least the timeout of one answer from now on. The deadline moves in
// steps: setting it costs more than looking at the clock.
func (c *Client) extend() {
	now := time.Now()
	if c.deadline.Sub(now) < c.options.Timeout {
		c.deadline = now.Add(c.options.Timeout * 3 / 2)
		_ = c.conn.SetDeadline(c.deadline) // of a closed connection: the write says so
	}
}

// answer reads one frame and judges it as the reply to operation op.
func (c *Client) answer(op wire.Operation) ([]byte, error) {
	frame, err := c.receive()
	if err != nil {
		return nil, c.fail(err)
	}
	if wire.Command(frame[60]) == wire.CommandEviction {
		var h wire.EvictionHeader
		if err := h.Decode(frame); err != nil {
			return nil, c.fail(fmt.Errorf("%w: eviction: %v", ErrProtocol, err))
		}
		return nil, &Evicted{h.Reason, h.VersionMin, h.VersionMax}
	}
	var h wire.ReplyHeader
	if err := h.Decode(frame); err != nil {
		return nil, c.fail(fmt.Errorf("%w: reply: %v", ErrProtocol, err))
	}
	if sent := binary.LittleEndian.Uint64(c.out[168:]); h.Request != sent {
		return nil, c.fail(fmt.Errorf("%w: reply to request %d while %d is outstanding", ErrProtocol, h.Request, sent))
	}
	body := frame[wire.HeaderSize:]
	if h.Status != 0 {
		return nil, h.Status
	}
	if !framed(h.Operation) || op == wire.OpRegister && len(body) == 0 {
		return body, nil
	}
	return c.result(body)
}

// framed reports whether replies of op open with a result section.
func framed(op wire.Operation) bool {
	return op == wire.OpRegister || op.Internal() || op.Metadata() && op != wire.OpLogout ||
		op == wire.OpStoreOffset || op == wire.OpDeleteOffset
}

// result takes the result section off a body.
func (c *Client) result(body []byte) ([]byte, error) {
	if len(body) < 4 {
		return nil, c.fail(fmt.Errorf("%w: no result section in %d bytes", ErrProtocol, len(body)))
	}
	if binary.LittleEndian.Uint32(body) == 0 {
		return body[4:], nil
	}
	if len(body) < 12 {
		return nil, c.fail(fmt.Errorf("%w: result section of %d bytes", ErrProtocol, len(body)))
	}
	return nil, wire.Code(binary.LittleEndian.Uint32(body[8:]))
}

// receive reads one frame into c.in and returns it.
func (c *Client) receive() ([]byte, error) {
	c.in = append(c.in[:0], c.in[c.used:]...) // what came in behind the previous frame
	c.used = 0
	need := wire.HeaderSize
	for {
		if len(c.in) >= wire.HeaderSize {
			size := int(binary.LittleEndian.Uint32(c.in[48:]))
			if size < wire.HeaderSize || size > maxReply {
				return nil, fmt.Errorf("%w: frame of %d bytes", ErrProtocol, size)
			}
			need = size
		}
		if len(c.in) >= need {
			c.used = need
			return c.in[:need], nil
		}
		if room := max(need, len(c.in)+readChunk); cap(c.in) < need || cap(c.in) == len(c.in) {
			c.in = append(make([]byte, 0, room), c.in...)
		}
		n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
		if err != nil && n == 0 {
			return nil, err
		}
		c.in = c.in[:len(c.in)+n]
	}
}
