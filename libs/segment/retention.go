package segment

// trimPass is the most segments one trim takes.
const trimPass = 16

// NoBarrier is the barrier of a partition without stored consumer offsets.
const NoBarrier = ^uint64(0)

// Retention is what TrimPlan judges segments by.
type Retention struct {
	Now, Expiry uint64 // microseconds; Expiry 0: messages never expire
	MaxBytes    int64  // of sealed segments; 0: unlimited
	Barrier     uint64 // lowest stored offset of any consumer, or NoBarrier

	HasWatermark bool // sealed segments up to offset Watermark are to go (DeleteSegments)
	Watermark    uint64
}

// closed returns how many extents are sealed: all but the newest, and that one when it is full,
// since the next batch opens a new file. They are v.extent(0..n).
func (v *View) closed(segmentSize int64) int {
	n := v.extents()
	if n > 0 && v.active.length < segmentSize {
		n--
	}
	return n
}

// TrimPlan returns the offset a trim op should carry: the last one of the last segment to go. false:
// nothing to trim. It takes whole sealed segments, oldest first, at most 16, none whose last offset
// is above the barrier.
func (l *Log) TrimPlan(r Retention) (upTo uint64, ok bool) {
	v := l.View()
	n := v.closed(l.opt.SegmentSize)
	var sealed int64
	for i := range n {
		sealed += v.extent(i).length
	}
	for i := range min(n, trimPass) {
		x := v.extent(i)
		last := x.next - 1
		expired := r.Expiry > 0 && add(min(x.lastTime, r.Now), r.Expiry) <= r.Now
		excess := r.MaxBytes > 0 && sealed > r.MaxBytes
		if last > r.Barrier || !expired && !excess && !(r.HasWatermark && last <= r.Watermark) {
			break
		}
		upTo, ok = last, true
		sealed -= x.length
	}
	return upTo, ok
}

// Sealed returns the last offset of the count-th oldest sealed segment, of the newest sealed one if
// there are fewer; false: none is sealed or count is 0.
func (l *Log) Sealed(count int) (last uint64, ok bool) {
	v := l.View()
	n := min(count, v.closed(l.opt.SegmentSize))
	if n <= 0 {
		return 0, false
	}
	return v.extent(n-1).next - 1, true
}

// Trim removes the sealed segments whose last offset is at or below upTo from the log and swaps the
// View. Their files come out of Checkpointed: until a durable checkpoint knows of the trim, the one
// before it counts them, or the journal names batches in them, and the trim op itself may be lost.
func (l *Log) Trim(upTo uint64) {
	r := l.removal()
	for len(l.sealed) > 0 && l.sealed[0].next-1 <= upTo {
		l.trimmed(r, &l.sealed[0])
		l.sealed = l.sealed[1:]
	}
	if x := &l.active; len(l.sealed) == 0 && x.seg != nil && l.full(x) && x.next-1 <= upTo {
		l.trimmed(r, x)
		if l.last == x.seg {
			l.last, l.lastLen = nil, 0
		}
		l.active = extent{}
	}
	if len(r.segments) == 0 {
		return
	}
	l.condemned = append(l.condemned, r)
	l.sealed = append([]extent(nil), l.sealed...)
	l.count()
	l.publish()
}

func (l *Log) trimmed(r *Removal, x *extent) {
	r.segments = append(r.segments, x.seg)
	l.memory.dropSegment(x.seg)
	l.start = x.next
	l.bytes -= x.length
}

// Purge drops every message, committed or not; offsets restart at 0 in a new directory. It does
// nothing unless generation is above the current one. The caller appends nothing between the purge
// op and its commit. The files come out of Checkpointed, as Trim's do.
func (l *Log) Purge(generation uint64) {
	if generation <= l.generation {
		return
	}
	r := l.removal()
	r.closed, r.life, r.names = l.segments(), l.life, []string{l.life.dir()}
	l.condemned = append(l.condemned, r)
	l.generation = generation
	l.life = &life{fs: l.fs, files: l.opt.Files, parent: l.dir, number: generation}
	l.sealed, l.active, l.pending, l.head, l.memory = nil, extent{}, nil, 0, tail{}
	l.last, l.lastLen = nil, 0
	l.start, l.commit, l.next, l.time, l.timeFrom = 0, 0, 0, 0, 0
	l.committed, l.flushed = l.end, l.end
	l.bytes, l.unflushed, l.waiting = 0, 0, false
	l.publish()
}

// Drop takes the whole partition away; the Log is not used afterwards, its views read ErrTrimmed. Run
// the Removal when the delete is durable.
func (l *Log) Drop() *Removal {
	r := l.removal()
	r.closed, r.life, r.names = l.segments(), l.life, []string{l.dir}
	return r
}

// segments returns all files of the log, uncommitted ones included.
func (l *Log) segments() []*segment {
	var all []*segment
	for i := range l.sealed {
		all = append(all, l.sealed[i].seg)
	}
	if l.active.seg != nil {
		all = append(all, l.active.seg)
	}
	for i := l.head; i < len(l.pending); i++ {
		if s := l.pending[i].seg; len(all) == 0 || all[len(all)-1] != s {
			all = append(all, s)
		}
	}
	return all
}
