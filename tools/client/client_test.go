package client

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// fake is a server that answers each request with what script says: whole frames.
func fake(t testing.TB, script func(h wire.RequestHeader, body []byte) []byte) *Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		frame := make([]byte, wire.HeaderSize)
		for {
			if _, err := io.ReadFull(conn, frame[:wire.HeaderSize]); err != nil {
				return
			}
			size := int(binary.LittleEndian.Uint32(frame[48:]))
			if size > cap(frame) {
				frame = append(make([]byte, 0, size), frame[:wire.HeaderSize]...)
			}
			frame = frame[:size]
			if _, err := io.ReadFull(conn, frame[wire.HeaderSize:]); err != nil {
				return
			}
			var h wire.RequestHeader
			h.Decode(frame)
			if _, err := conn.Write(script(h, frame[wire.HeaderSize:])); err != nil {
				return
			}
		}
	}()
	c, err := Dial(context.Background(), Options{Address: l.Addr().String(), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func reply(h wire.RequestHeader, status wire.Code, body ...byte) []byte {
	out := make([]byte, wire.HeaderSize, wire.HeaderSize+len(body))
	r := wire.ReplyHeader{Size: uint32(wire.HeaderSize + len(body)), Request: h.Request, Operation: h.Operation, Status: status}
	r.Put(out)
	return append(out, body...)
}

func TestLoginStartsNumbering(t *testing.T) {
	var numbers []uint64
	c := fake(t, func(h wire.RequestHeader, body []byte) []byte {
		numbers = append(numbers, h.Request)
		switch h.Operation {
		case wire.OpRegister:
			if h.RequestChecksum != wire.Widened(body) {
				t.Error("login without its checksum")
			}
			login := wire.LoginReply{UserID: 7, Session: 99, ProtocolVersion: ProtocolVersion, ServerVersion: "x"}
			return reply(h, 0, login.Append(wire.AppendSuccess(nil))...)
		case wire.OpNonReplicated:
			return reply(h, 0)
		}
		if h.Session != 99 {
			t.Errorf("session %d", h.Session)
		}
		return reply(h, 0, 0, 0, 0, 0)
	})
	if err := c.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := c.Login("iggy", "iggy"); err != nil {
		t.Fatal(err)
	}
	if c.UserID() != 7 || c.Session() != 99 {
		t.Errorf("user %d session %d", c.UserID(), c.Session())
	}
	for _, step := range []func() error{
		c.Ping,
		func() error { return c.DeleteStream(wire.NumericID(0)) },
		c.Ping,
		func() error { return c.StoreOffset(wire.StoreOffsetRequest{}) },
		func() error { return c.PurgeStream(wire.NamedID("s")) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	want := []uint64{1, 0, 1, 1, 2, 2, 2} // only login and metadata operations move it
	for i := range want {
		if numbers[i] != want[i] {
			t.Fatalf("request numbers %d, want %d", numbers, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(h wire.RequestHeader) []byte
		code   wire.Code
	}{
		"status":    {func(h wire.RequestHeader) []byte { return reply(h, 41) }, 41},
		"rejection": {func(h wire.RequestHeader) []byte { return reply(h, 0, wire.AppendRejection(nil, 1009)...) }, 1009},
		"eviction": {func(wire.RequestHeader) []byte {
			out := make([]byte, wire.HeaderSize)
			e := wire.EvictionHeader{Client: wire.U128{Lo: 1}, Reason: wire.EvictStaleClient}
			e.Put(out)
			return out
		}, 30},
	} {
		c := fake(t, func(h wire.RequestHeader, _ []byte) []byte { return test.answer(h) })
		var code wire.Code
		if err := c.DeleteStream(wire.NumericID(1)); !errors.As(err, &code) || code != test.code {
			t.Errorf("%s: %v, want code %d", name, err, test.code)
		}
		if c.Broken() {
			t.Errorf("%s: the connection ended", name)
		}
	}
}

func TestTransientRefusalsAreRepeated(t *testing.T) {
	var numbers []uint64
	c := fake(t, func(h wire.RequestHeader, _ []byte) []byte {
		numbers = append(numbers, h.Request)
		switch len(numbers) {
		case 1:
			return reply(h, 58)
		case 2:
			return reply(h, 0, wire.AppendRejection(nil, 57)...)
		}
		return reply(h, 0, 0, 0, 0, 0)
	})
	if err := c.DeleteStream(wire.NumericID(1)); err != nil {
		t.Fatal(err)
	}
	if len(numbers) != 3 || numbers[0] != numbers[1] || numbers[1] != numbers[2] {
		t.Errorf("request numbers %d, want one number three times", numbers)
	}
	c.options.RetryFor = -1
	numbers = nil
	if err := c.DeleteStream(wire.NumericID(1)); err != wire.Code(58) {
		t.Errorf("%v, want 58 at once", err)
	}
}

func TestWrongReplyEndsTheConnection(t *testing.T) {
	for name, answer := range map[string]func(h wire.RequestHeader) []byte{
		"request number": func(h wire.RequestHeader) []byte { h.Request++; return reply(h, 0) },
		"size": func(h wire.RequestHeader) []byte {
			b := reply(h, 0)
			b[48], b[49] = 255, 0
			return b
		},
		"operation": func(h wire.RequestHeader) []byte { h.Operation = 77; return reply(h, 0) },
	} {
		c := fake(t, func(h wire.RequestHeader, _ []byte) []byte { return answer(h) })
		if err := c.Ping(); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
		if !c.Broken() {
			t.Errorf("%s: the connection lives on", name)
		}
	}
}

func TestBatchMatchesRecordedChecksum(t *testing.T) {
	var b Batch
	for range 2 { // the second round reuses the buffers
		b.Reset(1700000000000000)
		b.Add(wire.U128{Lo: 1}, []byte("hello iggy"), nil)
		sealed := b.Seal()
		if len(sealed) != 314 || binary.LittleEndian.Uint64(sealed[256:]) != 0x4d12088240d3dc55 ||
			binary.LittleEndian.Uint64(sealed[40:]) != 0xd0230c2780e9fa40 {
			t.Fatalf("batch of %d bytes, checksums %x %x", len(sealed), sealed[256:264], sealed[40:48])
		}
	}
}

func TestPolledMessages(t *testing.T) {
	var b Batch
	b.Reset(5)
	b.Add(wire.U128{Lo: 1}, []byte("one"), []byte("h"))
	b.Add(wire.U128{Lo: 2}, nil, nil)
	b.Add(wire.U128{Lo: 3}, []byte("three"), nil)
	batch := append([]byte{}, b.Seal()...)
	two := append(append([]byte{}, batch...), batch...)
	p := Polled{wire.PollHeader{MessagesCount: 6}, two}
	var texts []string
	for m, err := range p.Messages(true) {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(m.Payload)+string(m.Headers))
	}
	if len(texts) != 6 || texts[0] != "oneh" || texts[5] != "three" {
		t.Errorf("%q", texts)
	}
	for at := range two {
		damaged := append([]byte{}, two...)
		damaged[at] ^= 1
		if at%len(batch) >= 52 && at%len(batch) < batchHeader {
			continue // reserved: no checksum covers it
		}
		var err error
		for _, err = range (Polled{wire.PollHeader{MessagesCount: 6}, damaged}).Messages(true) {
			if err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("byte %d changed unnoticed", at)
		}
	}
}

// TestSendAndPollAllocateNothing guards the claim the benchmarks rest on.
func TestSendAndPollAllocateNothing(t *testing.T) {
	for _, payload := range []int{100, 100_000} {
		var b Batch
		b.Reset(1)
		b.Add(wire.U128{Lo: 1}, make([]byte, payload), nil)
		batch := b.Seal()
		polled := append(wire.PollHeader{MessagesCount: 1}.Append(nil), batch...)
		var sent, fetched []byte
		c := fake(t, func(h wire.RequestHeader, body []byte) []byte {
			if h.Operation == wire.OpSendMessages {
				if sent == nil {
					sent = reply(h, 0, wire.AppendConfirmation(nil, wire.Confirmation{BaseOffset: 9})...)
				}
				return sent
			}
			if fetched == nil {
				fetched = reply(h, 0, polled...)
			}
			return fetched
		})
		stream, topic := wire.NamedID("s"), wire.NamedID("t")
		to := wire.Partitioning{Kind: wire.PartitioningPartition}
		q := wire.PollMessagesRequest{Consumer: wire.Consumer{Kind: wire.ConsumerSingle}, Stream: stream, Topic: topic, Count: 1}
		allocs := testing.AllocsPerRun(50, func() {
			if at, err := c.Send(stream, topic, to, batch); err != nil || at.BaseOffset != 9 {
				t.Fatal(at, err)
			}
			if p, err := c.Poll(q); err != nil || p.MessagesCount != 1 {
				t.Fatal(p.MessagesCount, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%d byte payload: %.0f allocations per send and poll", payload, allocs)
		}
	}
}
