package link

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// serviceFunc is a Service made of a function.
type serviceFunc func(*Call)

func (f serviceFunc) Serve(c *Call) { f(c) }

// plane is a server and a client of the service plane.
type plane struct {
	server  *Server
	remote  *Remote
	pool    *buffer.Pool // of the server
	ours    *buffer.Pool // of the client
	address string
	up      chan Peer
	down    chan Peer
}

func newServer(t testing.TB, service Service, change func(*ServerConfig)) *plane {
	t.Helper()
	o, _ := testOptions(t, 3)
	cfg := ServerConfig{Options: o, Service: service}
	if change != nil {
		change(&cfg)
	}
	p := &plane{server: NewServer(cfg), pool: o.Pool, up: make(chan Peer, 100), down: make(chan Peer, 100)}
	t.Cleanup(p.server.Close)
	p.address = serve(t, p.server.Serve)
	return p
}

// dial connects a front-door to the plane's address and waits until it is.
func (p *plane) dial(t testing.TB, change func(*RemoteConfig)) *Remote {
	t.Helper()
	o, _ := testOptions(t, wire.FrontDoorID)
	cfg := RemoteConfig{Options: o, Address: p.address, Expect: 3, Up: func(q Peer) { p.up <- q }, Down: func(q Peer) { p.down <- q }}
	if change != nil {
		change(&cfg)
	}
	p.ours = o.Pool
	p.remote = Dial(cfg)
	t.Cleanup(p.remote.Close)
	within(t, "connection", p.up)
	return p.remote
}

func newPlane(t testing.TB, service Service) *plane {
	t.Helper()
	p := newServer(t, service, nil)
	p.dial(t, nil)
	return p
}

// ask makes a call and waits for its end.
func ask(t testing.TB, s Service, c *Call) *Call {
	t.Helper()
	s.Serve(c)
	within(t, "answer", c.Done())
	return c
}

func sampleCall() *Call {
	c := NewCall()
	c.Header = wire.RequestHeader{
		Cluster: wire.U128{Lo: 1}, View: 2, Release: 3, Replica: 4, Client: wire.U128{Lo: 5, Hi: 6}, RequestChecksum: wire.U128{Lo: 7},
		Timestamp: 8, Request: 9, Operation: wire.OpStoreOffset, Session: 10, UserID: 11, Code: wire.CmdStoreOffset,
	}
	c.Group, c.MetadataOp, c.Floor, c.Generation = 12, 13, wire.Floor{View: 14, Next: 15}, 16
	c.ConsumerKind, c.ConsumerID, c.Sequence, c.Connection, c.MaxReply = 2, 17, 18, wire.U128{Lo: 19, Hi: 20}, 21
	c.InFlight, c.Deadline, c.Body = []uint32{22, 23, 1 << 30}, 15_000, []byte("the body")
	return c
}

// TestCallTravels: everything a call says reaches the service, and everything it answers comes back.
func TestCallTravels(t *testing.T) {
	var got Call
	p := newPlane(t, serviceFunc(func(c *Call) {
		got = *c
		got.Body, got.InFlight = slices.Clone(c.Body), slices.Clone(c.InFlight)
		c.ReplyOp, c.Op, c.Commit, c.Time, c.View, c.Primary, c.MetadataOp = wire.OpStoreOffset, 30, 31, 32, 33, 34, 35
		c.Out = append(c.Out[:0], "the answer"...)
		c.Finish()
	}))
	c := ask(t, p.remote, sampleCall())
	want := sampleCall()
	want.Header.Size, want.Header.Group = wire.HeaderSize+8+12, 12
	want.done, want.owner, got.done, got.owner, got.Out, got.Frame = nil, nil, nil, nil, nil, nil
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("the service got\n%+v\nwant\n%+v", &got, want)
	}
	if c.Status != 0 || c.ReplyOp != wire.OpStoreOffset || c.Op != 30 || c.Commit != 31 || c.Time != 32 || c.View != 33 || c.Primary != 34 || c.MetadataOp != 35 || string(c.Out) != "the answer" || c.OutFrame != nil {
		t.Errorf("the caller got %+v", c)
	}

	c = sampleCall()
	c.Header.Code, c.Header.Operation, c.Internal = 0, wire.OpNonReplicated, InternalFacts
	ask(t, p.remote, c)
	if got.Internal != InternalFacts || got.Header.Code != 0 {
		t.Errorf("a question between roles arrived as internal %d, code %d", got.Internal, got.Header.Code)
	}
}

