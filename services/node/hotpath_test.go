//go:build !poison

package node

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
)

// hotPath is a whole node on the file system of the machine and one client of it, whose own side
// allocates nothing: what is counted is the node.
type hotPath struct {
	rig
	t     testing.TB
	sock  net.Conn
	reply []byte
	last  wire.ReplyHeader
	call  *link.Call
}

const hotPassword = "correct horse"

func startHotPath(t testing.TB) *hotPath {
	t.Helper()
	c := rigConfig(func(c *service.Config) {
		c.Journal, c.Limits, c.Node.Loops = defaults.Journal, defaults.Limits, 1
		c.TCP.Address = "127.0.0.1:0"
		c.HTTP.Enabled, c.QUIC.Enabled, c.WebSocket.Enabled = false, false, false
	})
	h := &hotPath{t: t, reply: make([]byte, 4<<20), call: link.NewCall()}
	h.client = wire.U128{Lo: 7, Hi: 1}
	h.node = newNode(vfs.NewOS(t.TempDir()), c, hclog.NewNullLogger(), prometheus.NewRegistry())
	h.makeRoot = func() (metadata.RootUser, error) {
		return metadata.RootUser{Name: "root", PasswordHash: frontdoor.HashPassword([]byte(hotPassword))}, nil
	}
	for _, step := range []func() error{
		func() (err error) { h.lock, err = h.claim(); return err }, h.openRoles, h.openFront,
		func() (err error) { h.sock, err = net.Dial("tcp", h.front.Addr().String()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = h.sock.Close()
		if err := h.halt(); err != nil {
			t.Error(err)
		}
	})
	h.sock.SetDeadline(time.Now().Add(10 * time.Minute))
	body := wire.LoginPrefix{ProtocolVersion: wire.ProtocolVersion, SDKName: []byte("test"), SDKVersion: []byte("1")}.Append(nil)
	body = wire.LoginRequest{Username: []byte("root"), Password: []byte(hotPassword)}.Append(body)
	login, err := wire.DecodeLoginReply(h.ask(h.frame(wire.OpRegister, 0, body)))
	if err != nil {
		t.Fatal(err)
	}
	h.epoch = login.Session
	h.ask(h.frame(wire.OpCreateStream, 0, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil)))
	h.ask(h.frame(wire.OpCreateTopic, 0, wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: 2, Name: []byte("t")}.Append(nil)))
	return h
}

func (h *hotPath) frame(op wire.Operation, code wire.Cmd, body []byte) []byte {
	q := wire.RequestHeader{Size: uint32(wire.HeaderSize + len(body)), Client: h.client, Operation: op, Code: code, Session: h.epoch}
	if op != wire.OpRegister {
		h.asked++
		q.Request = h.asked
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(body))
	q.Put(b)
	return append(b, body...)
}

// ask sends a frame over the socket and returns the body of the reply, valid until the next ask.
func (h *hotPath) ask(frame []byte) []byte {
	if _, err := h.sock.Write(frame); err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.ReadFull(h.sock, h.reply[:wire.HeaderSize]); err != nil {
		h.t.Fatal(err)
	}
	if err := h.last.Decode(h.reply); err != nil || h.last.Status != 0 {
		h.t.Fatal(err, h.last.Status)
	}
	body := h.reply[wire.HeaderSize:h.last.Size]
	if _, err := io.ReadFull(h.sock, body); err != nil {
		h.t.Fatal(err)
	}
	return body
}

func hotTarget(partition uint32) wire.OffsetTarget {
	return offsetTarget("t", partition, consumer{wire.ConsumerSingle, 1})
}

// hotTake is one way through the node, ready to be taken again and again.
type hotTake struct {
	name     string
	messages int
	bytes    int
	take     func()
}

