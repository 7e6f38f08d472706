package frontdoor

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

func TestFramesThatEndTheConnection(t *testing.T) {
	w := start(t, nil)
	good := w.root(t)
	for _, c := range []struct {
		what   string
		offset int
		value  uint32
	}{
		{"size 0", 48, 0}, {"size 255", 48, 255}, {"size above the limit", 48, wire.MaxFrameSize + 1}, {"size 4 GiB", 48, 1<<32 - 1},
		{"command 30", 60, 30}, {"command 255", 60, 255},
	} {
		bad := w.dial(t)
		frame := frameOf(bad.header(wire.OpNonReplicated, wire.CmdPing, nil), nil)
		binary.LittleEndian.PutUint32(frame[c.offset:], c.value)
		bad.write(frame)
		if _, err := bad.receive(); err != io.EOF {
			t.Errorf("%s: %v, want the end", c.what, err)
		}
	}
	good.ok(good.read(wire.CmdPing, nil))
}

// Whatever else is wrong with a frame is answered, and the next one is served.
func TestFramesThatAreAnswered(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	change := func(f func(h *wire.RequestHeader)) []byte {
		h := c.header(wire.OpNonReplicated, wire.CmdPing, nil)
		f(&h)
		return frameOf(h, nil)
	}
	frames := map[string][]byte{
		"client 0":           change(func(h *wire.RequestHeader) { h.Client = wire.U128{} }),
		"operation 0":        change(func(h *wire.RequestHeader) { h.Operation = 0 }),
		"operation 99":       change(func(h *wire.RequestHeader) { h.Operation = 99 }),
		"operation 255":      change(func(h *wire.RequestHeader) { h.Operation = 255 }),
		"login with session": change(func(h *wire.RequestHeader) { h.Operation, h.Session, h.Request = wire.OpRegister, 1, 0 }),
		"write, request 0":   change(func(h *wire.RequestHeader) { h.Operation, h.Request = wire.OpCreateStream, 0 }),
		"write, session 0":   change(func(h *wire.RequestHeader) { h.Operation, h.Session, h.Request = wire.OpSendMessages, 0, 1 }),
	}
	for command := range wire.Command(30) {
		if command != wire.CommandRequest {
			frame := change(func(*wire.RequestHeader) {})
			frame[60] = byte(command)
			frames["command "+command.String()] = frame
		}
	}
	for what, frame := range frames {
		c.write(frame)
		if a := c.next(); a.Status != wire.CodeInvalidCommand {
			t.Errorf("%s: status %v, eviction %v", what, a.Status, a.evicted)
		}
	}
	sum := change(func(h *wire.RequestHeader) { h.RequestChecksum = wire.U128{Lo: 1} })
	c.write(sum)
	if a := c.next(); a.Status != wire.CodeInvalidFormat {
		t.Errorf("wrong checksum: %v", a.Status)
	}
	c.ok(c.read(wire.CmdPing, nil))
}

// Pieces and bundles of frames are the same as frames.
func TestSplitAndJoinedFrames(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	body := wire.CreateStreamRequest{Name: []byte("pieces")}.Append(nil)
	frame := frameOf(c.header(wire.OpCreateStream, 0, body), body)
	for i := range frame {
		c.write(frame[i : i+1])
	}
	c.ok(c.next())
	var bundle []byte
	for i := range 40 {
		h := c.header(wire.OpNonReplicated, wire.CmdPing, nil)
		h.Request = uint64(i)
		bundle = append(bundle, frameOf(h, nil)...)
	}
	c.write(bundle)
	for i := range 40 {
		if a := c.next(); a.ReplyHeader.Request != uint64(i) {
			t.Fatalf("reply %d where %d was due", a.ReplyHeader.Request, i)
		}
	}
}

// A client that begins a frame and stops is cut off; one that begins none may wait as long as it
// likes.
func TestSlowFrames(t *testing.T) {
	w := start(t, func(c *Config) { c.FrameGrace = 150 * time.Millisecond })
	idle := w.dial(t)
	for what, n := range map[string]int{"half a header": 100, "a header without its body": wire.HeaderSize, "half a body": 3000, "half a large body": 100_000} {
		c := w.dial(t)
		body := make([]byte, 200_000)
		if n <= 3000 {
			body = body[:3900-wire.HeaderSize]
		}
		frame := frameOf(c.header(wire.OpNonReplicated, wire.CmdPing, body), body)
		c.write(frame[:n])
		begun := time.Now()
		if _, err := c.receive(); err != io.EOF {
			t.Errorf("%s: %v, want the end", what, err)
		}
		if time.Since(begun) > 5*time.Second {
			t.Errorf("%s: cut off after %v", what, time.Since(begun))
		}
	}
	idle.ok(idle.read(wire.CmdPing, nil))
	eventually(t, "the buffers of half frames to come back", func() bool { return w.pool.Used() == 0 })
}