// TestAnswersOfAllKinds: evictions, statuses, frames and small bodies.
func TestAnswersOfAllKinds(t *testing.T) {
	var server *plane
	large := bytes.Repeat([]byte("large"), 100_000)
	framed := func(c *Call, body []byte) {
		f, ok := server.pool.Try(wire.HeaderSize + len(body))
		if !ok {
			t.Error("no frame")
		}
		copy(f.Bytes()[wire.HeaderSize:], body)
		c.OutFrame = f
		c.Finish()
	}
	kinds := []struct {
		name   string
		answer func(*Call)
		check  func(*Call) bool
	}{
		{"nothing", func(c *Call) { c.Finish() }, func(c *Call) bool { return c.Status == 0 && len(c.Out) == 0 && c.OutFrame == nil }},
		{"eviction", func(c *Call) { c.Evict = wire.EvictSessionTooLow; c.Finish() }, func(c *Call) bool { return c.Evict == wire.EvictSessionTooLow && c.Status == 0 }},
		{"status", func(c *Call) { c.View = 3; c.Refuse(wire.CodeTransientNotAccepted, ReasonDiskFull) }, func(c *Call) bool {
			return c.Status == wire.CodeTransientNotAccepted && c.Reason == ReasonDiskFull && c.View == 3
		}},
		{"large body", func(c *Call) { c.Out = append(c.Out, large...); c.Finish() }, func(c *Call) bool { return bytes.Equal(c.Out, large) && c.OutFrame == nil }},
		{"frame", func(c *Call) { framed(c, large) }, func(c *Call) bool {
			return c.OutFrame != nil && bytes.Equal(c.OutFrame.Bytes()[wire.HeaderSize:], large)
		}},
		{"small frame", func(c *Call) { framed(c, large[:3]) }, func(c *Call) bool { return c.OutFrame != nil && string(c.OutFrame.Bytes()[wire.HeaderSize:]) == "lar" }},
	}
	server = newPlane(t, serviceFunc(func(c *Call) { kinds[c.Group].answer(c) }))
	for i, k := range kinds {
		for _, op := range []wire.Operation{wire.OpStoreOffset, wire.OpNonReplicated, wire.OpSendMessages} {
			c := sampleCall()
			c.Group, c.Header.Operation, c.Out = uint64(i), op, append(c.Out, "of the call before"...)
			c.Out = c.Out[:0]
			if ask(t, server.remote, c); !k.check(c) {
				t.Errorf("%s for %v: got %+v", k.name, op, c)
			}
			release(c.OutFrame)
		}
	}
	until(t, "all buffers released", func() bool { return server.pool.Used() == 0 && server.ours.Used() == 0 })
}

// TestSendHasRoomForPrepare: a send arrives in a frame with 256 writable bytes in front of the batch, and
// the service may keep the frame.
func TestSendHasRoomForPrepare(t *testing.T) {
	kept := make(chan *buffer.Frame, 1)
	p := newPlane(t, serviceFunc(func(c *Call) {
		if c.Frame == nil || c.BodyStart != wire.HeaderSize || !bytes.Equal(c.Frame.Bytes()[c.BodyStart:c.BodyStart+len(c.Body)], []byte("batch")) {
			t.Errorf("frame %v, body at %d", c.Frame, c.BodyStart)
		}
		kept <- c.Frame
		c.Frame = nil
		c.Finish()
	}))
	f, _ := p.ours.Try(1000)
	copy(f.Bytes()[500:], "batch")
	c := sampleCall()
	c.Header.Operation, c.InFlight, c.Frame, c.Body, c.BodyStart = wire.OpSendMessages, nil, f, f.Bytes()[500:505], 500
	ask(t, p.remote, c)
	if c.Frame != f {
		t.Error("the caller's frame is gone")
	}
	f.Release()
	within(t, "kept frame", kept).Release()
	until(t, "all buffers released", func() bool { return p.pool.Used() == 0 })
}

