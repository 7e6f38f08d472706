package segment

import (
	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/zeebo/xxh3"
)

// Scrub is the verification of one sealed segment: every batch, and the hash of the whole file.
type Scrub struct {
	view *View
	x    extent
	hash uint64
}

// ScrubPlan returns the verification of the sealed segment that follows offset after, of the oldest one if none does;
// nil if no sealed segment is wholly in its file. Last is where the next round goes on.
func (l *Log) ScrubPlan(after uint64) *Scrub {
	v := l.View()
	var oldest *extent
	for i := range v.closed(l.opt.SegmentSize) {
		x := v.extent(i)
		if x.at+x.length > l.flushed {
			break
		}
		if oldest == nil {
			oldest = x
		}
		if x.seg.base > after {
			oldest = x
			break
		}
	}
	if oldest == nil {
		return nil
	}
	return &Scrub{view: v, x: *oldest}
}

// Last is the base offset of the segment.
func (s *Scrub) Last() uint64 { return s.x.seg.base }

// Run reads the file through buf, which grows if a batch is larger, and verifies it. pace is told the bytes of every step, before it
// is read, and may wait; false ends the run early without a result. Any goroutine. Errors as for Plan.Read.
func (s *Scrub) Run(buf []byte, pace func(bytes int) bool) error {
	x := &s.x
	hash, err := x.verifyAll(func(dst []byte, pos int64) error { return s.view.readAt(x, dst, pos) }, x.length, buf, pace)
	if s.hash = hash; err == nil && hash != 0 && x.hash != 0 && x.hash != hash {
		return x.damage(0, "file hash has changed", nil)
	}
	return err
}

// verifyAll verifies the first length bytes of a segment, which end with a batch, and returns their hash, 0 if pace ended
// it early. pace may be nil.
func (x *extent) verifyAll(read func(dst []byte, pos int64) error, length int64, buf []byte, pace func(bytes int) bool) (hash uint64, err error) {
	next := x.seg.base
	var sum xxh3.Hasher
	if len(buf) < stride {
		buf = make([]byte, stride)
	}
	for pos := int64(0); pos < length; {
		n := int(min(int64(len(buf)), length-pos))
		if pace != nil && !pace(n) {
			return 0, nil
		}
		if err := read(buf[:n], pos); err != nil {
			return 0, err
		}
		used, err := x.verify(buf[:n], pos, &next)
		if err != nil {
			return 0, err
		}
		if used == 0 {
			size := parseHeader(buf).length
			if size > length-pos {
				return 0, x.damage(pos, "the last batch is cut", nil)
			}
			buf = make([]byte, size)
			continue
		}
		_, _ = sum.Write(buf[:used])
		pos += int64(used)
	}
	return sum.Sum64(), nil
}

// verify checks the whole batches at the front of b, which stands at pos, and returns their bytes.
func (x *extent) verify(b []byte, pos int64, next *uint64) (used int, err error) {
	for len(b)-used >= headerSize {
		at := pos + int64(used)
		h := parseHeader(b[used:])
		if !h.plausible(at, x) || h.base != *next {
			return 0, x.damage(at, "no batch where one must be", nil)
		}
		if int64(len(b)-used) < h.length {
			break
		}
		if err := wire.VerifyBatch(b[used : used+int(h.length)]); err != nil {
			return 0, x.damage(at, "batch does not verify", err)
		}
		used += int(h.length)
		*next = h.base + uint64(h.count)
	}
	if used == 0 && len(b) < headerSize {
		return 0, x.damage(pos, "bytes too short for a batch", nil)
	}
	return used, nil
}

// Scrubbed keeps the hash of a segment that verified; the next State carries it.
func (l *Log) Scrubbed(s *Scrub, err error) {
	if err != nil || s.hash == 0 || s.x.hash == s.hash {
		return
	}
	for i := range l.sealed {
		if l.sealed[i].seg == s.x.seg {
			sealed := append([]extent(nil), l.sealed...) // views hold the old ones
			sealed[i].hash = s.hash
			l.sealed = sealed
			l.publish()
			return
		}
	}
	if l.active.seg == s.x.seg && l.full(&l.active) {
		l.active.hash = s.hash
	}
}
