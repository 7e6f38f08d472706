package frontdoor

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// world is a front-door over the real metadata state machine and a partition service in memory.
type world struct {
	*Server
	meta  *fakeMetadata
	parts *fakePartitions
	pool  *buffer.Pool
}

const rootName, rootPassword = "iggy", "iggy"

var rootHash = sync.OnceValue(func() string { return HashPassword([]byte(rootPassword)) })

func start(t testing.TB, change func(*Config)) *world {
	t.Helper()
	return startBudget(t, 256<<20, change)
}

func startBudget(t testing.TB, budget int64, change func(*Config)) *world {
	t.Helper()
	cfg := Config{Address: "127.0.0.1:0", ClusterID: wire.U128{Lo: 7}}
	if change != nil {
		change(&cfg)
	}
	w := &world{meta: newFakeMetadata(), pool: buffer.NewPool(budget)}
	w.parts = &fakePartitions{pool: w.pool, logs: make(map[uint64]*fakeLog)}
	server, err := New(cfg, Deps{
		Metadata: w.meta, Partitions: func(uint64) link.Service { return w.parts }, Follower: w.meta, Pool: w.pool,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	w.Server = server
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		if used := w.pool.Used(); used != 0 {
			t.Errorf("%d bytes of buffers still taken after stop", used)
		}
	})
	return w
}

// fakeMetadata orders requests the moment they come and applies them with the real state machine.
type fakeMetadata struct {
	mu      sync.Mutex
	view    atomic.Pointer[metadata.View]
	changed chan struct{}
	refuse  func(c *link.Call) bool // answers the call instead when true
	calls   atomic.Int64
}

func newFakeMetadata() *fakeMetadata {
	m := &fakeMetadata{changed: make(chan struct{})}
	m.view.Store(metadata.New(metadata.RootUser{Name: rootName, PasswordHash: rootHash()}, metadata.Limits{}))
	return m
}

func (m *fakeMetadata) View() *metadata.View { return m.view.Load() }

func (m *fakeMetadata) Wait(op uint64, _ time.Duration) bool { return m.View().Op >= op }

func (m *fakeMetadata) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// answer has the calls from here on answered by with where that returns true. It runs under mu.
func (m *fakeMetadata) answer(with func(*link.Call) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = with
}

func (m *fakeMetadata) Serve(c *link.Call) {
	m.calls.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer c.Finish()
	if m.refuse != nil && m.refuse(c) {
		return
	}
	m.serve(c)
}

func (m *fakeMetadata) serve(c *link.Call) {
	v, h := m.view.Load(), &c.Header
	verdict := v.Preflight(h.Client, h.Session, h.Request, h.RequestChecksum)
	if h.Operation == wire.OpRegister {
		verdict = v.PreflightRegister(h.Client, h.UserID)
	}
	switch verdict.Action {
	case metadata.ActionAdmit:
	case metadata.ActionReplay:
		c.ReplyOp, c.Op = verdict.Reply.Header.Operation, verdict.Reply.Header.Op
		c.Out = append(c.Out, verdict.Reply.Body...)
		return
	case metadata.ActionResult:
		c.Out = wire.AppendRejection(c.Out, verdict.Code)
		return
	case metadata.ActionEvict:
		c.Evict = verdict.Evict
		return
	default:
		c.Status = verdict.Code
		return
	}
	op, body := h.Operation, c.Body
	if op != wire.OpRegister && op != wire.OpLogout && op != wire.OpTruncatePartition {
		var code wire.Code
		if op, body, code = v.Admit(nil, &metadata.Request{Operation: op, Body: c.Body, UserID: h.UserID, Client: h.Client}); code != 0 {
			c.Status = code
			return
		}
	}
	p := wire.PrepareHeader{
		Client: h.Client, Op: v.Op + 1, Timestamp: v.Time + 1, Request: h.Request, RequestChecksum: h.RequestChecksum,
		Operation: op, UserID: h.UserID, Group: wire.MetadataGroup,
	}
	next, reply := v.Apply(&p, body)
	m.view.Store(next)
	close(m.changed)
	m.changed = make(chan struct{})
	c.ReplyOp, c.Op, c.Commit, c.Time = op, p.Op, p.Op, p.Timestamp
	c.Out = append(c.Out, reply.Body...)
}

// fakePartitions keeps batches and offsets in memory.
type fakePartitions struct {
	pool   *buffer.Pool
	mu     sync.Mutex
	logs   map[uint64]*fakeLog
	refuse func(c *link.Call) bool
	facts  atomic.Int64 // requests for facts
	writes []uint64     // sequence numbers of sends as they came, repeats included
}

type fakeLog struct {
	batches []byte
	next    uint64
	offsets map[[2]uint32]uint64
}

// answer has the calls from here on answered by with where that returns true. It runs under mu.
func (f *fakePartitions) answer(with func(*link.Call) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = with
}

// numbers are the sequence numbers of sends so far.
func (f *fakePartitions) numbers() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.writes)
}

// stored is the number of messages in a partition.
func (f *fakePartitions) stored(group uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs[group].next
}

