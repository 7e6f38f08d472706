package partitionreplica

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A transport that carries replies up to a size gets polls in pieces of it: every message once and in
// order, single batches above the bound included. Only a message too large by itself exceeds it.
func TestPollsUpToASize(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	defer w.close()
	w.topic(1)
	payload := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000) }
	batch := func(from, n, size int) {
		var messages []wire.NewMessage
		for i := range n {
			messages = append(messages, wire.NewMessage{Payload: payload(from + i)[:size]})
		}
		b, err := wire.AppendBatch(nil, messages)
		if err != nil {
			t.Fatal(err)
		}
		c := w.call(wire.OpSendMessages, 0)
		c.Frame, _ = w.pool.Try(wire.HeaderSize + len(b))
		c.Body, c.BodyStart = c.Frame.Bytes()[wire.HeaderSize:], wire.HeaderSize
		copy(c.Body, b)
		if w.serve(c); c.Status != 0 {
			t.Fatal(c.Status)
		}
	}
	batch(0, 100, 1000) // one batch above the bound
	batch(100, 20, 100)
	batch(120, 20, 1000)
	const most = 10_000
	for _, k := range []struct {
		name  string
		start wire.Strategy
		first uint64
	}{
		{"next", wire.Strategy{Kind: wire.StrategyNext}, 0},
		{"first", wire.Strategy{Kind: wire.StrategyFirst}, 0},
		{"last", wire.Strategy{Kind: wire.StrategyLast}, 40},
	} {
		strategy := k.start
		for next := k.first; next < 140; {
			c := w.pollCall(plain(1), 0, 100, k.name == "next")
			q, _ := wire.DecodePollMessages(c.Body)
			q.Strategy = strategy
			c.Body, c.MaxReply = q.Append(nil), most
			w.serve(c)
			if c.Status != 0 || c.OutFrame == nil {
				t.Fatalf("%s at %d: %v", k.name, next, c.Status)
			}
			b := c.OutFrame.Bytes()
			if len(b) > most {
				t.Fatalf("%s at %d: a reply of %d bytes", k.name, next, len(b))
			}
			n := uint64(binary.LittleEndian.Uint32(b[wire.HeaderSize+12:]))
			if n == 0 || !bytes.Contains(b, payload(int(next))[:100]) {
				t.Fatalf("%s at %d: %d messages that do not begin there", k.name, next, n)
			}
			next += n
			c.OutFrame.Release()
			if k.name != "next" {
				strategy = wire.Strategy{Kind: wire.StrategyOffset, Value: next}
			}
		}
	}
	c := w.pollCall(plain(2), 0, 10, false)
	c.MaxReply = 500
	if w.serve(c); c.OutFrame == nil || binary.LittleEndian.Uint32(c.OutFrame.Bytes()[wire.HeaderSize+12:]) != 1 {
		t.Error("a message above the bound cannot be polled")
	} else {
		c.OutFrame.Release()
	}
}
