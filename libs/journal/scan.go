package journal

import (
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// event is one thing a scan finds in a file, in order of position.
type event struct {
	recordHeader
	file *logFile
	pos  int64
	size int64
	raw  []byte // what stands at the payload's place; valid during the call

	what scanned
}

type scanned uint8

const (
	intact  scanned = iota
	spoiled         // the record is known by header or footer, its payload is not to be trusted
	torn            // as spoiled, and its footer is not there: the write may have ended early
	unknown         // pos..pos+size holds nothing readable; something may have stood there
	scuffed         // intact but for the footer
)

// scanner reads log files one after another into one buffer.
type scanner struct{ buf []byte }

// load reads f up to limit; bytes that cannot be read are zero and reported by the error.
func (s *scanner) load(f vfs.File, limit int64) ([]byte, error) {
	if int64(cap(s.buf)) < limit {
		s.buf = make([]byte, limit)
	}
	b := s.buf[:limit]
	const step = 4 << 20
	var failed error
	for at := int64(0); at < limit; at += step {
		part := b[at:min(at+step, limit)]
		if n, err := f.ReadAt(part, at); n < len(part) {
			clear(part[n:])
			if err != nil && failed == nil {
				failed = err
			}
		}
	}
	return b, failed
}

// scan finds the records in b, the bytes of f from its start, from position from on. It calls visit
// for each event until visit returns false, and returns the position behind the last record. What
// follows that position is not reported: the caller knows whether anything should.
func scan(f *logFile, b []byte, from int64, visit func(*event) bool) int64 {
	pos, limit := from, int64(len(b))
	var e event
	for pos+headerSize+footerSize <= limit {
		e = event{file: f, pos: pos}
		if !e.decode(b[pos:], f.first+LSN(pos)) {
			next := resync(f, b, pos, &e, visit)
			if next < 0 {
				return e.pos
			}
			if next == 0 {
				return pos
			}
			pos = next
			continue
		}
		e.size = paddedSize(int64(e.length))
		if pos+e.size > limit {
			e.size, e.what = limit-pos, torn
		} else {
			e.judge(b, f.first)
		}
		e.raw = b[pos+headerSize : min(pos+int64(e.length), limit)]
		if !visit(&e) {
			return pos
		}
		pos += e.size
	}
	return pos
}

// judge sets what e is from its payload and footer.
func (e *event) judge(b []byte, first LSN) {
	var foot recordHeader
	start, ok := foot.decodeFooter(b, first, e.pos+e.size)
	ok = ok && start == e.pos && foot.group == e.group && foot.op == e.op
	good := wire.Hash64(b[e.pos+headerSize:e.pos+int64(e.length)]) == e.payload
	switch {
	case good && ok:
		e.what = intact
	case good:
		e.what = scuffed
	case ok:
		e.what = spoiled
	default:
		e.what = torn
	}
}

// resync looks for the next readable place behind pos, where no header stands, and reports what was
// lost. It returns the position to go on from, 0 if nothing follows, -1 if visit ended the scan.
func resync(f *logFile, b []byte, pos int64, e *event, visit func(*event) bool) int64 {
	next := nextPlace(f, b, pos)
	if next == 0 {
		return 0
	}
	// Footers that end at next, and before it, name the records whose headers are lost.
	var lost []event
	end := next
	for end > pos {
		l := event{file: f, what: spoiled}
		start, ok := l.decodeFooter(b, f.first, end)
		if !ok || start < pos {
			break
		}
		l.pos, l.size = start, end-start
		lost = append(lost, l)
		end = start
	}
	if end > pos {
		*e = event{file: f, pos: pos, size: end - pos, what: unknown}
		if !visit(e) {
			return -1
		}
	}
	for i := len(lost) - 1; i >= 0; i-- {
		*e = lost[i]
		if !visit(e) {
			return -1
		}
	}
	return next
}

// nextPlace is the first position behind pos at which a record header stands or a footer of a
// record at or behind pos ends; 0 if there is none.
func nextPlace(f *logFile, b []byte, pos int64) int64 {
	var h recordHeader
	limit := int64(len(b))
	for p := pos + 8; p <= limit; p += 8 {
		if p+headerSize <= limit && le.Uint64(b[p+8:]) == uint64(f.first)+uint64(p) && h.decode(b[p:], f.first+LSN(p)) {
			return p
		}
		if p-footerSize < pos {
			continue
		}
		if n := int64(le.Uint32(b[p-16:])); n >= headerSize && paddedSize(n) <= p-pos {
			if start, ok := h.decodeFooter(b, f.first, p); ok && start >= pos {
				return p
			}
		}
	}
	return 0
}
