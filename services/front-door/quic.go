package frontdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Application codes a QUIC connection is closed with.
const quicShutdown quic.ApplicationErrorCode = 0x1003

const (
	maxQUICReply = 10_000_000             // bytes clients take in one reply frame
	quicLinger   = 250 * time.Millisecond // closing a connection takes back what is still on its way
	manyConns    = 1024                   // from here on addresses are verified before a handshake costs anything
)

// quicConn is a connection whose requests come each on a stream of its own.
type quicConn struct {
	server  *Server
	core    *Core
	conn    *quic.Conn
	session *Session
	frames  frameReader
	replied time.Time // when the last reply was written

	waiting context.Context // of the wait for the next stream
	stop    context.CancelFunc

	mu     sync.Mutex
	stream *quic.Stream // whose frame is being read
	parked []byte       // an eviction: it answers the next request
}

func newQUICConn(server *Server, c *quic.Conn) *quicConn {
	q := &quicConn{server: server, core: server.core, conn: c}
	q.frames = frameReader{core: q.core, buf: make([]byte, readAhead), max: q.core.cfg.MaxFrame}
	q.waiting, q.stop = context.WithCancel(context.Background())
	q.session = newSession(q.core, q, c.RemoteAddr().String())
	q.frames.session = q.session
	q.session.transport, q.session.maxReply = wire.TransportQUIC, maxQUICReply
	return q
}

// interrupt ends a wait for the next request. A request in progress goes on.
func (c *quicConn) interrupt() {
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil {
		_ = c.stream.SetReadDeadline(time.Now())
	}
}

func (c *quicConn) cut() { _ = c.conn.CloseWithError(quicShutdown, "shutdown") }

func (c *quicConn) serve() { c.server.converse(c.session, c.next, c.close) }

// next serves one stream and reports whether the connection goes on. A frame that is none ends its
// stream without an answer.
func (c *quicConn) next() bool {
	stream, err := c.conn.AcceptStream(c.waiting)
	if err != nil {
		return false
	}
	c.reading(stream)
	c.allow(wire.HeaderSize)
	b, f, err := c.frames.read(stream, c.allow)
	c.reading(nil)
	stream.CancelRead(0) // what follows the frame is of no interest; without it the stream would stay open
	if err != nil && err != errNoRoom {
		c.core.metrics.badFrames.Inc()
		_ = stream.Close()
		return true
	}
	if eviction := c.unpark(); eviction != nil {
		if f != nil {
			f.Release()
		}
		return c.reply(stream, eviction)
	}
	ok := c.reply(stream, c.server.answerRead(c.session, b, f, err))
	c.session.release()
	return ok
}

// reading says whose frame an interrupt has to end.
func (c *quicConn) reading(stream *quic.Stream) {
	c.mu.Lock()
	c.stream = stream
	c.mu.Unlock()
}

// allow gives the frame being read the time that size bytes may take.
func (c *quicConn) allow(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := time.Now()
	if !c.core.stopping.Load() {
		limit = limit.Add(c.core.frameTime(size))
	}
	_ = c.stream.SetReadDeadline(limit)
}

// reply writes one frame and ends the stream, within the write grace. A client that gave the stream
// up does no harm; one that does not read loses the connection.
func (c *quicConn) reply(stream *quic.Stream, b []byte) bool {
	_ = stream.SetWriteDeadline(time.Now().Add(c.core.cfg.WriteGrace))
	_, err := stream.Write(b)
	c.replied = time.Now()
	if err == nil {
		_ = stream.Close()
		return true
	}
	stream.CancelWrite(0)
	var givenUp *quic.StreamError
	return errors.As(err, &givenUp)
}

// close ends the connection once the last reply had time to arrive.
func (c *quicConn) close() {
	c.stop()
	t := time.NewTimer(quicLinger - time.Since(c.replied))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.conn.Context().Done():
	}
	c.cut()
}

// write keeps an eviction for the client's next request: there is no stream to send it on.
func (c *quicConn) write(frame []byte) bool {
	c.mu.Lock()
	c.parked = append(c.parked[:0], frame...)
	c.mu.Unlock()
	return true
}

func (c *quicConn) unpark() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	eviction := c.parked
	c.parked = nil
	return eviction
}