// TestManyCalls: calls overtake each other and each gets its own answer.
func TestManyCalls(t *testing.T) {
	p := newPlane(t, serviceFunc(func(c *Call) {
		c.Out = append(append(c.Out[:0], "re: "...), c.Body...)
		if len(c.Body)%2 == 0 {
			c.Finish()
			return
		}
		go c.Finish()
	}))
	const callers, rounds = 20, 50
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			c := NewCall()
			for r := range rounds {
				c.Reset()
				c.Header.Operation = wire.OpStoreOffset
				if r%2 == 0 {
					c.Header.Operation = wire.OpNonReplicated
				}
				body := fmt.Appendf(nil, "%d.%d", i, r)
				if r%10 == 0 {
					body = append(body, make([]byte, 80_000)...)
				}
				c.Body = body
				p.remote.Serve(c)
				<-c.Done()
				if c.Status != 0 || !bytes.Equal(c.Out, append([]byte("re: "), body...)) {
					t.Errorf("%.10q got status %v, %.20q", body, c.Status, c.Out)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	within(t, "end of all calls", done)
	until(t, "all buffers released", func() bool { return p.pool.Used() == 0 && p.ours.Used() == 0 })
}

// TestCallWithoutAnswer: 57 when the service has the call, 58 when it never left.
func TestCallWithoutAnswer(t *testing.T) {
	seen := make(chan *Call, 10)
	service := serviceFunc(func(c *Call) { seen <- c })
	refused := func(what string, c *Call, code wire.Code, why Reason) {
		t.Helper()
		if c.Status != code || c.Reason != why {
			t.Errorf("%s: status %v, reason %d", what, c.Status, c.Reason)
		}
	}
	t.Run("deadline", func(t *testing.T) {
		p := newPlane(t, service)
		c := sampleCall()
		p.remote.Serve(c)
		late := within(t, "call at the service", seen)
		if late.Deadline != c.Deadline {
			t.Errorf("the service knows of %d ms", late.Deadline)
		}
		timeIsUp(p.remote)
		within(t, "end at the deadline", c.Done())
		refused("deadline", c, wire.CodeTransientNotCommitted, ReasonUnreachable)
		c = sampleCall()
		p.remote.Serve(c) // has the place of the one before
		next := within(t, "next call", seen)
		late.Out = append(late.Out, "late"...)
		late.Finish() // reaches nobody
		next.Out = append(next.Out, "in time"...)
		next.Finish()
		within(t, "its answer", c.Done())
		if c.Status != 0 || string(c.Out) != "in time" {
			t.Errorf("after a late answer: status %v, %q", c.Status, c.Out)
		}
	})
	t.Run("window", func(t *testing.T) {
		p := newServer(t, service, nil)
		p.dial(t, func(c *RemoteConfig) { c.Window = 1000 })
		first, second := sampleCall(), sampleCall()
		first.Body, second.Body = make([]byte, 900), make([]byte, 900)
		p.remote.Serve(first)
		refused("window", ask(t, p.remote, second), wire.CodeTransientNotAccepted, ReasonBusy)
		within(t, "first call", seen).Finish()
		within(t, "its answer", first.Done())
		second.Reset()
		second.Body = make([]byte, 900)
		p.remote.Serve(second)
		within(t, "second call", seen).Finish()
		within(t, "its answer", second.Done())
	})
	t.Run("lost", func(t *testing.T) {
		p := newPlane(t, service)
		c := sampleCall()
		p.remote.Serve(c)
		within(t, "call", seen)
		p.remote.line.Load().stream.close()
		within(t, "end", c.Done())
		refused("lost", c, wire.CodeTransientNotCommitted, ReasonUnreachable)
		within(t, "down", p.down)
		within(t, "up again", p.up)
		c = sampleCall()
		p.remote.Serve(c)
		within(t, "call on the new connection", seen).Finish()
		within(t, "its answer", c.Done())
	})
	t.Run("nobody there", func(t *testing.T) {
		o, book := testOptions(t, 255)
		r := Dial(RemoteConfig{Options: o, Address: "127.0.0.1:1", Expect: 3})
		refused("nobody", ask(t, r, sampleCall()), wire.CodeTransientNotAccepted, ReasonUnreachable)
		until(t, "the reason is logged", func() bool { return book.count("cannot connect to node") == 1 })
		if r.Ask(&wire.RequestPreparesHeader{FromOp: 1, ToOp: 1}) {
			t.Error("asked nobody")
		}
		r.Close()
		refused("closed", ask(t, r, sampleCall()), wire.CodeTransientNotAccepted, ReasonClosing)
	})
}

// TestCallsBehindStuckWrite: while the other side reads nothing, a call whose bytes the writer has is kept
// until that ends, even past its deadline, and one behind it is given up unsent.
func TestCallsBehindStuckWrite(t *testing.T) {
	conns := make(chan net.Conn, 1)
	p := &plane{up: make(chan Peer, 10), down: make(chan Peer, 10)}
	o, _ := testOptions(t, 3)
	p.address = serve(t, func(l net.Listener) error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			if _, _, _, err := (&o).admit2(conn); err == nil {
				conns <- conn
			}
		}
	})
	p.dial(t, func(c *RemoteConfig) { c.Doubt = time.Hour })
	conn := within(t, "connection", conns)
	stuck, behind := sampleCall(), sampleCall()
	stuck.Body = make([]byte, 31<<20)
	behind.Body = make([]byte, 100_000)
	p.remote.Serve(stuck)
	until(t, "the writer has the first call", func() bool {
		l := p.remote.line.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.slots[0].state == writing
	})
	p.remote.Serve(behind)
	timeIsUp(p.remote)
	within(t, "end of the second call", behind.Done())
	if behind.Status != wire.CodeTransientNotAccepted || behind.Reason != ReasonBusy {
		t.Errorf("behind: status %v, reason %d", behind.Status, behind.Reason)
	}
	if len(stuck.Done()) > 0 {
		t.Error("finished while the writer has its bytes")
	}
	after := sampleCall()
	after.Body = make([]byte, 100_001)
	p.remote.Serve(after)
	conn.SetReadDeadline(time.Now().Add(patience))
	for _, want := range []*Call{stuck, after} { // what was given up does not leave any more
		var head [wire.HeaderSize]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		h, _ := wire.DecodePreamble(head[:])
		if int(h.Size) != wire.HeaderSize+len(want.Body)+12 {
			t.Fatalf("a frame of %d bytes came", h.Size)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(h.Size-wire.HeaderSize)); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
	within(t, "end of the first call", stuck.Done())
	if stuck.Status != wire.CodeTransientNotCommitted {
		t.Errorf("stuck: status %v", stuck.Status)
	}
}

// timeIsUp lets the deadline of all calls under way pass.
func timeIsUp(r *Remote) {
	l := r.line.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.slots {
		l.slots[i].deadline = time.Time{}
	}
}

// admit2 is admit for a scripted server that lets everybody in.
func (o *Options) admit2(conn net.Conn) (net.Conn, Peer, Lane, error) {
	o.fill()
	c, p, l, err := o.admit(conn, func(uint8) bool { return true })
	conn.SetDeadline(time.Time{})
	return c, p, l, err
}

// TestSilentService: a process that is stopped while its sockets are not is given up.
func TestSilentService(t *testing.T) {
	o, _ := testOptions(t, 3)
	p := &plane{up: make(chan Peer, 10), down: make(chan Peer, 10)}
	p.address = serve(t, func(l net.Listener) error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			_, _, _, _ = o.admit2(conn)
		}
	})
	p.dial(t, func(c *RemoteConfig) { c.Silence = 300 * time.Millisecond })
	c := sampleCall()
	ask(t, p.remote, c)
	if c.Status != wire.CodeTransientNotCommitted {
		t.Errorf("status %v", c.Status)
	}
	within(t, "down", p.down)

	alive := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), nil)
	alive.dial(t, nil)
	line := alive.remote.line.Load()
	until(t, "signs of life come without calls", func() bool { return line.heard.Load() >= 1 })
	if len(alive.down) > 0 {
		t.Error("an idle connection was given up")
	}
}

