package journal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// owner is a loop as the writer sees it: it numbers rounds and takes completions.
type owner struct {
	mu   sync.Mutex
	cond sync.Cond
	done map[uint64]Done
	list []Done
}

func newOwner() *owner {
	o := &owner{done: map[uint64]Done{}}
	o.cond.L = &o.mu
	return o
}

func (o *owner) notify(d Done) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, twice := o.done[d.Seq]; twice {
		panic(fmt.Sprintf("round %d is done twice", d.Seq))
	}
	o.done[d.Seq] = d
	o.list = append(o.list, d)
	o.cond.Broadcast()
}

func (o *owner) wait(seq uint64) Done {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if d, ok := o.done[seq]; ok {
			return d
		}
		o.cond.Wait()
	}
}

// TestWriterOrder: rounds of several loops complete once each, in order of submission among the
// written and among the synced ones, and all of them are in the log.
func TestWriterOrder(t *testing.T) {
	for _, fs := range []struct {
		name string
		fs   vfs.FS
	}{{"os", vfs.NewOS(t.TempDir())}, {"mem", vfs.NewMem(1)}} {
		t.Run(fs.name, func(t *testing.T) {
			opt := testOptions(fs.fs)
			opt.FileSize, opt.Reserve, opt.Budget = 1<<20, 1<<20, 1<<30
			j, _, err := Open(opt)
			if err != nil {
				t.Fatal(err)
			}
			o := newOwner()
			w := NewWriter(j, o.notify)
			const rounds = 3000
			inline := 0
			for seq := uint64(1); seq <= rounds; seq++ {
				size := int(seq*7919) % 900
				if seq%100 == 0 {
					size = 60_000
				}
				r := &Round{Seq: seq, Sync: seq%5 == 0, Records: []Record{prepare(1, seq, size)}}
				if seq%3 == 0 {
					if d, ok := w.TryInline(r); ok {
						inline++
						o.notify(d)
						continue
					}
				}
				if !w.Submit(r) {
					t.Fatal("refused")
				}
				if seq%50 == 0 {
					o.wait(seq)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			var written, synced uint64
			for _, d := range o.list {
				last := &written
				if d.Seq%5 == 0 {
					last = &synced
				}
				if d.Err != nil || d.Seq <= *last || d.Synced != (d.Seq%5 == 0) || d.LSN == 0 {
					t.Fatalf("%+v after %d", d, *last)
				}
				*last = d.Seq
			}
			if len(o.list) != rounds {
				t.Fatalf("%d completions", len(o.list))
			}
			if w.Submit(&Round{}) {
				t.Fatal("taken after Close")
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j, rec, err := Open(opt)
			if err != nil || headOf(rec, 1) != rounds || len(rec.Corrupt) > 0 || len(rec.Groups[0].Faults) > 0 {
				t.Fatalf("%v, head %d, %+v", err, headOf(rec, 1), rec.Corrupt)
			}
			t.Logf("%d inline", inline)
			j.Close()
		})
	}
}

// TestWriterConcurrently runs loops, checkpoints and syncs side by side, for the race detector.
func TestWriterConcurrently(t *testing.T) {
	disk := vfs.NewMem(1)
	opt := testOptions(disk)
	opt.Budget = 1 << 30
	j, _, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	o := newOwner()
	w := NewWriter(j, o.notify)
	body, _ := disk.Create("body")
	const loops, rounds = 4, 200
	var wg sync.WaitGroup
	for loop := range uint64(loops) {
		wg.Go(func() {
			for op := uint64(1); op <= rounds; op++ {
				r := &Round{Seq: loop*rounds + op, Records: []Record{prepare(loop+1, op, 500)}, Sync: loop == 0}
				if op%10 == 0 {
					h := frame(loop+1, op, nil)
					r.Records = []Record{{Kind: KindPrepare, Group: loop + 1, Op: op, Frame: h, At: Location{Len: 100_000, Pos: int64(op)}}}
					r.Large = []LargeBody{{File: body, Pos: int64(op) << 12, Data: make([]byte, 4096)}}
				}
				d, ok := w.TryInline(r)
				if ok {
					o.notify(d)
				} else if !w.Submit(r) {
					t.Error("refused")
				}
				if d = o.wait(r.Seq); d.Err != nil {
					t.Error(d.Err)
				}
				if op%50 == 0 {
					wg.Add(1)
					w.Checkpoint(0, nil, func(error) { wg.Done() })
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	disk.Kill()
	_, rec := mustOpen(t, disk, nil)
	for loop := range uint64(loops) {
		if headOf(rec, loop+1) != rounds {
			t.Fatalf("loop %d has head %d", loop, headOf(rec, loop+1))
		}
	}
}

// gate is a file system whose syncs wait to be let through and whose vectored writes are counted.
type gate struct {
	vfs.FS
	pass   chan struct{}
	writes atomic.Int32
}

type gateFile struct {
	vfs.File
	g *gate
}

func (g *gate) Open(name string) (vfs.File, error) {
	f, err := g.FS.Open(name)
	return &gateFile{f, g}, err
}

func (f *gateFile) WriteVec(bufs [][]byte, at int64) (int64, error) {
	f.g.writes.Add(1)
	return f.File.WriteVec(bufs, at)
}

func (f *gateFile) Sync() error {
	<-f.g.pass
	return f.File.Sync()
}

// TestWriterGroupCommit: what is submitted while a sync runs shares the next one and the write
// before it, and rounds that want no sync do not wait for it.
func TestWriterGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{FS: vfs.NewMem(1), pass: make(chan struct{}, 100)}
		for range 10 {
			g.pass <- struct{}{} // for Open
		}
		j, _, err := Open(testOptions(g))
		if err != nil {
			t.Fatal(err)
		}
		for len(g.pass) > 0 {
			<-g.pass
		}
		o := newOwner()
		w := NewWriter(j, o.notify)
		for seq := uint64(1); seq <= 50; seq++ {
			w.Submit(&Round{Seq: seq, Sync: true, Records: []Record{prepare(1, seq, 10)}})
			synctest.Wait()
		}
		if n := g.writes.Load(); n != 1 {
			t.Fatalf("%d writes while the sync hangs", n)
		}
		w.Submit(&Round{Seq: 51, Records: []Record{prepare(1, 51, 10)}})
		if d := o.wait(51); d.Synced || d.Err != nil {
			t.Fatalf("%+v", d)
		}
		if n := g.writes.Load(); n != 2 || len(o.list) != 1 {
			t.Fatalf("%d writes and %d done while the sync hangs", n, len(o.list))
		}
		g.pass <- struct{}{}
		g.pass <- struct{}{}
		if d := o.wait(50); !d.Synced {
			t.Fatalf("%+v", d)
		}
		synctest.Wait()
		if len(o.list) != 51 || len(g.pass) != 0 {
			t.Fatalf("%d done, %d syncs left", len(o.list), len(g.pass))
		}
		close(g.pass)
		w.Close()
	})
}

// TestWriterBackgroundSync: what nobody wants synced is synced a second later, large bodies too.
func TestWriterBackgroundSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem(4)
		disk.MkdirAll("loop-0")
		body, err := disk.Create("body")
		if err != nil {
			t.Fatal(err)
		}
		disk.SyncDir(".")
		j, _ := mustOpen(t, disk, nil)
		o := newOwner()
		w := NewWriter(j, o.notify)
		data := make([]byte, 100_000)
		for i := range data {
			data[i] = byte(i * 7)
		}
		at := Location{Len: 100_000}
		w.Submit(&Round{Seq: 1, Records: []Record{{Kind: KindPrepare, Group: 1, Op: 1, Frame: frame(1, 1, nil), At: at}}, Large: []LargeBody{{File: body, Data: data}}})
		o.wait(1)
		time.Sleep(SyncInterval + time.Millisecond)
		synctest.Wait()
		disk.PowerCut()
		if got := disk.Read("body"); string(got) != string(data) {
			t.Fatal("body was not synced")
		}
		_, rec := mustOpen(t, disk, func(o *Options) { o.Suspect = true })
		if headOf(rec, 1) != 1 {
			t.Fatal("record was not synced")
		}
		w.Close()
	})
}

// TestWriterAfterFailedSync: after a failed sync everything fails, and the process cannot be talked
// into acknowledging anything.
func TestWriterAfterFailedSync(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	o := newOwner()
	w := NewWriter(j, o.notify)
	disk.SetFault(func(c vfs.Call) vfs.Fault {
		if c.Op == vfs.OpSync {
			return vfs.Fault{Err: syscall.EIO}
		}
		return vfs.Fault{}
	})
	w.Submit(&Round{Seq: 1, Sync: true, Records: []Record{prepare(1, 1, 10)}})
	if d := o.wait(1); !errors.Is(d.Err, ErrFailed) || d.Synced {
		t.Fatalf("%+v", d)
	}
	disk.SetFault(nil)
	for seq := uint64(2); seq < 5; seq++ {
		w.Resume()
		if d, ok := w.TryInline(&Round{Seq: seq, Records: []Record{prepare(1, seq, 10)}}); ok {
			o.notify(d)
		} else {
			w.Submit(&Round{Seq: seq, Sync: seq%2 == 0, Records: []Record{prepare(1, seq, 10)}})
		}
		if d := o.wait(seq); !errors.Is(d.Err, ErrFailed) {
			t.Fatalf("%+v", d)
		}
	}
	if err := w.Close(); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
}

// TestWriterOverBudget: rounds are refused when the log is full, but for reserved ones, and taken
// again after a checkpoint.
func TestWriterOverBudget(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, func(o *Options) { o.Budget = 100_000 })
	o := newOwner()
	w := NewWriter(j, o.notify)
	op := uint64(0)
	for w.Submit(&Round{Seq: op + 1, Records: []Record{prepare(1, op+1, 5000)}}) {
		op++
		o.wait(op)
	}
	if op < 15 || op > 20 || j.Used() > j.Limit() {
		t.Fatalf("%d rounds, %d of %d used", op, j.Used(), j.Limit())
	}
	op++
	if !w.Submit(&Round{Seq: op, Reserved: true, Records: []Record{prepare(1, op, 5000)}}) {
		t.Fatal("reserved round is refused")
	}
	o.wait(op)
	done := make(chan error)
	w.Checkpoint(j.Position(), []Image{{Group: 1, Op: op}}, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	op++
	if !w.Submit(&Round{Seq: op, Records: []Record{prepare(1, op, 5000)}}) {
		t.Fatal("refused after a checkpoint")
	}
	if d := o.wait(op); d.Err != nil {
		t.Fatal(d.Err)
	}
	w.Close()
}

// TestFullDisk fills the disk: rounds fail with ErrFull until Resume, reserved ones go on, nothing
// done is lost, and service returns with the space.
func TestFullDisk(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, func(o *Options) { o.Budget = 1 << 30 })
	o := newOwner()
	w := NewWriter(j, o.notify)
	disk.SetCapacity(disk.Allocated() + 50_000)
	op, seq := uint64(0), uint64(0)
	submit := func(reserved bool) error {
		seq++
		if !w.Submit(&Round{Seq: seq, Reserved: reserved, Records: []Record{prepare(1, op+1, 3000)}}) {
			t.Fatal("refused")
		}
		err := o.wait(seq).Err
		if err == nil {
			op++
		}
		return err
	}
	for submit(false) == nil {
	}
	if err := submit(true); !errors.Is(err, ErrFull) {
		t.Fatalf("a round behind a failed one: %v", err)
	}
	w.Resume()
	for range 2 {
		if err := submit(true); err != nil {
			t.Fatalf("reserved: %v", err)
		}
	}
	if !j.Full() {
		t.Fatal("not full")
	}
	if err := submit(false); !errors.Is(err, ErrFull) {
		t.Fatalf("not reserved: %v", err)
	}
	w.Resume()
	disk.Kill()
	_, rec := mustOpen(t, disk, nil)
	if headOf(rec, 1) != op || len(rec.Groups[0].Faults) > 0 {
		t.Fatalf("head %d, want %d; %+v", headOf(rec, 1), op, rec)
	}
	w.Close()

	j, _ = mustOpen(t, disk, func(o *Options) { o.Budget = 1 << 30 })
	w = NewWriter(j, o.notify)
	disk.SetCapacity(0)
	if err := submit(false); err != nil {
		t.Fatalf("with space: %v", err)
	}
	w.Close()
}

// TestWriteAllocatesNothing holds the writer to its word.
func TestWriteAllocatesNothing(t *testing.T) {
	opt := testOptions(vfs.NewOS(t.TempDir()))
	opt.FileSize, opt.Budget = 16<<20, 1<<30
	j, _, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	small, large := frame(1, 1, make([]byte, 900)), frame(1, 1, make([]byte, 50_000))
	r := &Round{Records: []Record{
		{Kind: KindPrepare, Group: 1, Op: 1, Frame: small}, {Kind: KindPrepare, Group: 2, Op: 1, Frame: large},
		{Kind: KindPrepare, Group: 3, Op: 1, Frame: small[:256], At: Location{Len: 5}},
	}}
	if n := testing.AllocsPerRun(50, func() {
		if err := j.Write(r); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Fatalf("%v allocations per round", n)
	}
	j.Close()
}
