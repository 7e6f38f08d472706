package frontdoor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// everywhere starts a front-door that serves all transports.
func everywhere(t testing.TB, change func(*Config)) *world {
	t.Helper()
	return start(t, func(c *Config) {
		c.QUIC = QUIC{Address: "127.0.0.1:0", SelfSigned: true, Idle: 30 * time.Second}
		c.WebSocket = WebSocket{Address: "127.0.0.1:0"}
		if change != nil {
			change(c)
		}
	})
}

// carriers are the ways a client may come.
var carriers = map[string]struct {
	transport wire.Transport
	dial      func(testing.TB, *world) *client
}{
	"tcp":       {wire.TransportTCP, func(t testing.TB, w *world) *client { return w.dial(t) }},
	"websocket": {wire.TransportWebSocket, func(t testing.TB, w *world) *client { return w.dialWeb(t) }},
	"quic":      {wire.TransportQUIC, func(t testing.TB, w *world) *client { return w.dialQUIC(t) }},
}

// each runs a test over every transport.
func each(t *testing.T, change func(*Config), f func(t *testing.T, w *world, dial func() *client)) {
	for name, carrier := range carriers {
		t.Run(name, func(t *testing.T) {
			w := everywhere(t, change)
			f(t, w, func() *client { return carrier.dial(t, w) })
		})
	}
}

var anyCertificate = &tls.Config{InsecureSkipVerify: true}

func (w *world) dialWeb(t testing.TB) *client {
	t.Helper()
	return newClient(t, websocket.NetConn(context.Background(), w.upgrade(t, "ws"), websocket.MessageBinary))
}

