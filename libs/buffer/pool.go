package buffer

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	minClassBits = 12 // 4 KiB
	maxClassBits = 26 // 64 MiB
	classes      = maxClassBits - minClassBits + 1

	// Frames up to this size overtake waiters of [Pool.Wait]: replies must fit while a large
	// request queues.
	overtake = 64 << 10

	// Budgets from here on keep a part for frames that may overtake, so that a few large frames that
	// get no further leave everybody else going.
	reserveFrom = 128 << 20
	reservePart = 8
)

// Pool hands out frames in power-of-two size classes (4 KiB to 64 MiB; larger frames are allocated
// to measure and not kept) and never lets the sum of their capacities exceed its budget. Released
// frames are kept for reuse as far as they fit into what is left of it, and given to the collector
// when none of their class was missing between two of its cycles.
type Pool struct {
	budget int64
	large  int64 // budget of frames that may not overtake
	used   atomic.Int64
	leaked atomic.Int64

	mu      sync.Mutex
	free    [classes][]*Frame
	spare   [classes]int // fewest frames in free since the last cycle of the collector
	kept    int64        // bytes in free
	waiters []*waiter    // by arrival
	waiting atomic.Int32
	parked  parking
}

type waiter struct {
	bytes int64
	ready chan struct{} // closed once the bytes are taken for this waiter
}

// NewPool returns a pool that may hand out up to budget bytes at a time.
func NewPool(budget int64) *Pool {
	p := &Pool{budget: budget, large: budget}
	if budget >= reserveFrom {
		p.large -= budget / reservePart
	}
	trimLater(weak.Make(p))
	return p
}

// Budget is the pool's limit in bytes.
func (p *Pool) Budget() int64 { return p.budget }

// Used is the number of budget bytes in frames not released yet.
func (p *Pool) Used() int64 { return p.used.Load() }

// Leaked counts frames that were collected without having been released.
func (p *Pool) Leaked() int64 { return p.leaked.Load() }

// Try returns a frame of n bytes with undefined content, or false when that would exceed the budget
// or overtake a waiter.
func (p *Pool) Try(n int) (*Frame, bool) {
	class, size := classOf(n)
	if size > overtake && p.waiting.Load() > 0 || !p.take(size) {
		return nil, false
	}
	return p.get(class, n, size), true
}

// Wait is Try for goroutines that may block up to limit. Waiters are served by arrival, so a large
// frame is not starved by small ones.
func (p *Pool) Wait(n int, limit time.Duration) (*Frame, bool) {
	if f, ok := p.Try(n); ok {
		return f, true
	}
	class, size := classOf(n)
	if size > p.limit(size) || limit <= 0 {
		return nil, false
	}
	w := &waiter{bytes: size, ready: make(chan struct{})}
	p.mu.Lock()
	p.waiters = append(p.waiters, w)
	p.waiting.Add(1)
	p.grant()
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
		if p.withdraw(w) {
			return nil, false
		}
	}
	return p.get(class, n, size), true
}

// withdraw removes w from the queue; false if its bytes were granted meanwhile.
func (p *Pool) withdraw(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.waiters {
		if other == w {
			p.waiters = append(p.waiters[:i], p.waiters[i+1:]...)
			p.waiting.Add(-1)
			p.grant()
			return true
		}
	}
	return false
}

// grant serves waiters from the head of the queue while the budget allows. p.mu is held.
func (p *Pool) grant() {
	for len(p.waiters) > 0 && p.take(p.waiters[0].bytes) {
		close(p.waiters[0].ready)
		p.waiters = append(p.waiters[:0], p.waiters[1:]...)
		p.waiting.Add(-1)
	}
}

// take never goes over the budget, not even for a moment: a waiter could miss its turn by that.
func (p *Pool) take(size int64) bool {
	limit := p.limit(size)
	for {
		used := p.used.Load()
		if used+size > limit {
			return false
		}
		if p.used.CompareAndSwap(used, used+size) {
			return true
		}
	}
}

// limit is the budget of frames of a size.
func (p *Pool) limit(size int64) int64 {
	if size > overtake {
		return p.large
	}
	return p.budget
}

func (p *Pool) returned(size int64) {
	p.used.Add(-size)
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	p.grant()
	p.mu.Unlock()
}

// get returns a frame whose bytes are already taken from the budget.
func (p *Pool) get(class, n int, size int64) *Frame {
	var f *Frame
	if class >= 0 {
		p.mu.Lock()
		if list := p.free[class]; len(list) > 0 {
			f = list[len(list)-1]
			p.drop(class, 1)
		}
		p.mu.Unlock()
	}
	if f == nil {
		p.shed()
		f = p.newFrame(make([]byte, size))
	}
	f.size = n
	f.refs.Store(1)
	f.lease.out.Store(true)
	return f
}

// shed gives kept frames to the collector, the largest first, until kept ones and those in use fit
// into the budget together.
func (p *Pool) shed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := classes - 1; class >= 0; class-- {
		if over := p.kept + p.used.Load() - p.budget; over > 0 {
			size := int64(1) << (class + minClassBits)
			p.drop(class, min(len(p.free[class]), int((over+size-1)/size)))
		}
	}
}

// trim gives up the frames that nobody needed for a cycle of the collector. It waits for nobody: the
// collector has more to clean up.
func (p *Pool) trim() {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	for class := range p.free {
		p.drop(class, p.spare[class])
		p.spare[class] = len(p.free[class])
	}
}

// drop removes the last n kept frames of a class. p.mu is held.
func (p *Pool) drop(class, n int) {
	list := p.free[class]
	rest := len(list) - n
	clear(list[rest:])
	p.free[class] = list[:rest]
	p.kept -= int64(n) << (class + minClassBits)
	p.spare[class] = min(p.spare[class], rest)
}

// cycle is an object that nobody keeps, so that the collector tells of its next cycle.
type cycle struct{ _ *cycle }

func trimLater(pool weak.Pointer[Pool]) {
	runtime.AddCleanup(new(cycle), func(pool weak.Pointer[Pool]) {
		if p := pool.Value(); p != nil {
			p.trim()
			trimLater(pool)
		}
	}, pool)
}

func (p *Pool) newFrame(data []byte) *Frame {
	f := &Frame{pool: p, data: data, lease: &lease{bytes: int64(len(data))}}
	runtime.AddCleanup(f, p.collected, f.lease)
	return f
}

func (p *Pool) collected(l *lease) {
	if l.out.Swap(false) {
		p.leaked.Add(1)
		p.returned(l.bytes)
	}
}

// put takes back a frame whose last reference is gone.
func (p *Pool) put(f *Frame) {
	size := int64(len(f.data))
	f.lease.out.Store(false)
	p.mu.Lock()
	keep := f
	if poison {
		keep = p.park(f)
	}
	if keep != nil {
		p.keep(keep)
	}
	p.mu.Unlock()
	p.returned(size)
}

// keep stores f for reuse. p.mu is held.
func (p *Pool) keep(f *Frame) {
	if class, size := classOf(len(f.data)); class >= 0 {
		p.free[class] = append(p.free[class], f)
		p.kept += size
	}
}

// classOf is the size class of n bytes and its capacity; class -1 for frames beyond the largest.
func classOf(n int) (class int, size int64) {
	if n > 1<<maxClassBits {
		return -1, int64(n)
	}
	b := max(minClassBits, bits.Len(uint(max(n, 1)-1)))
	return b - minClassBits, 1 << b
}
