package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Reader reads entries back from the log, for peers that lack them. It may be used beside writes,
// truncates and checkpoints, by one goroutine at a time; it holds a buffer, and no file open.
type Reader struct {
	j     *Journal
	chunk []byte // bytes of file from at on
	file  *logFile
	at    int64
	whole []byte // a record that does not fit chunk
}

// readChunk is how much of the log is read at once.
const readChunk = 64 << 10

// NewReader returns a reader of the log.
func (j *Journal) NewReader() *Reader { return &Reader{j: j} }

// Read returns an entry and its inline body, which is empty when e.At.Len > 0 and valid until the
// next call. The header's and the body's checksum hold. ErrDropped: the log does not hold the op, or
// no more; ErrDamaged: it does, but damaged; other errors are those of the file system.
func (r *Reader) Read(group, op uint64) (e Entry, body []byte, err error) {
	err = r.Range(group, op, op, func(got *Entry, b []byte) error {
		e, body = *got, b
		return nil
	})
	return e, body, err
}

// Range calls visit for the entries low..top of a group in op order. It ends at the first one it cannot
// read, with the errors of Read, and at visit's first error. Entry and body are valid during the call.
func (r *Reader) Range(group, low, top uint64, visit func(e *Entry, body []byte) error) error {
	r.file = nil // what the chunk holds may be of an earlier life of its file
	for low <= top {
		s, ok := r.j.span(group, low)
		if !ok {
			return fmt.Errorf("%w: op %d of group %#x", ErrDropped, low, group)
		}
		next, err := r.walk(&s, group, low, min(top, s.next-1), visit)
		if err != nil {
			return err
		}
		low = next
	}
	return nil
}

func (j *Journal) span(group, op uint64) (span, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.index.span(group, op)
	if !ok {
		return span{}, false
	}
	s.file = j.holding(s.from)
	return s, s.file != nil
}

// lost is the error for an entry that is not where the index says: its file went meanwhile, or it is
// damaged.
func (r *Reader) lost(f *logFile, group, op uint64, err error) error {
	r.j.mu.Lock()
	held := slices.Contains(r.j.files, f)
	r.j.mu.Unlock()
	switch {
	case !held:
		err = ErrDropped
	case err == nil:
		err = ErrDamaged
	}
	return fmt.Errorf("%w: op %d of group %#x", err, op, group)
}

// walk reads the span forward and visits low..top. It returns the op to go on with.
func (r *Reader) walk(s *span, group, low, top uint64, visit func(*Entry, []byte) error) (uint64, error) {
	pos, end := int64(s.from-s.file.first), int64(s.to-s.file.first)
	for low <= top {
		if pos > end {
			return low, r.lost(s.file, group, low, nil)
		}
		b, err := r.bytes(s.file, pos, headerSize)
		if err != nil {
			return low, r.lost(s.file, group, low, err)
		}
		var h recordHeader
		if !h.decode(b, s.file.first+LSN(pos)) {
			pos += 8 // damage: the next record tells where it stands
			continue
		}
		if h.kind == KindPrepare && h.group == group && h.op == low {
			e, body, err := r.entry(s.file, pos, &h)
			if err != nil || e.Damaged {
				return low, r.lost(s.file, group, low, err)
			}
			if err := visit(&e, body); err != nil {
				return low, err
			}
			low++
		}
		pos += paddedSize(int64(h.length))
	}
	return low, nil
}

// entry reads the record with header h.
func (r *Reader) entry(f *logFile, pos int64, h *recordHeader) (e Entry, body []byte, err error) {
	b, err := r.bytes(f, pos, int(h.length))
	if err != nil {
		return e, nil, err
	}
	e = Entry{LSN: h.lsn, length: h.length}
	payload := b[headerSize:]
	ev := event{recordHeader: *h, raw: payload}
	if wire.Hash64(payload) != h.payload || !ev.header(&e.Header) {
		e.Damaged = true
		return e, nil, nil
	}
	if h.flags&flagLocated != 0 && len(payload) >= wire.HeaderSize+locationSize {
		e.At.decode(payload[len(payload)-locationSize:])
		return e, nil, nil
	}
	return e, payload[wire.HeaderSize:], nil
}

// bytes returns n bytes of the file from pos on, valid until the next call.
func (r *Reader) bytes(f *logFile, pos int64, n int) ([]byte, error) {
	if i := pos - r.at; r.file == f && i >= 0 && i+int64(n) <= int64(len(r.chunk)) {
		return r.chunk[i : i+int64(n)], nil
	}
	into := &r.chunk
	if n > readChunk {
		into = &r.whole
	}
	*into = slices.Grow((*into)[:0], max(n, readChunk))[:max(n, readChunk)]
	got, err := f.file.ReadAt(*into, pos)
	*into = (*into)[:got]
	if n <= readChunk {
		r.file, r.at = f, pos
	}
	switch {
	case got >= n:
		return (*into)[:n], nil
	case err == nil || errors.Is(err, io.EOF):
		err = ErrDamaged
	}
	return nil, err
}
