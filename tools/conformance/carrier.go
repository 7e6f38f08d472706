package conformance

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
)

// Carriers are the transports scenarios can be played over.
var Carriers = []string{"tcp", "websocket", "quic"}

// dialTime bounds the opening of a connection.
const dialTime = 5 * time.Second

// bound is a server that tells where its other listeners stand.
type bound interface{ Bound(section string) string }

// dialCarrier opens a client connection to s over a carrier; "" is TCP.
func dialCarrier(s Server, carrier string) (*conn, error) {
	if carrier == "" || carrier == "tcp" {
		return dial(s.Address())
	}
	b, ok := s.(bound)
	if !ok {
		return nil, ErrFixed
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	address := b.Bound(carrier)
	if address == "" {
		return nil, fmt.Errorf("the server has no %s listener", carrier)
	}
	if carrier == "websocket" {
		return dialWebSocket(ctx, address)
	}
	return dialQUIC(ctx, address)
}

// recorded makes the answer to a request look as if it had come over TCP, which is what was recorded:
// descriptions of clients name the transport. A wrong name stays as it is.
func recorded(carrier string, request, answer []byte) {
	if request[offReqOp] != opNonReplicated || len(answer) < headerSize {
		return
	}
	number := map[string]byte{"websocket": 4, "quic": 2}[carrier]
	code := binary.LittleEndian.Uint32(request[offReqCode:])
	if code != codeGetMe && code != codeGetClient && code != codeGetClients {
		return
	}
	for at := headerSize; at+13 <= len(answer); { // id, user, transport, length, address, groups
		if answer[at+8] == number {
			answer[at+8] = 1
		}
		at += 17 + int(binary.LittleEndian.Uint32(answer[at+9:]))
		if code != codeGetClients {
			return // memberships follow
		}
	}
}

// pushes reports whether the server sends something in s that no request asked for.
func (s *Scenario) pushes() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Do == "recv" && step.Expect == "eviction" })
}

// messages is a connection whose frames are sent each as a whole. What is written at once is one.
type messages struct {
	net.Conn // nil: what is not below is not used
	post     func([]byte) error
	end      func()
	arrived  chan []byte // closed at the end of the connection
	rest     []byte      // unread part of the newest
	deadline time.Time
}

func (m *messages) SetWriteDeadline(time.Time) error   { return nil }
func (m *messages) SetReadDeadline(at time.Time) error { m.deadline = at; return nil }
func (m *messages) Close() error                       { m.end(); return nil }

// Write sends each frame of b as a message; what is no frame goes out as it is.
func (m *messages) Write(b []byte) (int, error) {
	for left := b; ; {
		n := len(left)
		if n > headerSize {
			if size := binary.LittleEndian.Uint32(left[offSize:]); size >= headerSize && int64(size) < int64(n) {
				n = int(size)
			}
		}
		if err := m.post(left[:n]); err != nil {
			return 0, err
		}
		if left = left[n:]; len(left) == 0 {
			return len(b), nil
		}
	}
}

func (m *messages) Read(b []byte) (int, error) {
	if len(m.rest) == 0 {
		late := time.NewTimer(time.Until(m.deadline))
		defer late.Stop()
		select {
		case next, ok := <-m.arrived:
			if !ok {
				return 0, io.EOF
			}
			m.rest = next
		case <-late.C:
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(b, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// arrivals is how many answers may wait to be read by a scenario.
const arrivals = 64

func dialWebSocket(ctx context.Context, address string) (*conn, error) {
	ws, _, err := websocket.Dial(ctx, "ws://"+address, nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxReply)
	m := &messages{arrived: make(chan []byte, arrivals)}
	m.post = func(b []byte) error { return ws.Write(context.Background(), websocket.MessageBinary, b) }
	m.end = func() { _ = ws.CloseNow() }
	go func() {
		defer close(m.arrived)
		for {
			_, b, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			m.arrived <- b
		}
	}()
	return &conn{m}, nil
}

func dialQUIC(ctx context.Context, address string) (*conn, error) {
	c, err := quic.DialAddr(ctx, address, &tls.Config{InsecureSkipVerify: true}, &quic.Config{MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	streams := make(chan *quic.Stream, arrivals)
	m := &messages{arrived: make(chan []byte, arrivals)}
	m.post = func(b []byte) error {
		ctx, cancel := context.WithTimeout(context.Background(), dialTime)
		defer cancel()
		stream, err := c.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		if _, err := stream.Write(b); err != nil {
			return err
		}
		_ = stream.Close() // fails when the server has read enough
		streams <- stream
		return nil
	}
	m.end = func() { _ = c.CloseWithError(0, "") }
	go func() {
		defer close(m.arrived)
		for {
			select {
			case stream := <-streams:
				b, err := io.ReadAll(stream)
				if err != nil || len(b) == 0 { // a bare end stands for the end of a TCP connection
					return
				}
				m.arrived <- b
			case <-c.Context().Done():
				return
			}
		}
	}()
	return &conn{m}, nil
}