func (f *fakePartitions) Serve(c *link.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer c.Finish()
	if c.Header.Operation == wire.OpSendMessages {
		f.writes = append(f.writes, c.Sequence)
	}
	if f.refuse != nil && f.refuse(c) {
		return
	}
	log := f.logs[c.Group]
	if log == nil {
		log = &fakeLog{offsets: make(map[[2]uint32]uint64)}
		f.logs[c.Group] = log
	}
	switch {
	case c.Internal == link.InternalFacts:
		f.answerFacts(c)
	case c.Internal == link.InternalSealed:
		c.Out = binary.LittleEndian.AppendUint64(c.Out, 0)
	case c.Header.Operation == wire.OpSendMessages:
		log.send(c)
	case c.Header.Operation == wire.OpStoreOffset:
		q, _ := wire.DecodeStoreOffset(c.Body)
		log.offsets[[2]uint32{uint32(c.ConsumerKind), c.ConsumerID}] = q.Offset
		c.Out = wire.AppendSuccess(c.Out)
	case c.Header.Operation == wire.OpDeleteOffset:
		delete(log.offsets, [2]uint32{uint32(c.ConsumerKind), c.ConsumerID})
		c.Out = wire.AppendSuccess(c.Out)
	case c.Header.Code == wire.CmdGetOffset:
		if at, ok := log.offsets[[2]uint32{uint32(c.ConsumerKind), c.ConsumerID}]; ok {
			c.Out = wire.OffsetRecord{StoredOffset: at}.Append(c.Out)
		}
	default:
		f.poll(c, log)
	}
}

func (f *fakePartitions) answerFacts(c *link.Call) {
	f.facts.Add(1)
	for b := c.Body; len(b) >= 8; b = b[8:] {
		id := binary.LittleEndian.Uint64(b)
		fact := link.Fact{Group: id, Segments: 1}
		if log := f.logs[id]; log != nil && log.next > 0 {
			fact.Messages, fact.Bytes, fact.CurrentOffset = log.next, uint64(len(log.batches)), log.next-1
		}
		c.Out = link.AppendFact(c.Out, fact)
	}
}

func (l *fakeLog) send(c *link.Call) {
	if c.BodyStart < wire.HeaderSize || &c.Frame.Bytes()[c.BodyStart] != &c.Body[0] {
		panic("the batch has no room for a prepare header in front of it")
	}
	stream, topic, partition, _ := wire.SplitGroupID(c.Group)
	wire.StampBatch(c.Body, partition, l.next, 1)
	var h wire.BatchHeader
	h.Decode(c.Body)
	c.Out = wire.AppendConfirmation(c.Out, wire.Confirmation{Stream: stream, Topic: topic, Partition: partition, BaseOffset: l.next})
	l.next += uint64(h.MessageCount)
	l.batches = append(l.batches, c.Body...)
	c.ReplyOp, c.Op = wire.OpSendMessages, l.next
}

func (f *fakePartitions) poll(c *link.Call, log *fakeLog) {
	frame, ok := f.pool.Try(wire.HeaderSize + wire.PollHeaderSize + len(log.batches))
	if !ok {
		c.Status = wire.CodeTransientNotAccepted
		return
	}
	_, _, partition, _ := wire.SplitGroupID(c.Group)
	wire.PollHeader{Partition: partition, CurrentOffset: max(log.next, 1) - 1, MessagesCount: uint32(log.next)}.Put(frame.Bytes()[wire.HeaderSize:])
	copy(frame.Bytes()[wire.HeaderSize+wire.PollHeaderSize:], log.batches)
	c.OutFrame = frame
}

// client speaks frames over one socket.
type client struct {
	t       testing.TB
	sock    net.Conn
	id      wire.U128
	session uint64
	request uint64
}

func (w *world) dial(t testing.TB) *client {
	t.Helper()
	sock, err := net.Dial("tcp", w.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sock.Close() })
	return newClient(t, sock)
}

var lastClient atomic.Uint64

func newClient(t testing.TB, sock net.Conn) *client {
	return &client{t: t, sock: sock, id: wire.U128{Lo: lastClient.Add(1), Hi: 1}}
}

// answer is one frame from the server.
type answer struct {
	wire.ReplyHeader
	evicted wire.EvictionReason
	window  [2]uint32
	body    []byte
}

// result is the code a result section carries, 0 for success.
func (a answer) result() wire.Code {
	_, err := wire.DecodeResult(a.body)
	if err == nil {
		return 0
	}
	return asCode(err)
}

func (c *client) header(op wire.Operation, code wire.Cmd, body []byte) wire.RequestHeader {
	h := wire.RequestHeader{Size: uint32(wire.HeaderSize + len(body)), Client: c.id, Operation: op, Code: code, Session: c.session, Request: c.request}
	if op == wire.OpRegister {
		h.Session, h.Request = 0, 0
	}
	return h
}

func frameOf(h wire.RequestHeader, body []byte) []byte {
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(body))
	h.Put(b)
	return append(b, body...)
}

