package frontdoor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	closeGrace = time.Second            // a client has this long to answer a Close frame
	stopGrace  = 250 * time.Millisecond // the same when the server stops: idle clients do not listen
	maxUpgrade = 16 << 10               // bytes of an upgrade request
)

// webConn is a connection whose frames come and go as WebSocket messages, one in each.
type webConn struct {
	*conn
	ws     *websocket.Conn
	frames frameReader
}

func newWebConn(server *Server, sock net.Conn) *webConn {
	c := &webConn{conn: newSocket(server, sock, server.webTLS)}
	c.frames = frameReader{core: c.core, session: c.session, buf: c.in, max: min(c.core.cfg.MaxFrame, c.core.cfg.WebSocket.MaxMessage)}
	c.session.conn, c.session.transport = c, wire.TransportWebSocket
	return c
}

func (c *webConn) serve() {
	if !c.handshake(c.secure, c.upgrade) {
		c.conn.close()
		return
	}
	c.server.converse(c.session, c.next, c.close)
}

// upgrade answers the HTTP request a client begins with. Path, origin and subprotocols are its own
// business.
func (c *webConn) upgrade() bool {
	in := bufio.NewReaderSize(&io.LimitedReader{R: c.sock, N: maxUpgrade}, c.core.cfg.WebSocket.ReadBuffer)
	request, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	out := bufio.NewWriterSize(c.sock, c.core.cfg.WebSocket.WriteBuffer)
	answer := &upgradeAnswer{sock: c.sock, buffers: bufio.NewReadWriter(in, out), header: make(http.Header)}
	c.ws, err = websocket.Accept(answer, request, &websocket.AcceptOptions{
		InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		_ = out.Flush()
		return false
	}
	c.ws.SetReadLimit(-1) // frames are measured before they are read
	return true
}

// next serves one message and reports whether the connection goes on.
func (c *webConn) next() bool {
	if c.core.stopping.Load() {
		return false
	}
	kind, message, err := c.ws.Reader(context.Background())
	if err != nil {
		return false
	}
	if kind != websocket.MessageBinary {
		c.core.metrics.badFrames.Inc()
		return false
	}
	c.limit(wire.HeaderSize)
	b, f, err := c.frames.read(message, func(size int) {
		c.unlimit()
		c.limit(size)
	})
	if err != nil && err != errNoRoom || !ended(message) {
		if f != nil {
			f.Release()
		}
		c.core.metrics.badFrames.Inc()
		return false
	}
	c.unlimit()
	ok := c.write(c.server.answerRead(c.session, b, f, err))
	c.session.release()
	return ok
}

// ended reports whether a message holds nothing more.
func ended(message io.Reader) bool {
	var more [1]byte
	n, err := message.Read(more[:])
	return n == 0 && err == io.EOF
}

// write sends one frame as one message, within the write grace. Clients take no WebSocket frame above
// 16 MiB, so a longer message leaves in several.
func (c *webConn) write(b []byte) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.raw.SetWriteDeadline(time.Now().Add(c.core.cfg.WriteGrace))
	defer c.raw.SetWriteDeadline(time.Time{})
	most := c.core.cfg.WebSocket.MaxFragment
	if len(b) <= most {
		return c.ws.Write(context.Background(), websocket.MessageBinary, b) == nil
	}
	w, err := c.ws.Writer(context.Background(), websocket.MessageBinary)
	for len(b) > 0 && err == nil {
		n := min(most, len(b))
		_, err = w.Write(b[:n])
		b = b[n:]
	}
	return err == nil && w.Close() == nil
}

// close sends a Close frame, unless one was sent, and gives the client a moment to answer it.
func (c *webConn) close() {
	grace := closeGrace
	if c.core.stopping.Load() {
		grace = stopGrace
	}
	c.raw.SetDeadline(time.Now().Add(grace))
	_ = c.ws.Close(websocket.StatusNoStatusRcvd, "")
	c.conn.close()
}

// upgradeAnswer is the response to an upgrade request, written to the socket itself.
type upgradeAnswer struct {
	sock    net.Conn
	buffers *bufio.ReadWriter
	header  http.Header
}

func (a *upgradeAnswer) Header() http.Header { return a.header }

func (a *upgradeAnswer) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		a.header.Set("Connection", "close")
	}
	_, _ = a.buffers.WriteString(fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status)))
	_ = a.header.Write(a.buffers)
	_, _ = a.buffers.WriteString("\r\n")
}

func (a *upgradeAnswer) Write(b []byte) (int, error) { return a.buffers.Write(b) }

// Hijack hands the socket over once the answer has left.
func (a *upgradeAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return a.sock, a.buffers, a.buffers.Flush()
}
