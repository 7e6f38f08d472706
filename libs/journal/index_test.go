package journal

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// narrow makes the index work hard on a small log.
func narrow(t testing.TB) {
	old := spacing
	spacing.ops, spacing.bytes, spacing.limit = 3, 900, 12
	t.Cleanup(func() { spacing = old })
}

// TestReadModel reads every entry back all along a random life with crashes, checkpoints and truncates.
func TestReadModel(t *testing.T) {
	for _, wide := range []bool{true, false} {
		t.Run(fmt.Sprintf("wide=%v", wide), func(t *testing.T) {
			if !wide {
				narrow(t)
			}
			for seed := range uint64(12) {
				r := newRig(t, seed, false)
				r.reads = true
				for range 5 {
					if err := r.run(150); err != nil {
						t.Fatal(err)
					}
					r.crash(false)
				}
			}
		})
	}
}

// TestReadRepaired: an entry that was written again below the head is read from its later place.
func TestReadRepaired(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	for op := range uint64(10) {
		mustWrite(t, j, prepare(1, op+1, 100))
	}
	name := j.path(j.active().name)
	at := fileHeaderSize + 3*(headerSize+256+100+footerSize+4) + 400
	disk.Corrupt(name, func(b []byte) []byte { b[at] ^= 1; return b })
	reader := j.NewReader()
	for op := range uint64(10) {
		_, _, err := reader.Read(1, op+1)
		if bad := op+1 == 4; bad != errors.Is(err, ErrDamaged) || !bad && err != nil {
			t.Fatalf("op %d: %v", op+1, err)
		}
	}
	mustWrite(t, j, prepare(1, 4, 100))
	check := func(j *Journal) {
		t.Helper()
		n := uint64(0)
		if err := j.NewReader().Range(1, 1, 10, func(e *Entry, _ []byte) error {
			if n++; e.Header.Op != n {
				return fmt.Errorf("op %d for %d", e.Header.Op, n)
			}
			return nil
		}); err != nil || n != 10 {
			t.Fatalf("%d read: %v", n, err)
		}
	}
	check(j)
	disk.Kill()
	j, _ = mustOpen(t, disk, nil)
	check(j)
	mustWrite(t, j, Record{Kind: KindTruncate, Group: 1, Op: 4}, prepare(1, 4, 50), prepare(1, 5, 50))
	if _, body, err := j.NewReader().Read(1, 4); err != nil || len(body) != 50 {
		t.Fatalf("%d bytes: %v", len(body), err)
	}
}

// TestReaderSeesWrites: a reader does not go on with bytes it read before a write.
func TestReaderSeesWrites(t *testing.T) {
	j, _ := mustOpen(t, vfs.NewMem(1), nil)
	reader := j.NewReader()
	for op := range uint64(5) {
		mustWrite(t, j, prepare(1, op+1, 100))
		if _, _, err := reader.Read(1, op+1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadDamagedHeader: entries behind a record whose header is lost are found all the same.
func TestReadDamagedHeader(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	from := j.active().end
	for op := range uint64(5) {
		mustWrite(t, j, prepare(1, op+1, 100))
	}
	size := (j.active().end - from) / 5
	disk.Corrupt(j.path(j.active().name), func(b []byte) []byte { clear(b[from+size : from+size+64]); return b })
	for op, want := range []error{nil, ErrDamaged, nil, nil, nil} {
		if _, _, err := j.NewReader().Read(1, uint64(op+1)); !errors.Is(err, want) || want == nil && err != nil {
			t.Fatalf("op %d: %v", op+1, err)
		}
	}
}

// TestReadBeside reads while a log is written, truncated and let go of, on a real file system.
func TestReadBeside(t *testing.T) {
	narrow(t)
	opt := testOptions(vfs.NewOS(t.TempDir()))
	opt.FileSize, opt.Reserve = 8<<10, 8<<10
	j, _, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var head, reads atomic.Uint64
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			r := j.NewReader()
			for {
				select {
				case <-stop:
					return
				default:
				}
				low, _ := j.First(1)
				next := low
				err := r.Range(1, low, head.Load(), func(e *Entry, body []byte) error {
					if e.Header.Op != next || len(body) != 100 || e.Header.Group != 1 {
						return fmt.Errorf("op %d with %d bytes, want %d", e.Header.Op, len(body), next)
					}
					next++
					reads.Add(1)
					return nil
				})
				if err != nil && !errors.Is(err, ErrDropped) {
					t.Error(err)
					return
				}
			}
		})
	}
	op := uint64(0)
	for round := 0; (round < 700 || reads.Load() < 1000) && !t.Failed(); round++ {
		op++
		if err := j.Write(&Round{Records: []Record{prepare(1, op, 100), prepare(2, uint64(round)+1, 20)}}); err != nil {
			t.Fatal(err)
		}
		switch head.Store(op); {
		case round%97 == 96:
			op -= 5
			if err := j.Write(&Round{Records: []Record{{Kind: KindTruncate, Group: 1, Op: op + 1}}}); err != nil {
				t.Fatal(err)
			}
		case round%60 == 59:
			if err := j.Checkpoint(j.Position(), []Image{{Group: 1, Op: op - 30}, {Group: 2, Op: uint64(round) + 1}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	readers.Wait()
}

// TestIndexBound: however the entries of many groups lie, the index stays within its bound, and what
// is pinned stays exact.
func TestIndexBound(t *testing.T) {
	narrow(t)
	spacing.limit = 200
	var x index
	lsn := LSN(4096)
	for op := range uint64(500) {
		for id := range uint64(20) {
			x.add(id, op+1, lsn, 4096)
			lsn += 400
		}
	}
	if n := 0; x.count > 2*20*(500/3+1) || x.step == spacing.bytes {
		t.Fatalf("%d marks, step %d", x.count, x.step)
	} else {
		for _, g := range x.groups {
			n += len(g.marks)
		}
		if n != x.count {
			t.Fatalf("%d marks counted, %d there", x.count, n)
		}
	}
}

// BenchmarkIndexIdle measures what the journal keeps in memory for a group that wrote once.
func BenchmarkIndexIdle(b *testing.B) {
	const groups = 10_000
	for b.Loop() {
		j, _, err := Open(Options{FS: vfs.NewOS(b.TempDir()), Dir: "loop-0"})
		if err != nil {
			b.Fatal(err)
		}
		r := &Round{}
		for g := range uint64(groups) {
			r.Records = append(r.Records, prepare(g, 1, 100))
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := j.Write(r); err != nil {
			b.Fatal(err)
		}
		j.arena, j.vec = nil, nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/groups, "B/group")
		runtime.KeepAlive(r)
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads entries of one of many groups that write in turn.
func BenchmarkRead(b *testing.B) {
	for _, groups := range []uint64{1, 1000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			j, _, err := Open(benchOptions(b))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = j.Close() }()
			const ops = 300
			for op := range uint64(ops) {
				r := &Round{}
				for g := range groups {
					r.Records = append(r.Records, prepare(g, op+1, 512))
				}
				if err := j.Write(r); err != nil {
					b.Fatal(err)
				}
			}
			reader, n := j.NewReader(), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				n++
				if _, _, err := reader.Read(n%groups, n*7%ops+1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(j.index.count), "marks")
		})
	}
}
