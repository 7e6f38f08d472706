//go:build !poison

package frontdoor

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// echoService answers without work: what is measured is the front-door.
type echoService struct {
	pool  *buffer.Pool
	reply []byte
}

func (e *echoService) Serve(c *link.Call) {
	if c.Header.Operation == wire.OpSendMessages {
		c.Out = wire.AppendConfirmation(c.Out, wire.Confirmation{})
	} else {
		c.OutFrame, _ = e.pool.Try(wire.HeaderSize + len(e.reply))
		copy(c.OutFrame.Bytes()[wire.HeaderSize:], e.reply)
	}
	c.Finish()
}

type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error)       { return len(b), nil }
func (discard) SetWriteDeadline(time.Time) error  { return nil }
func (discard) SetReadDeadline(t time.Time) error { return nil }
func (discard) Read([]byte) (int, error)          { return 0, io.EOF }
func (discard) RemoteAddr() net.Addr              { return &net.TCPAddr{} }

// hot is a logged-in connection over services that cost nothing.
func hot(t testing.TB) (c *conn, send, poll []byte) {
	w := start(t, nil)
	peer := w.root(t)
	peer.topic("stream", "topic", 4)
	echo := &echoService{pool: w.pool, reply: append(wire.PollHeader{MessagesCount: 100}.Append(nil), batchOf(t, make([]string, 100)...)...)}
	w.core.deps.Partitions = func(uint64) link.Service { return echo }
	c = newConn(w.Server, discard{})
	w.core.clients.add(c.session)
	w.core.clients.bind(c.session, &binding{client: peer.id, session: peer.session})
	body := sendBody(t, "stream", "topic", wire.Partitioning{Kind: wire.PartitioningBalanced}, make([]string, 100)...)
	send = frameOf(peer.header(wire.OpSendMessages, 0, body), body)
	body = pollBody("stream", "topic", wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NamedID("consumer")}, wire.SelectPartition(0))
	poll = frameOf(peer.header(wire.OpNonReplicated, wire.CmdPollMessages, body), body)
	return c, send, poll
}

func (c *conn) handleSend(frame []byte) bool {
	f, _ := c.core.deps.Pool.Try(len(frame))
	copy(f.Bytes(), frame)
	return c.handle(f.Bytes(), f)
}

// A batch costs at most two objects, whatever it holds.
func TestHotPathsAllocateNothing(t *testing.T) {
	c, send, poll := hot(t)
	for what, serve := range map[string]func(){
		"send": func() { c.handleSend(send) },
		"poll": func() { c.handle(poll, nil) },
	} {
		serve()
		if c.session.status != 0 {
			t.Fatalf("%s: %v", what, c.session.status)
		}
		if n := testing.AllocsPerRun(200, serve); n > 2 {
			t.Errorf("%s: %v objects per batch", what, n)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	c, send, _ := hot(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(send)))
	for b.Loop() {
		c.handleSend(send)
	}
}

func BenchmarkPoll(b *testing.B) {
	c, _, poll := hot(b)
	b.ReportAllocs()
	for b.Loop() {
		c.handle(poll, nil)
	}
}

// BenchmarkIdleConnection reports what a connection that waits for its next request costs in memory.
func BenchmarkIdleConnection(b *testing.B) {
	w := start(b, func(c *Config) { c.MaxConnections = 1 << 20 })
	in := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := in()
	clients := make([]*client, 0, b.N)
	for b.Loop() {
		c := w.dial(b)
		c.ok(c.read(wire.CmdPing, nil))
		clients = append(clients, c)
	}
	b.ReportMetric(float64(in()-before)/float64(len(clients)), "B/conn")
	for _, c := range clients {
		c.sock.Close()
	}
	eventually(b, "all to be gone", func() bool { return w.core.clients.len() == 0 })
}
