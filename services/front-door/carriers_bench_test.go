//go:build !poison

package frontdoor

import (
	"io"
	"runtime"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// roundTrip sends a request and throws its answer away, without what a test needs of it.
func (c *client) roundTrip(frame []byte) {
	if _, err := c.sock.Write(frame); err != nil {
		c.t.Fatal(err)
	}
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(c.sock, head[:]); err != nil {
		c.t.Fatal(err)
	}
	var h wire.ReplyHeader
	if err := h.Decode(head[:]); err != nil || h.Status != 0 {
		c.t.Fatal(err, h.Status)
	}
	if _, err := io.CopyN(io.Discard, c.sock, int64(h.Size)-wire.HeaderSize); err != nil {
		c.t.Fatal(err)
	}
}

// BenchmarkCarriers measures one client in lockstep over services that cost nothing.
func BenchmarkCarriers(b *testing.B) {
	for name, carrier := range carriers {
		w := everywhere(b, nil)
		maker := w.root(b)
		maker.topic("stream", "topic", 1)
		c := carrier.dial(b, w).login(rootName, rootPassword)
		large := append(wire.PollHeader{MessagesCount: 1}.Append(nil), batchOf(b, string(make([]byte, 1<<20)))...)
		echo := &echoService{pool: w.pool, reply: large}
		w.core.deps.Partitions = func(uint64) link.Service { return echo }
		send := sendBody(b, "stream", "topic", wire.Partitioning{Kind: wire.PartitioningPartition}, string(make([]byte, 1<<20)))
		poll := pollBody("stream", "topic", wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, wire.SelectPartition(0))
		for what, frame := range map[string][]byte{
			"ping":      frameOf(c.header(wire.OpNonReplicated, wire.CmdPing, nil), nil),
			"send 1MiB": frameOf(c.header(wire.OpSendMessages, 0, send), send),
			"poll 1MiB": frameOf(c.header(wire.OpNonReplicated, wire.CmdPollMessages, poll), poll),
		} {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				if what != "ping" {
					b.SetBytes(1 << 20)
				}
				for b.Loop() {
					c.roundTrip(frame)
				}
			})
		}
	}
}

// BenchmarkIdleCarriers reports what a waiting connection costs in memory, both ends together: the
// client's end is of the same libraries.
func BenchmarkIdleCarriers(b *testing.B) {
	for name, carrier := range carriers {
		b.Run(name, func(b *testing.B) {
			w := everywhere(b, func(c *Config) { c.MaxConnections = 1 << 20 })
			in := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapInuse + m.StackInuse
			}
			before := in()
			var all []*client
			for b.Loop() {
				c := carrier.dial(b, w)
				c.ok(c.read(wire.CmdPing, nil))
				all = append(all, c)
			}
			b.ReportMetric(float64(int64(in()-before))/float64(len(all)), "B/conn")
			for _, c := range all {
				c.sock.Close()
			}
			eventually(b, "all to be gone", func() bool { return w.core.clients.len() == 0 })
		})
	}
}