// A reader that stops reading is cut off instead of holding a reply for ever.
func TestReaderThatStops(t *testing.T) {
	w := start(t, func(c *Config) { c.WriteGrace = 500 * time.Millisecond })
	c := w.root(t)
	c.topic("s", "t", 1)
	big := make([]byte, 4<<20)
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, string(big))))
	body := pollBody("s", "t", wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, wire.SelectPartition(0))
	c.sock.(*net.TCPConn).SetReadBuffer(4096)
	frame := frameOf(c.header(wire.OpNonReplicated, wire.CmdPollMessages, body), body)
	for range 16 {
		if _, err := c.sock.Write(frame); err != nil {
			break
		}
	}
	eventually(t, "the connection to be closed", func() bool { return w.core.clients.len() == 0 })
	eventually(t, "its buffers to come back", func() bool { return w.pool.Used() == 0 })
}

// A frame beyond the budget is taken off the socket without being kept and refused with the
// retryable code; small requests go on meanwhile, and the connection survives.
func TestOverBudget(t *testing.T) {
	w := startBudget(t, 1<<20, func(c *Config) { c.BusyFor = 20 * time.Millisecond })
	c, other := w.root(t), w.root(t)
	body := make([]byte, 8<<20)
	c.write(frameOf(c.header(wire.OpSendMessages, 0, body), body))
	if a := c.next(); a.Status != wire.CodeTransientNotAccepted || a.Operation != wire.OpSendMessages {
		t.Errorf("status %v, operation %v", a.Status, a.Operation)
	}
	c.ok(c.read(wire.CmdPing, nil))
	held, _ := w.pool.Try(1 << 20)
	other.ok(other.read(wire.CmdGetStreams, nil))
	held.Release()
}

// Who has not logged in gets nothing of the budget: the header is answered, the body is discarded.
func TestLargeFramesOfStrangers(t *testing.T) {
	w := startBudget(t, 1<<20, nil)
	held, _ := w.pool.Try(1 << 20)
	defer held.Release()
	body := make([]byte, 300_000)
	stranger := w.dial(t)
	for _, c := range []struct {
		op      wire.Operation
		code    wire.Cmd
		status  wire.Code
		evicted wire.EvictionReason
	}{
		{wire.OpNonReplicated, wire.CmdPing, 0, 0},
		{wire.OpNonReplicated, wire.CmdGetStreams, wire.CodeUnauthenticated, 0},
		{wire.OpSendMessages, 0, 0, wire.EvictNoSession},
		{wire.OpCreateStream, 0, 0, wire.EvictNoSession},
		{wire.OpRegister, 0, 0, wire.EvictMalformedLogin},
	} {
		h := stranger.header(c.op, c.code, body)
		if c.op == wire.OpRegister {
			h.Session, h.Request = 0, 0
		} else {
			h.Session, h.Request = 1, 1
		}
		stranger.write(frameOf(h, body))
		if a := stranger.next(); a.Status != c.status || a.evicted != c.evicted {
			t.Errorf("%v %v: status %v, eviction %v", c.op, c.code, a.Status, a.evicted)
		}
	}
}

// Random bytes behind a valid header, for every operation and code: always one answer, and the
// process and the budget stay whole.
func TestRandomBodies(t *testing.T) {
	w := start(t, func(c *Config) { c.TokensPerUser = 1 })
	random := rand.New(rand.NewPCG(1, 2))
	c := w.root(t)
	for range 3000 {
		body := make([]byte, random.IntN(60))
		for i := range body {
			body[i] = byte(random.Uint32N(4))
			if random.IntN(4) == 0 {
				body[i] = byte(random.Uint32())
			}
		}
		h := c.header(wire.Operation(random.Uint32N(256)), wire.Cmd(random.Uint32N(700)), body)
		switch h.Operation {
		case wire.OpLogout, wire.OpCreateUser, wire.OpChangePassword:
			continue // ends the session; costs 50 ms each
		}
		c.request++
		h.Request = c.request
		c.write(frameOf(h, body))
		c.next()
	}
	c.ok(c.read(wire.CmdGetStreams, nil))
}
