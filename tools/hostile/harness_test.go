package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/process"
)

// answerTime is how long an answer may take before the server counts as silent. Machines that run
// tests are busy.
const answerTime = 20 * time.Second

// serverBinary is the server under test.
var serverBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "hostile")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if serverBinary, err = process.Build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// server is a running process.
type server struct {
	*process.Server
	t testing.TB
}

func start(t testing.TB, env map[string]string) server {
	t.Helper()
	s := server{process.New(serverBinary, t.TempDir(), env), t}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill() })
	return s
}

// connect logs in with the client that keeps the rules. It repeats nothing.
func (s server) connect() *client.Client {
	s.t.Helper()
	c, err := client.Dial(context.Background(), client.Options{
		Address: s.Address(), Username: "iggy", Password: "iggy", Timeout: answerTime, RetryFor: -1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// topic makes a stream s with a topic t.
func (s server) topic(partitions uint32) {
	s.t.Helper()
	c := s.connect()
	defer c.Close()
	if _, err := c.CreateStream("s"); err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("t"), PartitionsCount: partitions}); err != nil {
		s.t.Fatal(err)
	}
}

var stream, topic = wire.NamedID("s"), wire.NamedID("t")

func partition(id uint32) wire.Partitioning {
	return wire.Partitioning{Kind: wire.PartitioningPartition, Partition: id}
}

func pollFrom(part uint32, offset uint64, count uint32) wire.PollMessagesRequest {
	return wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: stream, Topic: topic,
		Partition: wire.SelectPartition(part), Strategy: wire.Strategy{Kind: wire.StrategyOffset, Value: offset}, Count: count,
	}
}

// sealed is a batch of one message.
func sealed(payload []byte) []byte {
	var b client.Batch
	b.Reset(1)
	b.Add(wire.U128{}, payload, nil)
	return b.Seal()
}

// memory reads a line of the process's status in bytes: VmRSS, or VmHWM for the most it ever was.
func (s server) memory(line string) int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	if err != nil {
		s.t.Fatal(err)
	}
	for row := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(row, []byte(line+":")); ok {
			n, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n << 10
		}
	}
	s.t.Fatalf("no %s in\n%s", line, text)
	return 0
}

// raw is a connection that keeps no rules.
type raw struct {
	net.Conn
	t       testing.TB
	client  wire.U128
	session uint64
	request uint64
}

// clients counts raw connections: each is a client of its own.
var clients atomic.Uint64

func (s server) raw() *raw {
	s.t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return &raw{Conn: c, t: s.t, client: wire.U128{Lo: clients.Add(1)}, request: 1}
}

// authenticated is a raw connection with a session.
func (s server) authenticated() *raw {
	s.t.Helper()
	r := s.raw()
	if err := r.login("iggy", "iggy"); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (r *raw) login(username, password string) error {
	body := loginBody(username, password)
	if _, err := r.Write(r.ask(wire.OpRegister, 0, body)); err != nil {
		return err
	}
	answer, err := r.receive()
	if err != nil {
		return err
	}
	if wire.Command(answer[60]) != wire.CommandReply {
		return fmt.Errorf("login answered with command %d", answer[60])
	}
	if code := status(answer); code != 0 {
		return code
	}
	reply, err := wire.DecodeLoginReply(answer[wire.HeaderSize:])
	r.session = reply.Session
	return err
}

// status of a reply; an eviction has none.
func status(answer []byte) wire.Code {
	var h wire.ReplyHeader
	_ = h.Decode(answer)
	return h.Status
}

func loginBody(username, password string) []byte {
	prefix := wire.LoginPrefix{ProtocolVersion: client.ProtocolVersion, SDKName: []byte("hostile"), SDKVersion: []byte("1")}
	return wire.LoginRequest{Username: []byte(username), Password: []byte(password)}.Append(prefix.Append(nil))
}

// frame puts a header in front of a body.
func frame(h wire.RequestHeader, body []byte) []byte {
	if h.Client.IsZero() {
		h.Client.Lo = 7
	}
	h.Size = uint32(wire.HeaderSize + len(body))
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(body))
	h.Put(b)
	return append(b, body...)
}

// ask is a request of this connection as far as its header goes.
func (r *raw) ask(op wire.Operation, code wire.Cmd, body []byte) []byte {
	h := wire.RequestHeader{Client: r.client, Operation: op, Code: code, Session: max(1, r.session), Request: r.request}
	if op == wire.OpRegister {
		h.Session, h.Request = 0, 0
	}
	return frame(h, body)
}

// receive reads one frame.
func (r *raw) receive() ([]byte, error) {
	r.SetReadDeadline(time.Now().Add(answerTime))
	b := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(b[48:])
	if size < wire.HeaderSize || size > wire.MaxFrameSize {
		return nil, fmt.Errorf("answer of %d bytes", size)
	}
	b = append(b, make([]byte, size-wire.HeaderSize)...)
	_, err := io.ReadFull(r, b[wire.HeaderSize:])
	return b, err
}

// answered sends a frame and wants a reply or an eviction; what tells of it when there is none.
func (r *raw) answered(what string, b []byte) []byte {
	r.t.Helper()
	if _, err := r.Write(b); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	answer, err := r.receive()
	if err != nil {
		r.t.Fatalf("%s: no answer: %v", what, err)
	}
	if c := wire.Command(answer[60]); c != wire.CommandReply && c != wire.CommandEviction {
		r.t.Fatalf("%s: answered with command %d", what, c)
	}
	return answer
}

// ended wants the server to close the connection, whatever it says before.
func (r *raw) ended(what string, within time.Duration) {
	r.t.Helper()
	r.SetReadDeadline(time.Now().Add(within))
	if _, err := io.Copy(io.Discard, r); err != nil && !isReset(err) {
		r.t.Errorf("%s: not closed: %v", what, err)
	}
}

// isReset reports whether an error is the other side's abrupt end: it closed while bytes were on
// their way to it.
func isReset(err error) bool { return isErrno(err, syscall.ECONNRESET) || isErrno(err, syscall.EPIPE) }