// quicListener is the UDP socket of all QUIC connections.
type quicListener struct {
	udp       *net.UDPConn
	transport *quic.Transport
	listener  *quic.Listener
}

func (s *Server) listenQUIC() (*quicListener, error) {
	address, err := net.ResolveUDPAddr("udp", s.core.cfg.QUIC.Address)
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	l := &quicListener{udp: udp}
	l.transport = &quic.Transport{Conn: udp, VerifySourceAddress: func(net.Addr) bool { return s.connected.Load() >= manyConns }}
	if l.listener, err = l.transport.Listen(s.quicTLS, s.quicConfig()); err != nil {
		_ = udp.Close()
		return nil, err
	}
	return l, nil
}

// close ends the socket and whatever is still connected through it.
func (l *quicListener) close() {
	_ = l.transport.Close()
	_ = l.udp.Close()
}

func (s *Server) quicConfig() *quic.Config {
	q := &s.core.cfg.QUIC
	config := &quic.Config{
		HandshakeIdleTimeout:           s.core.cfg.HandshakeGrace / 2, // the whole may take twice as long
		MaxIdleTimeout:                 q.Idle,
		KeepAlivePeriod:                q.KeepAlive,
		InitialPacketSize:              q.PacketSize,
		MaxIncomingStreams:             int64(q.Streams) + 1, // the last answer's acknowledgement may be late
		MaxIncomingUniStreams:          -1,
		MaxStreamReceiveWindow:         q.StreamReceiveWindow,
		MaxConnectionReceiveWindow:     q.ReceiveWindow,
		InitialStreamReceiveWindow:     min(firstWindow, q.StreamReceiveWindow),
		InitialConnectionReceiveWindow: min(firstWindow, q.ReceiveWindow),
		AllowConnectionWindowIncrease:  func(*quic.Conn, uint64) bool { return s.core.deps.Pool.Used() < s.core.deps.Pool.Budget()/2 },
	}
	if q.Idle == 0 {
		config.MaxIdleTimeout = 100 * 365 * 24 * time.Hour
	}
	config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) {
		n := int(s.connected.Load())
		if s.core.stopping.Load() || n >= s.core.cfg.MaxConnections {
			s.core.metrics.refused.Inc()
			return nil, errors.New("too many connections")
		}
		return s.quicWindows(config, n), nil
	}
	return config
}

// Bytes a client may send ahead of being read. They are outside of the buffer budget, so the more
// clients there are the less each gets to begin with.
const (
	firstWindow = 512 << 10
	leastWindow = 16 << 10
)

// quicWindows is config for one more connection beside n others.
func (s *Server) quicWindows(config *quic.Config, n int) *quic.Config {
	share := uint64(s.core.deps.Pool.Budget()) / 16 / uint64(n+1)
	first := min(firstWindow, max(leastWindow, share))
	if first == firstWindow {
		return config
	}
	c := config.Clone()
	c.InitialStreamReceiveWindow = min(first, c.MaxStreamReceiveWindow)
	c.InitialConnectionReceiveWindow = min(first, c.MaxConnectionReceiveWindow)
	return c
}

// serverTLS offers no protocol, as clients ask for none, and accepts the first one that a client asks
// for: TLS would end the handshake over it.
func (q *QUIC) serverTLS() (*tls.Config, error) {
	files := TLS{CertFile: q.CertFile, KeyFile: q.KeyFile}
	if q.SelfSigned {
		files = TLS{SelfSigned: true}
	}
	cert, err := files.certificate()
	if err != nil {
		return nil, err
	}
	plain := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	config := plain.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) == 0 {
			return nil, nil
		}
		chosen := plain.Clone()
		chosen.NextProtos = hello.SupportedProtos[:1]
		return chosen, nil
	}
	return config, nil
}

// acceptQUIC admits connections until the listener closes. Their handshakes are done.
func (s *Server) acceptQUIC() {
	for {
		c, err := s.quic.listener.Accept(context.Background())
		if err != nil {
			return
		}
		if !s.admit(func() connection { return newQUICConn(s, c) }) {
			_ = c.CloseWithError(quicShutdown, "too many connections")
		}
	}
}