// paths are sends and polls of batches, small ones that travel in the log and large ones that
// stand in their segment, through the link alone and through a socket.
func (h *hotPath) paths() []hotTake {
	var all []hotTake
	for partition, kind := range []struct {
		name           string
		messages, size int
	}{{"10 x 200 B", 10, 200}, {"1000 x 1000 B", 1000, 1000}} {
		payloads := make([][]byte, kind.messages)
		for i := range payloads {
			payloads[i] = payload(uint32(i), kind.size)
		}
		sealed := batch(payloads...)
		sendBody := wire.SendMessagesRequest{
			Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), MessagesCount: uint32(kind.messages),
			Partitioning: wire.Partitioning{Kind: wire.PartitioningPartition, Partition: uint32(partition)}, Batch: sealed,
		}.Append(nil)
		target := hotTarget(uint32(partition))
		pollBody := wire.PollMessagesRequest{
			Consumer: target.Consumer, Stream: target.Stream, Topic: target.Topic, Partition: target.Partition,
			Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: uint32(kind.messages),
		}.Append(nil)
		sendFrame, pollFrame := h.frame(wire.OpSendMessages, 0, sendBody), h.frame(wire.OpNonReplicated, wire.CmdPollMessages, pollBody)
		group := h.group("t", uint32(partition))
		add := func(name string, take func()) {
			all = append(all, hotTake{name + ", " + kind.name, kind.messages, len(sealed), take})
		}
		add("link/send", func() { h.linkSend(group, sealed) })
		add("link/poll", func() { h.linkPoll(group, pollBody, len(sealed)) })
		add("socket/send", func() { h.ask(sendFrame) })
		add("socket/poll", func() {
			if b := h.ask(pollFrame); len(b) != wire.PollHeaderSize+len(sealed) {
				h.t.Fatalf("%d bytes polled of %d", len(b), len(sealed))
			}
		})
	}
	return all
}

func (h *hotPath) prepareCall(group uint64, op wire.Operation) *link.Call {
	c := h.call
	c.Reset()
	c.Group, c.MetadataOp = group, h.metadata.View().Op
	c.Header = wire.RequestHeader{Operation: op, Client: h.client, Session: h.epoch, Group: group}
	c.Connection = wire.U128{Lo: 99, Hi: h.epoch}
	return c
}

func (h *hotPath) serve(c *link.Call) {
	h.partition.Serve(c)
	<-c.Done()
	if c.Status != 0 {
		h.t.Fatal(c.Status)
	}
}

func (h *hotPath) linkSend(group uint64, batch []byte) {
	const before = wire.HeaderSize + 64
	f, ok := h.pool.Wait(before+len(batch), time.Second)
	if !ok {
		h.t.Fatal("no buffer")
	}
	copy(f.Bytes()[before:], batch)
	h.writes++
	c := h.prepareCall(group, wire.OpSendMessages)
	c.Frame, c.Body, c.BodyStart, c.Sequence = f, f.Bytes()[before:], before, h.writes
	h.serve(c)
	if c.Frame != nil {
		c.Frame.Release()
	}
}

func (h *hotPath) linkPoll(group uint64, body []byte, want int) {
	c := h.prepareCall(group, wire.OpNonReplicated)
	c.Header.Code, c.ConsumerKind, c.ConsumerID, c.Body = wire.CmdPollMessages, wire.ConsumerSingle, 1, body
	h.serve(c)
	if c.OutFrame == nil || c.OutFrame.Len() != wire.HeaderSize+wire.PollHeaderSize+want {
		h.t.Fatal("poll: not the batch that was sent")
	}
	c.OutFrame.Release()
}

// TestHotPathAllocations: no path allocates per message; a batch costs at most two objects, the
// background work it causes included.
func TestHotPathAllocations(t *testing.T) {
	for _, p := range startHotPath(t).paths() {
		t.Run(p.name, func(t *testing.T) {
			if testing.Short() && p.messages > 10 {
				t.Skip("long under the race detector")
			}
			for range 64 {
				p.take()
			}
			if n := testing.AllocsPerRun(200, p.take); n > 2 {
				t.Errorf("%v objects per batch", n)
			}
		})
	}
}

func BenchmarkHotPath(b *testing.B) {
	for _, p := range startHotPath(b).paths() {
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(int64(p.bytes))
			b.ReportAllocs()
			p.take()
			for b.Loop() {
				p.take()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(p.messages), "µs/msg")
		})
	}
}
