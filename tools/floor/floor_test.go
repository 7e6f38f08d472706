package floor

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// TestSendsComeBack checks in every mode that the floor does its job at all: each batch is confirmed
// at its own offset, and a poll returns what was sent.
func TestSendsComeBack(t *testing.T) {
	for i, mode := range []Sync{SyncNone, SyncGroup, SyncEach, SyncWritten, SyncNone, SyncGroup} {
		l := listen(t)
		var backups []string
		if i > 3 {
			for range 2 {
				b := listen(t)
				go ServeBackup(b, t.TempDir(), mode)
				backups = append(backups, b.Addr().String())
			}
		}
		go Serve(l, t.TempDir(), mode, backups...)
		const producers, sends, count = 4, 10, 3
		bases := make(chan uint64, producers*sends)
		stream, topic := wire.NamedID("s"), wire.NamedID("t")
		var wg sync.WaitGroup
		for range producers {
			wg.Go(func() {
				c, err := client.Dial(context.Background(), client.Options{Address: l.Addr().String(), Username: "u", Password: "p"})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				var b client.Batch
				b.Reset(1)
				for range count {
					b.Add(wire.U128{Lo: 1}, []byte("payload"), nil)
				}
				for range sends {
					at, err := c.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition, Partition: 2}, b.Seal())
					if err != nil {
						t.Error(err)
					}
					bases <- at.BaseOffset
				}
			})
		}
		wg.Wait()
		close(bases)
		seen := map[uint64]bool{}
		for b := range bases {
			if b%count != 0 || seen[b] {
				t.Errorf("%s: base offset %d, given before: %v", mode, b, seen[b])
			}
			seen[b] = true
		}
		if len(seen) != producers*sends {
			t.Errorf("%s: %d batches confirmed", mode, len(seen))
		}
		readAll(t, l.Addr().String(), mode, producers*sends*count)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func readAll(t *testing.T, address string, mode Sync, want int) {
	t.Helper()
	c, err := client.Dial(context.Background(), client.Options{Address: address, Username: "u", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found := 0
	for {
		p, err := c.Poll(wire.PollMessagesRequest{
			Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)},
			Stream:   wire.NamedID("s"), Topic: wire.NamedID("t"), Partition: wire.SelectPartition(2),
			Strategy: wire.Strategy{Kind: wire.StrategyOffset, Value: uint64(found)}, Count: 7,
		})
		if err != nil {
			t.Fatal(err)
		}
		if p.MessagesCount == 0 {
			break
		}
		for m, err := range p.Messages(false) {
			if err != nil || m.Offset != uint64(found) || string(m.Payload) != "payload" {
				t.Fatalf("%s: offset %d, payload %q, %v; want offset %d", mode, m.Offset, m.Payload, err, found)
			}
			found++
		}
	}
	if found != want {
		t.Errorf("%s: read %d messages, want %d", mode, found, want)
	}
}

// A batch whose predecessor is still being written is not served yet.
func TestUnwrittenBatchesHideLaterOnes(t *testing.T) {
	p := &partition{batches: []batch{{base: 0, count: 10, at: 0, size: 100}, {base: 20, count: 10, at: 100, size: 100}}}
	for offset, want := range map[uint64]uint32{0: 10, 5: 10, 10: 0, 19: 0, 20: 10} {
		if _, _, n := p.find(offset, 1000); n != want {
			t.Errorf("%d messages from offset %d on, want %d", n, offset, want)
		}
	}
}
