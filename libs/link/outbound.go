package link

import (
	"sync"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// parcel is one frame on its way to the socket: header, borrowed body, copied bytes, in this order.
type parcel struct {
	head   wire.Header
	bare   bool   // body holds the header already
	body   []byte // borrowed until written: from owner, or from the caller that ticket stands for
	owner  *buffer.Frame
	ticket uint64 // 0: nobody waits for the end of the write
	from   int    // copied bytes: a range of the batch's arena
	to     int
}

// size is the number of bytes the frame puts on the wire.
func (p *parcel) size() int {
	n := len(p.body) + p.to - p.from
	if !p.bare {
		n += wire.HeaderSize
	}
	return n
}

// batch is a run of parcels with the memory of the bytes copied for them.
type batch struct {
	parcels []parcel
	arena   []byte
}

// reset empties b for reuse. Memory that only a burst needed goes to the collector.
func (b *batch) reset() {
	if cap(b.parcels) > 4096 || cap(b.arena) > 1<<20 {
		*b = batch{}
		return
	}
	clear(b.parcels)
	b.parcels, b.arena = b.parcels[:0], b.arena[:0]
}

// outbound is the queue between the senders of a connection and its writer, bounded in bytes. Urgent
// frames overtake the others, each kind keeps its order. Senders fill one pair of batches while the
// writer works on another, so a frame costs no allocation.
type outbound struct {
	limit int

	mu      sync.Mutex
	changed sync.Cond // bytes fell, frames came or the queue ended
	urgent  batch
	bulk    batch
	bytes   int // of all frames not written yet
	held    int // of requests whose answers are to come
	ended   bool
	killed  bool
}

func (q *outbound) init(limit int) {
	q.limit = limit
	q.changed.L = &q.mu
}

// outcome of a push.
type outcome uint8

const (
	queued outcome = iota
	full
	ended
)

// push adds a frame. It takes a reference of p.owner on success only. copied is appended behind the body.
// A frame fits when the queue is empty or stays within the limit; with force it always does.
func (q *outbound) push(p *parcel, copied []byte, urgent, force bool) outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := p.size() + len(copied)
	switch {
	case q.ended:
		return ended
	case !force && !q.fits(size):
		return full
	}
	q.add(p, copied, size, urgent)
	return queued
}

// pushWait is push that waits for room instead of finding the queue full.
func (q *outbound) pushWait(p *parcel, copied []byte) outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := p.size() + len(copied)
	for !q.ended && !q.fits(size) {
		q.changed.Wait()
	}
	if q.ended {
		return ended
	}
	q.add(p, copied, size, false)
	return queued
}

func (q *outbound) fits(size int) bool { return q.bytes == 0 || q.bytes+size <= q.limit }

func (q *outbound) add(p *parcel, copied []byte, size int, urgent bool) {
	b := &q.bulk
	if urgent {
		b = &q.urgent
	}
	b.parcels = append(b.parcels, *p)
	last := &b.parcels[len(b.parcels)-1]
	last.from = len(b.arena)
	b.arena = append(b.arena, copied...)
	last.to = len(b.arena)
	if p.owner != nil {
		p.owner.Retain()
	}
	q.bytes += size
	q.changed.Broadcast()
}

// take swaps the waiting urgent frames into urgent, and, if bulk is used up, the others into bulk. It
// waits for frames if there are none anywhere; false: there will be none any more.
func (q *outbound) take(urgent, bulk *batch, bulkUsed bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for bulkUsed && len(q.urgent.parcels)+len(q.bulk.parcels) == 0 {
		if q.ended {
			return false
		}
		q.changed.Wait()
	}
	if q.killed {
		return false
	}
	*urgent, q.urgent = q.urgent, *urgent
	if bulkUsed {
		*bulk, q.bulk = q.bulk, *bulk
	}
	return true
}

// written gives the bytes of written or dropped frames back.
func (q *outbound) written(n int) {
	q.mu.Lock()
	q.bytes -= n
	q.changed.Broadcast()
	q.mu.Unlock()
}

// waiting is the number of bytes not written yet.
func (q *outbound) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// end refuses further frames; what is queued is still written, unless kill is set.
func (q *outbound) end(kill bool) {
	q.mu.Lock()
	q.ended = true
	q.killed = q.killed || kill
	q.changed.Broadcast()
	q.mu.Unlock()
}

// drop releases what was never taken, once nobody takes any more, and returns how many frames it was.
func (q *outbound) drop() (frames int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range []*batch{&q.urgent, &q.bulk} {
		frames += len(b.parcels)
		b.release()
	}
	return frames
}

func (b *batch) release() {
	for i := range b.parcels {
		if f := b.parcels[i].owner; f != nil {
			f.Release()
		}
	}
	*b = batch{}
}

// hold counts n bytes of requests that are being served for the other side, after waiting until they and
// what waits to be written are within limit; false: the queue has ended.
func (q *outbound) hold(n, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended && q.held+q.bytes > limit {
		q.changed.Wait()
	}
	q.held += n
	if q.ended {
		q.held -= n
		return false
	}
	return true
}

func (q *outbound) unhold(n int) {
	q.mu.Lock()
	q.held -= n
	q.changed.Broadcast()
	q.mu.Unlock()
}
