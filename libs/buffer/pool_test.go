package buffer

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func try(t *testing.T, p *Pool, n int) *Frame {
	t.Helper()
	f, ok := p.Try(n)
	if !ok {
		t.Fatalf("no frame of %d bytes, %d of %d used", n, p.Used(), p.Budget())
	}
	if f.Len() != n || len(f.Bytes()) != n || f.Cap() < n {
		t.Fatalf("%d bytes, length %d, capacity %d", n, f.Len(), f.Cap())
	}
	return f
}

// idle is the number of bytes kept for reuse. The collector's goroutine may be trimming them.
func (p *Pool) idle() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept
}

func TestSizeClasses(t *testing.T) {
	p := NewPool(1 << 30)
	for _, c := range []struct{ n, size int }{
		{0, 4 << 10}, {1, 4 << 10}, {4096, 4 << 10}, {4097, 8 << 10}, {1 << 20, 1 << 20}, {1<<20 + 1, 2 << 20}, {64 << 20, 64 << 20}, {64<<20 + 256, 64<<20 + 256},
	} {
		f := try(t, p, c.n)
		if f.Cap() != c.size || p.Used() != int64(c.size) {
			t.Errorf("%d bytes: capacity %d, %d used, want %d", c.n, f.Cap(), p.Used(), c.size)
		}
		f.Release()
		if p.Used() != 0 {
			t.Fatalf("%d used after release", p.Used())
		}
	}
}

func TestBudget(t *testing.T) {
	p := NewPool(16 << 10)
	a, b := try(t, p, 8<<10), try(t, p, 4<<10)
	if _, ok := p.Try(8 << 10); ok {
		t.Fatal("over budget")
	}
	c := try(t, p, 100)
	b.Release()
	if _, ok := p.Try(8 << 10); ok {
		t.Fatal("over budget")
	}
	a.Retain()
	a.Release()
	if _, ok := p.Try(8 << 10); ok {
		t.Fatal("a held frame was given back")
	}
	a.Release()
	try(t, p, 8<<10).Release()
	c.Release()
	if p.Used() != 0 {
		t.Fatalf("%d used", p.Used())
	}
}

func TestResize(t *testing.T) {
	f := try(t, NewPool(1<<20), 10)
	copy(f.Bytes(), "0123456789")
	f.Resize(4096)
	if string(f.Bytes()[:10]) != "0123456789" {
		t.Fatal("resize lost bytes")
	}
	f.Resize(3)
	if string(f.Bytes()) != "012" {
		t.Fatal("resize lost bytes")
	}
	defer func() {
		if recover() == nil {
			t.Fatal("resize beyond the capacity")
		}
	}()
	f.Resize(4097)
}

func TestTooManyReleases(t *testing.T) {
	f := try(t, NewPool(1<<20), 10)
	f.Release()
	defer func() {
		if recover() == nil {
			t.Fatal("released twice")
		}
	}()
	f.Release()
}

// TestWaitInOrder: a large frame waits at the head of the queue and smaller ones do not overtake it;
// replies do.
func TestWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(4 << 20)
		held := []*Frame{try(t, p, 1<<20), try(t, p, 1<<20), try(t, p, 1<<20)}
		var mu sync.Mutex
		var order []int
		frames := map[int]*Frame{}
		wait := func(n int) {
			go func() {
				f, ok := p.Wait(n, time.Hour)
				if !ok {
					t.Error("timed out")
					return
				}
				mu.Lock()
				defer mu.Unlock()
				order, frames[n] = append(order, n), f
			}()
			synctest.Wait()
		}
		wait(4 << 20)
		wait(1 << 20)
		if _, ok := p.Try(512 << 10); ok {
			t.Fatal("overtook the waiters")
		}
		try(t, p, 4<<10).Release()
		for _, f := range held {
			if len(order) > 0 {
				t.Fatalf("%v served too early", order)
			}
			f.Release()
			synctest.Wait()
		}
		if len(order) != 1 || order[0] != 4<<20 {
			t.Fatalf("served %v", order)
		}
		frames[4<<20].Release()
		synctest.Wait()
		if len(order) != 2 {
			t.Fatalf("served %v", order)
		}
		frames[1<<20].Release()
		if p.Used() != 0 {
			t.Fatalf("%d used", p.Used())
		}
	})
}