// upgrade opens a WebSocket on a path of the client's choice, offering what the server must ignore.
func (w *world) upgrade(t testing.TB, scheme string) *websocket.Conn {
	t.Helper()
	client := secureClient(anyCertificate)
	ws, response, err := websocket.Dial(context.Background(), scheme+"://"+w.WebSocketAddr().String()+"/any/path?x=1", &websocket.DialOptions{
		HTTPClient: client, Subprotocols: []string{"x"}, CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p, e := response.Header.Get("Sec-WebSocket-Protocol"), response.Header.Get("Sec-WebSocket-Extensions"); p != "" || e != "" {
		t.Errorf("upgraded with subprotocol %q and extensions %q", p, e)
	}
	ws.SetReadLimit(-1)
	t.Cleanup(func() { ws.CloseNow() })
	return ws
}

func (w *world) dialQUIC(t testing.TB) *client {
	t.Helper()
	return newClient(t, newQUICSock(w.connectQUIC(t, anyCertificate)))
}

func (w *world) connectQUIC(t testing.TB, secured *tls.Config) *quic.Conn {
	t.Helper()
	c, err := quic.DialAddr(context.Background(), w.QUICAddr().String(), secured, &quic.Config{MaxIdleTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseWithError(0, "") })
	return c
}

// quicSock sends what is written at once on a stream of its own and reads that stream's answer.
type quicSock struct {
	net.Conn // nil: what is not below is not needed
	conn     *quic.Conn
	stream   *quic.Stream
}

func newQUICSock(c *quic.Conn) *quicSock { return &quicSock{conn: c} }

func (q *quicSock) Write(b []byte) (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if q.stream, err = q.conn.OpenStreamSync(ctx); err != nil {
		return 0, err
	}
	n, err = q.stream.Write(b)
	q.stream.Close() // fails when the server has read enough
	return n, err
}

func (q *quicSock) Read(b []byte) (int, error)         { return q.stream.Read(b) }
func (q *quicSock) SetReadDeadline(at time.Time) error { return q.stream.SetReadDeadline(at) }
func (q *quicSock) Close() error                       { return q.conn.CloseWithError(0, "") }

// abandon ends a client's connection without a word of the protocol.
func (c *client) abandon() { c.sock.Close() }

func TestTransportsServeTheSame(t *testing.T) {
	for name, carrier := range carriers {
		t.Run(name, func(t *testing.T) {
			w := everywhere(t, nil)
			c := carrier.dial(t, w)
			c.ok(c.read(wire.CmdPing, nil))
			if a := c.read(wire.CmdGetClusterMetadata, nil); a.Status != wire.CodeUnauthenticated {
				t.Errorf("metadata before login: %v", a.Status)
			}
			c.session, c.request = 1, 1
			if a := c.call(wire.OpCreateStream, 0, wire.CreateStreamRequest{Name: []byte("x")}.Append(nil)); a.evicted != wire.EvictNoSession {
				t.Errorf("create before login: %v %v", a.Status, a.evicted)
			}
			if a := c.call(wire.OpRegister, 0, loginBody(rootName, "wrong")); a.evicted != wire.EvictInvalidCredentials {
				t.Errorf("wrong password: %v %v", a.Status, a.evicted)
			}
			c.login(rootName, rootPassword)
			c.topic("s", "t", 2)
			for partition, payload := range []string{"x", string(bytes.Repeat([]byte("0123456789"), 500_000))} {
				to := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: uint32(partition)}
				c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", to, payload)))
				got := c.ok(c.read(wire.CmdPollMessages, pollBody("s", "t", wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, wire.SelectPartition(uint32(partition)))))
				if !bytes.Contains(got, []byte(payload)) {
					t.Errorf("a message of %d bytes came back as %d bytes of something else", len(payload), len(got))
				}
			}
			me, err := wire.DecodeClientDetails(c.ok(c.read(wire.CmdGetMe, nil)))
			if err != nil || me.Transport != carrier.transport {
				t.Errorf("transport %d, want %d (%v)", me.Transport, carrier.transport, err)
			}
			roster, err := wire.DecodeClusterMetadata(c.ok(c.read(wire.CmdGetClusterMetadata, nil)))
			if err != nil {
				t.Fatal(err)
			}
			node := roster.Nodes[0]
			if int(node.QUIC) != w.QUICAddr().(*net.UDPAddr).Port || int(node.WebSocket) != w.WebSocketAddr().(*net.TCPAddr).Port || node.QUIC == 0 || node.WebSocket == 0 {
				t.Errorf("roster shows quic %d and websocket %d", node.QUIC, node.WebSocket)
			}
			c.ok(c.call(wire.OpLogout, 0, nil))
			if a := c.read(wire.CmdGetMe, nil); a.Status != wire.CodeUnauthenticated {
				t.Errorf("after logout: %v", a.Status)
			}
		})
	}
}

// A connection that ends leaves its consumer groups and the list of clients.
func TestTransportsLogOutWhoeverIsGone(t *testing.T) {
	each(t, nil, func(t *testing.T, w *world, dial func() *client) {
		watcher, c := w.root(t), dial().login(rootName, rootPassword)
		watcher.topic("s", "t", 1)
		watcher.ok(watcher.call(wire.OpCreateGroup, 0, wire.CreateGroupRequest{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Name: []byte("g")}.Append(nil)))
		c.ok(c.call(wire.OpJoinGroup, 0, wire.GroupTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Group: wire.NamedID("g")}.Append(nil)))
		if n := len(w.meta.View().Memberships(c.id)); n != 1 {
			t.Fatalf("%d memberships", n)
		}
		c.abandon()
		eventually(t, "the membership to end", func() bool { return len(w.meta.View().Memberships(c.id)) == 0 })
		eventually(t, "one client to be left", func() bool { return w.core.clients.len() == 1 })
		watcher.ok(watcher.read(wire.CmdPing, nil))
	})
}

// A group member that is silent is evicted; the next thing it reads says so.
func TestTransportsDeliverEvictions(t *testing.T) {
	each(t, func(c *Config) { c.Heartbeat = 200 * time.Millisecond }, func(t *testing.T, w *world, dial func() *client) {
		maker, c := w.root(t), dial().login(rootName, rootPassword)
		maker.topic("s", "t", 1)
		maker.ok(maker.call(wire.OpCreateGroup, 0, wire.CreateGroupRequest{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Name: []byte("g")}.Append(nil)))
		c.ok(c.call(wire.OpJoinGroup, 0, wire.GroupTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Group: wire.NamedID("g")}.Append(nil)))
		eventually(t, "the member to be gone", func() bool { return len(w.meta.View().Memberships(c.id)) == 0 })
		if q, ok := c.sock.(*quicSock); ok {
			eventually(t, "the eviction to be waiting", func() bool { return w.parked() })
			_ = q
			h := c.header(wire.OpNonReplicated, wire.CmdPing, nil)
			c.write(frameOf(h, nil))
		}
		if a := c.next(); a.evicted != wire.EvictStaleClient {
			t.Errorf("read %v %v instead of an eviction", a.Status, a.evicted)
		}
		if a := c.read(wire.CmdGetStreams, nil); a.Status != wire.CodeUnauthenticated {
			t.Errorf("after the eviction: %v", a.Status)
		}
		c.login(rootName, rootPassword)
	})
}

