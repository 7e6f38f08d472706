package segment

import (
	"fmt"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Log is the loop side of one partition's messages. One goroutine at a time uses it; View and what
// it returns, Flush.Run, Checkpoint.Run and Removal.Run belong to any.
//
// Three positions order everything, each a count of bytes in log order ("log position"):
// flushed <= committed <= end. Below flushed bytes are in the files, between flushed and committed
// small batches are also (only) in tail memory, above committed nobody sees them.
type Log struct {
	fs         vfs.FS
	dir        string
	opt        Options
	life       *life
	generation uint64

	sealed []extent // closed, committed; shared with views, append-only
	active extent   // newest extent with committed bytes; seg nil: none
	start  uint64   // first retained offset
	commit uint64   // offset behind the last committed message

	// The append side, uncommitted batches included.
	last     *segment // file the next batch goes to unless it is full; nil: none
	lastLen  int64
	next     uint64
	time     uint64
	pending  []batch // appended, not committed, from head on
	head     int
	end      int64
	memory   tail
	timeFrom uint64 // time of the last committed batch

	committed, flushed int64
	bytes              int64 // retained, committed
	unflushed          int64 // committed bytes of small batches above flushed
	flushing           bool
	waiting            bool  // unflushed bytes were seen at since
	since              int64 // see FlushPlan

	condemned []*Removal // waiting for a checkpoint, oldest first

	damage  []*Damage                          // found by Open, until Settle
	scratch []byte                             // of Restore, until Settle
	origin  struct{ generation, start uint64 } // of the state given to Open
	view    atomic.Pointer[View]
}

// batch is one appended, uncommitted batch.
type batch struct {
	seg              *segment
	base, next, time uint64
	pos, len         int64
}

// Append places a stamped batch (base offset and base timestamp in its header) behind the last one
// as op. It never touches the file system and never fails. A small batch is copied; a large one
// stays the caller's, who writes it at the Placement. The batch is invisible until Publish.
// Panics if the batch does not start at Next.
func (l *Log) Append(batch []byte, op uint64) Placement {
	h := parseHeader(batch)
	if h.base != l.next || h.count == 0 || h.length != int64(len(batch)) {
		panic(fmt.Sprintf("segment: op %d: batch of %d messages, %d bytes at offset %d, log ends at %d", op, h.count, len(batch), h.base, l.next))
	}
	seg, pos := l.place(h)
	if len(batch) <= InlineLimit {
		l.memory.add(seg, pos, l.end-h.length, batch)
		return Placement{}
	}
	return Placement{Large: true, File: seg, At: Location{
		Segment: seg.base, Pos: pos, Len: h.length, Hash: wire.Hash64(batch[:headerSize]),
	}}
}

// place accounts for a batch at the end: where it goes is a function of the batches before it.
func (l *Log) place(h header) (*segment, int64) {
	if l.last == nil || l.lastLen >= l.opt.SegmentSize {
		l.last, l.lastLen = newSegment(l.life, h.base), 0
	}
	return l.extend(h)
}

// extend accounts for a batch at the end of the last file.
func (l *Log) extend(h header) (*segment, int64) {
	seg, pos := l.last, l.lastLen
	if l.head > 0 && len(l.pending) == cap(l.pending) {
		n := copy(l.pending, l.pending[l.head:])
		l.pending, l.head = l.pending[:n], 0
	}
	l.pending = append(l.pending, batch{seg, h.base, h.base + uint64(h.count), h.time, pos, h.length})
	l.lastLen += h.length
	l.end += h.length
	l.next = h.base + uint64(h.count)
	l.time = h.time
	return seg, pos
}

// Cut drops the uncommitted batches that start at next or above. Panics if that is below the
// commit point or inside a batch.
func (l *Log) Cut(next uint64) {
	for len(l.pending) > l.head && l.pending[len(l.pending)-1].base >= next {
		b := l.pending[len(l.pending)-1]
		l.pending = l.pending[:len(l.pending)-1]
		l.end -= b.len
		l.next = b.base
		if b.pos == 0 {
			l.life.files.forget(b.seg)
		}
	}
	if next < l.next {
		panic(fmt.Sprintf("segment: cut at offset %d, committed %d, last batch ends at %d", next, l.commit, l.next))
	}
	l.memory.cut(l.end)
	l.last, l.lastLen, l.time = l.active.seg, l.active.length, l.timeFrom
	if n := len(l.pending); n > l.head {
		b := l.pending[n-1]
		l.last, l.lastLen, l.time = b.seg, b.pos+b.len, b.time
	}
}

// Publish moves the commit point to next, the offset behind the last committed message, and swaps
// the View. A large batch may be published only when its bytes are written. Panics if next is
// inside a batch or above the end; does nothing if it is committed already.
func (l *Log) Publish(next uint64) {
	if next <= l.commit {
		return
	}
	for l.head < len(l.pending) && l.pending[l.head].next <= next {
		l.commitBatch(&l.pending[l.head])
		l.head++
	}
	if l.head == len(l.pending) {
		l.pending, l.head = l.pending[:0], 0
	}
	if next != l.commit {
		panic(fmt.Sprintf("segment: publish %d is not the end of a batch, committed %d, log ends at %d", next, l.commit, l.next))
	}
	l.publish()
}

func (l *Log) commitBatch(b *batch) {
	x := &l.active
	if x.seg != b.seg {
		if x.seg != nil {
			l.sealed = append(l.sealed, *x)
		}
		*x = extent{seg: b.seg, at: l.committed, firstTime: b.time}
	}
	x.next, x.lastTime = b.next, b.time
	x.last, x.length = b.pos, b.pos+b.len
	x.hot = grow(x.hot, b.pos, b.base-b.seg.base, b.time)
	l.commit, l.timeFrom = b.next, b.time
	l.committed += b.len
	l.bytes += b.len
	if b.len <= InlineLimit {
		l.unflushed += b.len
	}
}

// publish swaps the view: one small allocation a turn, nothing a batch.
func (l *Log) publish() {
	v := &View{
		generation: l.generation,
		start:      l.start,
		next:       l.commit,
		sealed:     l.sealed,
		active:     l.active,
		verify:     !l.opt.NoVerify,
	}
	v.memory, v.growing = l.memory.upTo(l.committed)
	l.view.Store(v)
}

// View returns the published view. Any goroutine.
func (l *Log) View() *View { return l.view.Load() }

// Next is the offset the next appended batch starts at.
func (l *Log) Next() uint64 { return l.next }

// Time is the base timestamp of the last appended batch in microseconds, 0 if there never was one
// since the last purge; the next batch's must be higher.
func (l *Log) Time() uint64 { return l.time }

// Generation is the purge generation.
func (l *Log) Generation() uint64 { return l.generation }

// Rest gives back the room appends needed, of a log that has fallen idle.
func (l *Log) Rest() {
	if l.head == len(l.pending) {
		l.pending, l.head = nil, 0
	}
}

// Stats of the committed log and of what waits in memory.
type Stats struct {
	Generation  uint64
	Segments    int    // files, and the empty one the next batch would open behind a full one
	Start, Next uint64 // committed messages are Start <= offset < Next
	Bytes       int64  // committed and retained
	Unflushed   int64  // committed small batches that only memory and the journal hold
	Uncommitted int64  // bytes
	Condemned   int    // trims and purges whose files wait for a checkpoint
}

// Stats returns the current figures.
func (l *Log) Stats() Stats {
	s := Stats{
		Generation: l.generation, Segments: len(l.sealed) + 1, Start: l.start, Next: l.commit,
		Bytes: l.bytes, Unflushed: l.unflushed, Uncommitted: l.end - l.committed, Condemned: len(l.condemned),
	}
	if l.active.seg != nil && l.full(&l.active) {
		s.Segments++
	}
	return s
}

// full reports whether x takes no further batch.
func (l *Log) full(x *extent) bool { return x.length >= l.opt.SegmentSize }