// TestNoAuthentication: without a secret on either side the introduction alone tells who is there.
func TestNoAuthentication(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), func(c *ServerConfig) { c.Secret = nil })
	p.dial(t, func(c *RemoteConfig) { c.Secret, c.Expect = nil, AnyNode })
	if who, ok := p.remote.Peer(); !ok || who.ID != 3 {
		t.Errorf("connected to %+v", who)
	}
	if c := ask(t, p.remote, sampleCall()); c.Status != 0 {
		t.Errorf("status %v", c.Status)
	}
}

// TestServiceModes: the setting must be the same on the service plane too.
func TestServiceModes(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), func(c *ServerConfig) { c.Node.Mixed = true })
	o, book := testOptions(t, 255)
	r := Dial(RemoteConfig{Options: o, Address: p.address, Expect: 3})
	defer r.Close()
	until(t, "the setting is named", func() bool { return book.count("WHIPPET_CLUSTER_MIXED=true") == 1 })
}

// TestUnexpectedNode: a client that looks for one node does not talk to another.
func TestUnexpectedNode(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), nil)
	o, book := testOptions(t, 255)
	r := Dial(RemoteConfig{Options: o, Address: p.address, Expect: 4})
	defer r.Close()
	until(t, "the reason is logged", func() bool { return book.count("is node 3, not 4") == 1 })
	r.SetAddress("127.0.0.1:1")
	until(t, "the new address is tried", func() bool { return book.count("address=127.0.0.1:1") == 1 })
}

