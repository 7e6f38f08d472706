package journal

import (
	"fmt"
	"sync"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

func benchOptions(b *testing.B) Options {
	return Options{FS: vfs.NewOS(b.TempDir()), Dir: "loop-0", Budget: 16 << 30}
}

// BenchmarkWrite measures one round of one record, as a lone request pays it.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{300, 1000, 10_000, 60_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j, _, err := Open(benchOptions(b))
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			r := &Round{Records: []Record{{Kind: KindPrepare, Group: 1, Op: 1, Frame: frame(1, 1, make([]byte, size))}}}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Write(r); err != nil {
					b.Fatal(err)
				}
				r.Records[0].Op++
			}
		})
	}
}

// BenchmarkWriteGroups measures a turn that touches 256 groups.
func BenchmarkWriteGroups(b *testing.B) {
	j, _, err := Open(benchOptions(b))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	r := &Round{}
	for g := range uint64(256) {
		r.Records = append(r.Records, Record{Kind: KindPrepare, Group: g, Op: 1, Frame: frame(g, 1, make([]byte, 512))})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Write(r); err != nil {
			b.Fatal(err)
		}
		for i := range r.Records {
			r.Records[i].Op++
		}
	}
}

// BenchmarkOpen measures the boot with a gigabyte of log.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []int{500, 60_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			opt := benchOptions(b)
			j, _, err := Open(opt)
			if err != nil {
				b.Fatal(err)
			}
			const total = 1 << 30
			body := make([]byte, size)
			r := &Round{}
			n := uint64(0)
			for j.Used() < total {
				r.Records = r.Records[:0]
				for range 100 {
					n++
					r.Records = append(r.Records, Record{Kind: KindPrepare, Group: n % 100, Op: n/100 + 1, Frame: frame(n%100, n/100+1, body)})
				}
				if err := j.Write(r); err != nil {
					b.Fatal(err)
				}
			}
			j.Close()
			b.SetBytes(total)
			b.ReportMetric(float64(n), "records")
			for b.Loop() {
				j, rec, err := Open(opt)
				if err != nil || len(rec.Corrupt) > 0 {
					b.Fatal(err, rec.Corrupt)
				}
				b.StopTimer()
				j.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkWriterSynced measures synced rounds of many loops: how many share a sync.
func BenchmarkWriterSynced(b *testing.B) {
	for _, producers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(producers), func(b *testing.B) {
			j, _, err := Open(benchOptions(b))
			if err != nil {
				b.Fatal(err)
			}
			done := make([]chan Done, producers)
			w := NewWriter(j, func(d Done) { done[d.Seq] <- d })
			next := make(chan struct{}, b.N)
			for range b.N {
				next <- struct{}{}
			}
			close(next)
			b.ResetTimer()
			var all sync.WaitGroup
			for p := range producers {
				done[p] = make(chan Done, 1)
				all.Go(func() {
					r := &Round{Seq: uint64(p), Sync: true, Records: []Record{prepare(uint64(p), 1, 1000)}}
					for range next {
						w.Submit(r)
						if d := <-done[p]; d.Err != nil {
							b.Error(d.Err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			w.Close()
			j.Close()
		})
	}
}
