package segment

// Small batches are copied to their files when one of these is due.
const (
	flushBytes = 256 << 10
	flushAge   = 5_000_000_000 // nanoseconds
)

// Flush is one lazy copy of committed small batches to their files. Run it on any goroutine, then
// give it to Flushed on the loop.
type Flush struct {
	parts []piece
	to    int64
}

// FlushPlan returns the copy that is due at now (nanoseconds of any monotonic clock): 256 KiB wait, or
// something has waited 5 s since FlushPlan first saw it, or its segment is closed, or force. It
// returns nil if nothing is due or a Flush is under way.
func (l *Log) FlushPlan(now int64, force bool) *Flush {
	if l.flushing || l.unflushed == 0 {
		return nil
	}
	if !l.waiting {
		l.waiting, l.since = true, now
	}
	closed := l.flushed < l.active.at || l.full(&l.active)
	if !force && !closed && l.unflushed < flushBytes && now-l.since < flushAge {
		return nil
	}
	l.flushing = true
	return l.flush()
}

func (l *Log) flush() *Flush {
	closed, growing := l.memory.upTo(l.committed)
	f := &Flush{to: l.committed}
	for i := 0; i <= len(closed); i++ {
		p := growing
		if i < len(closed) {
			p = closed[i]
		}
		if done := l.flushed - p.at; done > 0 {
			p.data = p.data[min(done, int64(len(p.data))):]
			p.pos, p.at = p.pos+done, p.at+done
		}
		if len(p.data) > 0 {
			f.parts = append(f.parts, p)
		}
	}
	return f
}

// Run writes the batches. It may run again after an error: the bytes of a place never change.
func (f *Flush) Run() error {
	for i := 0; i < len(f.parts); {
		first := &f.parts[i]
		bufs, end := [][]byte{first.data}, first.end()
		for i++; i < len(f.parts) && f.parts[i].seg == first.seg && f.parts[i].at == end; i++ {
			bufs, end = append(bufs, f.parts[i].data), f.parts[i].end()
		}
		if _, err := first.seg.WriteVec(bufs, first.pos); err != nil {
			return err
		}
	}
	return nil
}

// Flushed takes the result of Run back and swaps the View. After an error the batches stay in
// memory and the next FlushPlan has them again.
func (l *Log) Flushed(f *Flush, err error) {
	l.flushing = false
	if err == nil {
		l.flushedTo(f.to)
	}
}

func (l *Log) flushedTo(to int64) {
	if to <= l.flushed {
		return
	}
	l.flushed, l.waiting = to, false
	l.memory.drop(to)
	l.count()
	l.publish()
}

// count recomputes unflushed from what is in memory.
func (l *Log) count() {
	closed, growing := l.memory.upTo(l.committed)
	l.unflushed = max(0, growing.end()-max(growing.at, l.flushed))
	for i := range closed {
		l.unflushed += max(0, closed[i].end()-max(closed[i].at, l.flushed))
	}
}
