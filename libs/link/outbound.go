package link

import (
	"sync"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// smallBody is the size below which a body is copied into the queue instead of being borrowed: the
	// frames of a run are then one piece of memory, and one piece beats many.
	smallBody = 4 << 10
	// keptBatch is the memory in bytes that a queue keeps for the next frames. What a burst needed beyond
	// it goes to the collector.
	keptBatch = 4 << 20
)

// parcel is one frame on its way to the socket.
type parcel struct {
	body   []byte // borrowed until written: from owner, or from the caller that ticket stands for
	owner  *buffer.Frame
	ticket uint64 // 0: nobody waits for the end of the write
	front  int    // the frame is arena[front:split], body, arena[split:end] of its batch
	split  int
	end    int
}

// size is the number of bytes the frame puts on the wire.
func (p *parcel) size() int { return p.end - p.front + len(p.body) }

// batch is a run of parcels with the memory of what was copied for them, in the same order.
type batch struct {
	parcels []parcel
	arena   []byte
}

// reset empties b for reuse.
func (b *batch) reset() {
	if cap(b.arena) > keptBatch || cap(b.parcels) > keptBatch/wire.HeaderSize {
		*b = batch{}
		return
	}
	clear(b.parcels)
	b.parcels, b.arena = b.parcels[:0], b.arena[:0]
}

// post is a frame to be queued, behind its header: body and tail in this order. The body is borrowed when it
// is large and owner or ticket says from whom, and copied otherwise; header and tail are always copied.
type post struct {
	body   []byte
	tail   []byte
	owner  *buffer.Frame
	ticket uint64
	urgent bool
}

func (p *post) size(h *wire.Header) int {
	n := len(p.body) + len(p.tail)
	if h != nil {
		n += wire.HeaderSize
	}
	return n
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

// push adds a frame, with the header h unless the body begins with it, and takes a reference of its owner if it borrows the body. A frame fits when the queue
// is empty or stays within the limit; with force it always does.
func (q *outbound) push(h *wire.Header, p *post, force bool) outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ended:
		return ended
	case !force && !q.fits(p.size(h)):
		return full
	}
	q.add(h, p)
	return queued
}

// pushWait is push that waits for room instead of finding the queue full.
func (q *outbound) pushWait(h *wire.Header, p *post) outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended && !q.fits(p.size(h)) {
		q.changed.Wait()
	}
	if q.ended {
		return ended
	}
	q.add(h, p)
	return queued
}

func (q *outbound) fits(size int) bool { return q.bytes == 0 || q.bytes+size <= q.limit }

func (q *outbound) add(h *wire.Header, p *post) {
	b := &q.bulk
	if p.urgent {
		b = &q.urgent
	}
	e := parcel{ticket: p.ticket, front: len(b.arena)}
	if h != nil {
		b.arena = append(b.arena, h[:]...)
	}
	if len(p.body) < smallBody || p.owner == nil && p.ticket == 0 {
		b.arena = append(b.arena, p.body...)
	} else {
		e.body, e.owner = p.body, p.owner
		if e.owner != nil {
			e.owner.Retain()
		}
	}
	e.split = len(b.arena)
	b.arena = append(b.arena, p.tail...)
	e.end = len(b.arena)
	b.parcels = append(b.parcels, e)
	q.bytes += e.size()
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
