package frontdoor

import (
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// readAhead is the size of a connection's own buffer in bytes. Frames up to it are read without
// taking from the budget, and small requests need one read each.
const readAhead = 4096

// yieldEvery is how many requests that came ahead of their predecessors' answers a connection serves
// before others have a turn: it would not wait for anything by itself.
const yieldEvery = 8

// conn moves frames between one socket and its session: it reads one frame, lets the session act on
// it, writes one reply.
type conn struct {
	server  *Server
	core    *Core
	raw     net.Conn // the socket itself
	sock    net.Conn // raw, or TLS on top of it
	session *Session

	in      []byte // unread bytes are in[r:w]
	r, w    int
	ahead   uint // requests found in the buffer
	limited bool // a read deadline is set

	writing  sync.Mutex
	deadline time.Time // of writes; moved ahead in steps, not per write
}

func newConn(server *Server, sock net.Conn) *conn { return newSocket(server, sock, server.tls) }

// newSocket wraps an accepted socket, under TLS when secured is not nil.
func newSocket(server *Server, sock net.Conn, secured *tls.Config) *conn {
	if t, ok := sock.(*net.TCPConn); ok {
		t.SetNoDelay(true)
	}
	c := &conn{server: server, core: server.core, raw: sock, sock: sock, in: make([]byte, readAhead)}
	if secured != nil {
		c.sock = tls.Server(sock, secured)
	}
	c.session = newSession(server.core, c, sock.RemoteAddr().String())
	return c
}

// interrupt ends a wait for the next request. A request in progress goes on.
func (c *conn) interrupt() { c.raw.SetReadDeadline(time.Now()) }

// cut ends the connection wherever it is.
func (c *conn) cut() { c.raw.Close() }

func (c *conn) close() { c.sock.Close() }

func (c *conn) serve() {
	if !c.handshake(c.secure) {
		c.close()
		return
	}
	c.server.converse(c.session, c.next, c.close)
}

// handshake runs what precedes the first frame, within the handshake grace.
func (c *conn) handshake(steps ...func() bool) bool {
	c.raw.SetDeadline(time.Now().Add(c.core.cfg.HandshakeGrace))
	for _, step := range steps {
		if !step() {
			return false
		}
	}
	c.raw.SetDeadline(time.Time{})
	return !c.core.stopping.Load()
}

// secure is the TLS handshake, on listeners that have one.
func (c *conn) secure() bool {
	secured, ok := c.sock.(*tls.Conn)
	return !ok || secured.Handshake() == nil
}

// next serves one request and reports whether the connection goes on.
func (c *conn) next() bool {
	if c.w-c.r >= wire.HeaderSize {
		if c.ahead++; c.ahead%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
	if c.core.stopping.Load() || !c.fill(wire.HeaderSize) {
		return false
	}
	size, err := wire.FrameSize(c.in[c.r:c.w], c.core.cfg.MaxFrame)
	if err != nil {
		c.core.metrics.badFrames.Inc()
		return false
	}
	stranger := c.session.stranger()
	if int(size) <= len(c.in) && (stranger || !wantsFrame(c.in[c.r:])) {
		if !c.fill(int(size)) {
			return false
		}
		b := c.in[c.r : c.r+int(size)]
		c.r += int(size)
		return c.handle(b, nil)
	}
	if stranger {
		header, ok := c.discard(int(size))
		return ok && c.handle(header, nil)
	}
	if !c.fill(min(int(size), len(c.in))) {
		return false
	}
	f, ok := c.core.room(c.session, c.in[c.r:c.w], int(size))
	if !ok {
		return c.noRoom(int(size))
	}
	b := f.Bytes()
	n := copy(b, c.in[c.r:c.w])
	c.r += n
	if n < len(b) {
		c.limit(int(size))
		if _, err := io.ReadFull(c.sock, b[n:]); err != nil {
			f.Release()
			return false
		}
	}
	c.unlimit()
	return c.handle(b, f)
}

// wantsFrame reports whether a service may take the request's bytes over into its log.
func wantsFrame(header []byte) bool {
	return wire.Operation(header[operationOffset]).Partition()
}

const operationOffset = 176

// fill reads until n bytes are unread in the connection's buffer. Waiting for the first byte of a
// frame has no limit; once begun it must be completed in time.
func (c *conn) fill(n int) bool {
	for c.w-c.r < n {
		if c.r == c.w {
			c.r, c.w = 0, 0
		} else {
			if c.r+n > len(c.in) {
				c.w = copy(c.in, c.in[c.r:c.w])
				c.r = 0
			}
			c.limit(n)
		}
		m, err := c.sock.Read(c.in[c.w:])
		c.w += m
		if err != nil && c.w-c.r < n {
			return false
		}
	}
	c.unlimit()
	return true
}

func (c *conn) limit(size int) {
	if !c.limited {
		c.limited = true
		c.raw.SetReadDeadline(time.Now().Add(c.core.frameTime(size)))
	}
}

// frameTime is how long a frame of size bytes may take from its first byte to its last.
func (c *Core) frameTime(size int) time.Duration {
	return c.cfg.FrameGrace + time.Duration(size>>20)*time.Second
}

// unlimit lifts the deadline of a frame that is complete, unless the server is stopping: then the
// deadline is what ends the next wait.
func (c *conn) unlimit() {
	if c.limited {
		c.limited = false
		c.raw.SetReadDeadline(time.Time{})
		if c.core.stopping.Load() {
			c.interrupt()
		}
	}
}

// noRoom refuses a frame there is no room for.
func (c *conn) noRoom(size int) bool {
	header, ok := c.discard(size)
	if !ok {
		return false
	}
	c.session.refuse(header, wire.CodeTransientNotAccepted)
	ok = c.write(c.session.reply())
	c.session.release()
	return ok
}

// discard takes a frame off the socket and keeps its header only.
func (c *conn) discard(size int) (header []byte, ok bool) {
	header = append([]byte(nil), c.in[c.r:c.r+wire.HeaderSize]...)
	for size > 0 {
		if c.r == c.w {
			c.r, c.w = 0, 0
			c.limit(size)
			if size > len(c.in) {
				n, err := drain(c.sock, size)
				if err != nil {
					return nil, false
				}
				size -= n
				continue
			}
			m, err := c.sock.Read(c.in)
			if err != nil {
				return nil, false
			}
			c.w = m
		}
		n := min(size, c.w-c.r)
		c.r += n
		size -= n
	}
	c.unlimit()
	return header, true
}

// handle lets the session act on one whole frame and writes the reply. The frame, when there is
// one, is released here unless a service took it over.
func (c *conn) handle(b []byte, f *buffer.Frame) bool {
	ok := c.write(c.server.answer(c.session, b, f))
	c.session.release()
	return ok
}

// write sends one frame with one write, within the write grace.
func (c *conn) write(b []byte) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	now := time.Now()
	if c.deadline.Sub(now) < c.core.cfg.WriteGrace {
		c.deadline = now.Add(c.core.cfg.WriteGrace * 3 / 2)
		c.raw.SetWriteDeadline(c.deadline)
	}
	_, err := c.sock.Write(b)
	return err == nil
}