// TestWaitGivesUp: a waiter that gives up leaves the queue and makes room for those behind it.
func TestWaitGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(2 << 20)
		held := try(t, p, 1<<20)
		go func() {
			if _, ok := p.Wait(2<<20, time.Second); ok {
				t.Error("got more than there was")
			}
		}()
		synctest.Wait()
		var got atomic.Pointer[Frame]
		go func() {
			f, _ := p.Wait(1<<20, time.Minute)
			got.Store(f)
		}()
		synctest.Wait()
		if got.Load() != nil {
			t.Fatal("overtook")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got.Load() == nil {
			t.Fatal("the waiter behind was not served")
		}
		got.Load().Release()
		held.Release()
		if _, ok := p.Wait(4<<20, time.Hour); ok || p.Used() != 0 {
			t.Fatal("more than the budget")
		}
	})
}

// TestLeak: the budget of a frame nobody released comes back with the collector, and is counted.
func TestLeak(t *testing.T) {
	p := NewPool(1 << 20)
	func() { try(t, p, 1000) }()
	for deadline := time.Now().Add(10 * time.Second); p.Leaked() == 0 || p.Used() > 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the leak is not noticed")
		}
	}
	if p.Leaked() != 1 || p.Used() != 0 {
		t.Fatalf("%d leaked, %d used", p.Leaked(), p.Used())
	}
}

// TestConcurrent passes frames between goroutines; no two owners ever see the same buffer.
func TestConcurrent(t *testing.T) {
	p := NewPool(1 << 20)
	var wg sync.WaitGroup
	for id := range byte(8) {
		wg.Go(func() {
			for i := range 500 {
				f, ok := p.Wait(1+i*37%30_000, 10*time.Second)
				if !ok {
					t.Error("timed out")
					return
				}
				b := f.Bytes()
				for k := range b {
					b[k] = id
				}
				f.Freeze()
				f.Retain()
				done := make(chan bool)
				go func() {
					defer close(done)
					defer f.Release()
					for _, c := range f.Bytes() {
						if c != id {
							t.Error("another owner's bytes")
							return
						}
					}
				}()
				<-done
				f.Release()
			}
		})
	}
	wg.Wait()
	if p.Used() != 0 || p.Leaked() != 0 {
		t.Fatalf("%d used, %d leaked", p.Used(), p.Leaked())
	}
}

func BenchmarkTryRelease(b *testing.B) {
	p := NewPool(1 << 30)
	b.ReportAllocs()
	for b.Loop() {
		f, _ := p.Try(1000)
		f.Release()
	}
}

// A few large frames that get no further leave room for small ones.
func TestLargeFramesLeaveRoom(t *testing.T) {
	p := NewPool(128 << 20)
	large := try(t, p, 64<<20)
	var held []*Frame
	for range 24 {
		held = append(held, try(t, p, 2<<20))
	}
	if _, ok := p.Try(64<<10 + 1); ok {
		t.Error("large frames took everything")
	}
	if _, ok := p.Wait(113<<20, time.Hour); ok {
		t.Error("a frame was granted that does not fit")
	}
	for range 16 << 20 / (64 << 10) {
		held = append(held, try(t, p, 64<<10))
	}
	if _, ok := p.Try(1); ok || p.Used() != p.Budget() {
		t.Errorf("over budget: %d of %d", p.Used(), p.Budget())
	}
	large.Release()
	try(t, p, 32<<20)
	runtime.KeepAlive(held)
}

// What is kept for reuse never comes on top of the budget.
func TestKeptFramesFitTheBudget(t *testing.T) {
	p := NewPool(8 << 20)
	for _, size := range []int{8 << 20, 4 << 20, 2 << 20, 1 << 20, 64 << 10, 4 << 10, 8 << 20} {
		var out []*Frame
		for {
			f, ok := p.Try(size)
			if !ok {
				break
			}
			out = append(out, f)
			if total := p.idle() + p.Used(); total > p.Budget() {
				t.Fatalf("frames of %d bytes: %d bytes held, the budget is %d", size, total, p.Budget())
			}
		}
		if len(out) != 8<<20/size {
			t.Fatalf("%d frames of %d bytes", len(out), size)
		}
		for _, f := range out {
			f.Release()
		}
	}
}