func (c *client) write(b []byte) {
	c.t.Helper()
	if _, err := c.sock.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *client) receive() (answer, error) {
	c.sock.SetReadDeadline(time.Now().Add(10 * time.Second))
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c.sock, head); err != nil {
		return answer{}, err
	}
	if wire.Command(head[60]) == wire.CommandEviction {
		var e wire.EvictionHeader
		if err := e.Decode(head); err != nil {
			return answer{}, err
		}
		return answer{evicted: e.Reason, window: [2]uint32{e.VersionMax, e.VersionMin}}, nil
	}
	var a answer
	if err := a.Decode(head); err != nil {
		return a, err
	}
	a.body = make([]byte, a.Size-wire.HeaderSize)
	_, err := io.ReadFull(c.sock, a.body)
	return a, err
}

func (c *client) next() answer {
	c.t.Helper()
	a, err := c.receive()
	if err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	return a
}

// call sends one request and returns its answer.
func (c *client) call(op wire.Operation, code wire.Cmd, body []byte) answer {
	c.t.Helper()
	if op.Metadata() || op == wire.OpLogout {
		c.request++
	}
	h := c.header(op, code, body)
	c.write(frameOf(h, body))
	a := c.next()
	if a.evicted == 0 && a.ReplyHeader.Request != h.Request {
		c.t.Fatalf("%v: reply to request %d, sent %d", op, a.ReplyHeader.Request, h.Request)
	}
	return a
}

func (c *client) read(code wire.Cmd, body []byte) answer {
	c.t.Helper()
	return c.call(wire.OpNonReplicated, code, body)
}

func loginBody(name, password string) []byte {
	b := wire.LoginPrefix{ProtocolVersion: wire.ProtocolVersion, SDKName: []byte("test"), SDKVersion: []byte("1")}.Append(nil)
	return wire.LoginRequest{Username: []byte(name), Password: []byte(password)}.Append(b)
}

func tokenBody(token string) []byte {
	b := wire.LoginPrefix{ProtocolVersion: wire.ProtocolVersion, SDKName: []byte("test"), SDKVersion: []byte("1")}.Append(nil)
	return wire.TokenLoginRequest{Token: []byte(token)}.Append(b)
}

// login logs in and keeps the session.
func (c *client) login(name, password string) *client {
	c.t.Helper()
	a := c.call(wire.OpRegister, 0, loginBody(name, password))
	reply, err := wire.DecodeLoginReply(a.body)
	if a.evicted != 0 || a.Status != 0 || err != nil {
		c.t.Fatalf("login of %s: eviction %v status %v %v", name, a.evicted, a.Status, err)
	}
	c.session, c.request = reply.Session, 1
	return c
}

func (w *world) root(t testing.TB) *client {
	t.Helper()
	return w.dial(t).login(rootName, rootPassword)
}

// ok fails the test unless a is a success; it returns the payload behind a result section.
func (c *client) ok(a answer) []byte {
	c.t.Helper()
	if a.evicted != 0 || a.Status != 0 {
		c.t.Fatalf("%v: eviction %v, status %v", a.Operation, a.evicted, a.Status)
	}
	if a.Operation == wire.OpNonReplicated || a.Operation == wire.OpSendMessages || a.Operation == wire.OpLogout {
		return a.body
	}
	payload, err := wire.DecodeResult(a.body)
	if err != nil {
		c.t.Fatalf("%v: %v", a.Operation, err)
	}
	return payload
}

// topic makes stream s with topic t of n partitions.
func (c *client) topic(s, t string, n uint32) {
	c.t.Helper()
	c.ok(c.call(wire.OpCreateStream, 0, wire.CreateStreamRequest{Name: []byte(s)}.Append(nil)))
	c.ok(c.call(wire.OpCreateTopic, 0, wire.CreateTopicRequest{Stream: wire.NamedID(s), PartitionsCount: n, Name: []byte(t)}.Append(nil)))
}

func batchOf(t testing.TB, payloads ...string) []byte {
	t.Helper()
	var messages []wire.NewMessage
	for i, p := range payloads {
		messages = append(messages, wire.NewMessage{ID: wire.U128{Lo: uint64(i + 1)}, Payload: []byte(p)})
	}
	b, err := wire.AppendBatch(nil, messages)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sendBody(t testing.TB, s, topic string, p wire.Partitioning, payloads ...string) []byte {
	t.Helper()
	return wire.SendMessagesRequest{
		Stream: wire.NamedID(s), Topic: wire.NamedID(topic), Partitioning: p, MessagesCount: uint32(len(payloads)), Batch: batchOf(t, payloads...),
	}.Append(nil)
}

func pollBody(s, topic string, consumer wire.Consumer, at wire.PartitionSelector) []byte {
	return wire.PollMessagesRequest{
		Consumer: consumer, Stream: wire.NamedID(s), Topic: wire.NamedID(topic), Partition: at,
		Strategy: wire.Strategy{Kind: wire.StrategyFirst}, Count: 1000,
	}.Append(nil)
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}