// parked reports whether an eviction waits for a client's next request.
func (w *world) parked() bool {
	w.Server.mu.Lock()
	defer w.Server.mu.Unlock()
	for c := range w.conns {
		if q, ok := c.(*quicConn); ok {
			q.mu.Lock()
			waits := len(q.parked) > 0
			q.mu.Unlock()
			if waits {
				return true
			}
		}
	}
	return false
}

// What does not fit the budget is refused with the retryable code and costs nobody else anything.
func TestTransportsOverBudget(t *testing.T) {
	for name, carrier := range carriers {
		t.Run(name, func(t *testing.T) {
			w := startBudget(t, 1<<20, func(c *Config) {
				c.QUIC, c.WebSocket = QUIC{Address: "127.0.0.1:0", SelfSigned: true}, WebSocket{Address: "127.0.0.1:0"}
				c.BusyFor = 20 * time.Millisecond
			})
			c := carrier.dial(t, w).login(rootName, rootPassword)
			body := make([]byte, 4<<20)
			c.write(frameOf(c.header(wire.OpSendMessages, 0, body), body))
			if a := c.next(); a.Status != wire.CodeTransientNotAccepted || a.Operation != wire.OpSendMessages {
				t.Errorf("status %v, operation %v", a.Status, a.Operation)
			}
			c.ok(c.read(wire.CmdPing, nil))
		})
	}
}

// A client that does not read is cut off instead of holding a reply for ever.
func TestTransportsCutOffSlowReaders(t *testing.T) {
	each(t, func(c *Config) { c.WriteGrace = 500 * time.Millisecond }, func(t *testing.T, w *world, dial func() *client) {
		maker := w.root(t)
		maker.topic("s", "t", 1)
		for range 4 {
			maker.ok(maker.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, string(make([]byte, 4<<20)))))
		}
		maker.abandon()
		eventually(t, "the maker to be gone", func() bool { return w.core.clients.len() == 0 })
		c := dial().login(rootName, rootPassword)
		body := pollBody("s", "t", wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, wire.SelectPartition(0))
		c.write(frameOf(c.header(wire.OpNonReplicated, wire.CmdPollMessages, body), body))
		eventually(t, "the connection to be closed", func() bool { return w.core.clients.len() == 0 })
		eventually(t, "its buffers to come back", func() bool { return w.pool.Used() == 0 })
	})
}

// A stop lets the request at hand finish and its reply arrive, and does not wait for idle clients.
func TestTransportsStop(t *testing.T) {
	each(t, nil, func(t *testing.T, w *world, dial func() *client) {
		idle, c := dial(), dial().login(rootName, rootPassword)
		idle.ok(idle.read(wire.CmdPing, nil))
		c.topic("s", "t", 1)
		arrived, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		w.parts.answer(func(*link.Call) bool {
			once.Do(func() { close(arrived) })
			<-goOn
			return false
		})
		body := sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "x")
		c.write(frameOf(c.header(wire.OpSendMessages, 0, body), body))
		<-arrived
		stopped := make(chan error, 1)
		begun := time.Now()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			stopped <- w.Stop(ctx)
		}()
		eventually(t, "the stop to begin", w.core.stopping.Load)
		close(goOn)
		c.ok(c.next())
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("stop took %v", took)
		}
		if _, err := idle.receive(); err == nil || timedOut(err) {
			t.Errorf("an idle client reads %v instead of the end", err)
		}
	})
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// Connections of all transports count together.
func TestTransportsShareTheLimit(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.MaxConnections = 3 })
	for _, carrier := range carriers {
		c := carrier.dial(t, w)
		c.ok(c.read(wire.CmdPing, nil))
	}
	beyond, err := net.Dial("tcp", w.WebSocketAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer beyond.Close()
	beyond.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := beyond.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a fourth socket reads %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if c, err := quic.DialAddr(ctx, w.QUICAddr().String(), anyCertificate, nil); err == nil {
		c.CloseWithError(0, "")
		t.Error("a fifth connection was accepted")
	}
}