// TestSlowRequester: a client that takes no answers gets its reads refused and is then not read from, while
// others are served.
func TestSlowRequester(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) {
		c.Out = append(c.Out[:0], make([]byte, 40_000)...)
		c.Finish()
	}), func(c *ServerConfig) { c.Window = 1 << 20 })
	o, _ := testOptions(t, 255)
	o.fill()
	conn, _, err := o.dial(t.Context(), p.address, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Time{})
	go func() { // asks for ever, reads never
		c := sampleCall()
		c.InFlight, c.Body = nil, nil
		for n := uint64(1); ; n++ {
			c.Header.Operation = wire.OpNonReplicated
			if n%2 == 0 {
				c.Header.Operation = wire.OpStoreOffset
			}
			var b [wire.HeaderSize]byte
			putCall(b[:], c, wire.HeaderSize, n, 0)
			if _, err := conn.Write(b[:]); err != nil {
				return
			}
		}
	}()
	var slow *Conn
	until(t, "the server stops reading", func() bool {
		p.server.mu.Lock()
		for c := range p.server.conns {
			slow = c
		}
		p.server.mu.Unlock()
		return slow != nil && slow.stream.out.waiting() > 2<<20
	})
	p.dial(t, nil)
	for range 100 {
		if c := ask(t, p.remote, sampleCall()); c.Status != 0 {
			t.Fatalf("another client: status %v", c.Status)
		}
	}
	if n := slow.stream.out.waiting(); n > 3<<20 {
		t.Errorf("%d bytes wait for the slow client", n)
	}
}

// recordedFeed writes down what followers ask and answers them.
type recordedFeed struct {
	asked  chan string
	closed chan *Conn
	pool   *buffer.Pool
}

func (f *recordedFeed) Subscribe(c *Conn, h wire.RequestPreparesHeader) {
	f.asked <- fmt.Sprintf("%d..%d of %d", h.FromOp, h.ToOp, h.Group)
	go func() {
		for op := h.FromOp; op <= h.ToOp; op++ {
			p := prepareFrame(op, 30_000)
			p[60] = byte(wire.CommandRepairPrepare)
			frame, _ := f.pool.Wait(30_000, patience)
			for i := range frame.Bytes() {
				frame.Bytes()[i] = byte(op)
			}
			ok := c.SendWait(p, frame.Bytes(), frame)
			frame.Release()
			if !ok {
				return
			}
		}
		var done wire.Header
		(&wire.RepairEndHeader{Preamble: wire.Preamble{Command: wire.CommandRepairDone}, Op: h.ToOp, Group: h.Group}).Put(done[:])
		c.Send(&done, nil, nil)
	}()
}

