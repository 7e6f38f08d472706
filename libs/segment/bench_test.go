package segment

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

func benchLog(b *testing.B) *Log {
	b.Helper()
	l, _, err := Open(vfs.NewOS(b.TempDir()), "p/1", Options{SegmentSize: 256 << 20}, State{})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// fill writes n batches of count messages of size bytes and flushes them.
func fill(b *testing.B, l *Log, n, count, size int) int64 {
	b.Helper()
	buf := batchOf(0, 1, 0, randomMessages(rand.New(rand.NewSource(1)), count, size))
	for i := range n {
		appendOne(b, l, buf, uint64(i+1))
		l.Publish(l.Next())
		if f := l.FlushPlan(0, false); f != nil {
			if err := f.Run(); err != nil {
				b.Fatal(err)
			}
			l.Flushed(f, nil)
		}
	}
	if f := l.FlushPlan(0, true); f != nil {
		if err := f.Run(); err != nil {
			b.Fatal(err)
		}
		l.Flushed(f, nil)
	}
	return int64(n) * int64(len(buf))
}

func appendOne(tb testing.TB, l *Log, buf []byte, time uint64) {
	wire.StampBatch(buf, 7, l.Next(), time)
	if p := l.Append(buf, 1); p.Large {
		if _, err := p.File.WriteAt(buf, p.At.Pos); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ count, size int }{{1, 1000}, {10, 200}, {1000, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", c.count, c.size), func(b *testing.B) {
			l := benchLog(b)
			buf := batchOf(0, 1, 0, randomMessages(rand.New(rand.NewSource(1)), c.count, c.size))
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			time := uint64(0)
			for b.Loop() {
				time++
				wire.StampBatch(buf, 7, l.Next(), time)
				l.Append(buf, 1) // the journal writes the large ones
				l.Publish(l.Next())
				if len(buf) <= InlineLimit {
					if f := l.FlushPlan(0, false); f != nil {
						l.Flushed(f, nil)
					}
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct{ n, count, size, poll int }{
		{20000, 10, 200, 10}, {20000, 10, 200, 1000}, {100, 1000, 1000, 1000}, {100, 1000, 1000, 8000},
	} {
		for _, noVerify := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%d/poll=%d/verify=%v", c.count, c.size, c.poll, !noVerify), func(b *testing.B) {
				l := benchLog(b)
				l.opt.NoVerify = noVerify
				total := fill(b, l, c.n, c.count, c.size)
				messages := uint64(c.n * c.count)
				dst := make([]byte, 16<<20)
				b.SetBytes(total / int64(messages) * int64(c.poll))
				b.ReportAllocs()
				at := uint64(0)
				for b.Loop() {
					p, o := l.View().Plan(Query{Offset, at, uint32(c.poll)}, 0)
					if o == Empty {
						at = 0
						continue
					}
					if _, err := p.Read(dst[:p.Size()]); err != nil {
						b.Fatal(err)
					}
					at = p.LastOffset() + 1
				}
			})
		}
	}
}

// BenchmarkBoot opens 100 partitions of 100 000 messages each from their checkpoint states.
func BenchmarkBoot(b *testing.B) {
	const partitions = 100
	fs := vfs.NewOS(b.TempDir())
	files := NewFiles(0)
	var states [partitions]State
	for i := range states {
		l, _, err := Open(fs, fmt.Sprintf("p/%d", i), Options{Files: files}, State{})
		if err != nil {
			b.Fatal(err)
		}
		fill(b, l, 1000, 100, 100)
		c := l.Checkpoint()
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
		states[i] = c.State
		l.Close()
	}
	b.ReportAllocs()
	for b.Loop() {
		files := NewFiles(0)
		for i := range states {
			st, err := DecodeState(states[i].Append(nil))
			if err != nil {
				b.Fatal(err)
			}
			l, _, err := Open(fs, fmt.Sprintf("p/%d", i), Options{Files: files}, st)
			if err != nil {
				b.Fatal(err)
			}
			if err := l.Settle(); err != nil {
				b.Fatal(err)
			}
			l.Close()
		}
	}
}