func (f *recordedFeed) StateTransfer(c *Conn, h wire.RequestStateTransferHeader) {
	f.asked <- fmt.Sprintf("state of %d", h.Group)
	var offer wire.Header
	(&wire.StateTransferTargetHeader{Nonce: h.Nonce, Group: h.Group, Transient: true}).Put(offer[:])
	c.Send(&offer, nil, nil)
}

func (f *recordedFeed) Chunk(c *Conn, h wire.RequestStateChunkHeader) {
	f.asked <- fmt.Sprintf("%d bytes at %d of %d", h.Len, h.Offset, h.Artifact)
	var chunk wire.Header
	(&wire.StateChunkHeader{Preamble: wire.Preamble{Size: wire.HeaderSize + 3}, Nonce: h.Nonce, Group: h.Group}).Put(chunk[:])
	c.Send(&chunk, []byte("abc"), nil)
}

func (f *recordedFeed) Closed(c *Conn) { f.closed <- c }

// TestFeed: followers' questions reach the feed and its answers come back in their order, more of them than
// the queue holds.
func TestFeed(t *testing.T) {
	feed := &recordedFeed{asked: make(chan string, 10), closed: make(chan *Conn, 1), pool: buffer.NewPool(64 << 20)}
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), func(c *ServerConfig) { c.Feed, c.Queue = feed, 200_000 })
	frames := make(chan arrived, 1000)
	p.dial(t, func(c *RemoteConfig) {
		c.Feed = func(h *wire.Header, f *buffer.Frame) {
			a := arrived{head: *h}
			if f != nil {
				a.body = slices.Clone(f.Bytes()[wire.HeaderSize:])
				f.Release()
			}
			frames <- a
		}
	})
	for _, q := range []struct {
		ask  interface{ Put([]byte) }
		want string
	}{
		{&wire.RequestStateTransferHeader{Group: 5}, "state of 5"},
		{&wire.RequestStateChunkHeader{Group: 5, Offset: 6, Len: 7, Artifact: 8}, "7 bytes at 6 of 8"},
		{&wire.RequestPreparesHeader{FromOp: 3, ToOp: 102, Group: 5}, "3..102 of 5"},
	} {
		if !p.remote.Ask(q.ask) {
			t.Fatal("not connected")
		}
		if got := within(t, "question", feed.asked); got != q.want {
			t.Errorf("asked %q, want %q", got, q.want)
		}
	}
	if a := within(t, "offer", frames); a.head.Command() != wire.CommandStateTransferTarget {
		t.Errorf("%v instead of an offer", a.head.Command())
	}
	if a := within(t, "chunk", frames); a.head.Command() != wire.CommandStateChunk || string(a.body) != "abc" {
		t.Errorf("%v instead of a chunk", a.head.Command())
	}
	for op := uint64(3); op <= 102; op++ {
		var h wire.PrepareHeader
		if a := within(t, "prepare", frames); h.Decode(a.head[:]) != nil || h.Op != op || !bytes.Equal(a.body, bytes.Repeat([]byte{byte(op)}, 30_000)) {
			t.Fatalf("op %d instead of %d", h.Op, op)
		}
	}
	if a := within(t, "end of the range", frames); a.head.Command() != wire.CommandRepairDone {
		t.Errorf("%v instead of the end", a.head.Command())
	}
	p.remote.Close()
	c := within(t, "end of the follower", feed.closed)
	within(t, "end of the connection", c.Done())
	if c.Send(commitFrame(1), nil, nil) || c.SendWait(commitFrame(1), nil, nil) {
		t.Error("sent on an ended connection")
	}
	until(t, "all buffers released", func() bool { return feed.pool.Used() == 0 && p.ours.Used() == 0 })
}

// TestNewAddressEndsTheAttempt: a process that comes back elsewhere is not waited for where nobody answers.
func TestNewAddressEndsTheAttempt(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	o, _ := testOptions(t, wire.FrontDoorID)
	o.Grace = time.Hour
	r := Dial(RemoteConfig{Options: o, Address: silent.Addr().String(), Expect: 3, Up: func(q Peer) { p.up <- q }})
	defer r.Close()
	conn, err := silent.Accept() // the attempt is under way: it waits for a handshake
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r.SetAddress(p.address)
	within(t, "connection", p.up)
}
