package journal

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Body reads the inline body of an entry into dst[:0], growing it if need be, and verifies it. An
// entry whose body is in a segment has an empty inline body.
func (j *Journal) Body(e *Entry, dst []byte) ([]byte, error) {
	if e.Damaged {
		return nil, ErrDamaged
	}
	j.mu.Lock()
	f := j.holding(e.LSN)
	j.mu.Unlock()
	if f == nil {
		return nil, ErrDropped
	}
	if e.At.Len > 0 {
		return dst[:0], nil
	}
	total := int64(e.length)
	dst = slices.Grow(dst[:0], int(total))[:total]
	if n, err := f.file.ReadAt(dst, int64(e.LSN-f.first)); int64(n) < total {
		return nil, err
	}
	var h recordHeader
	if !h.decode(dst, e.LSN) || int64(h.length) != total || wire.Hash64(dst[headerSize:]) != h.payload {
		return nil, ErrDamaged
	}
	n := copy(dst, dst[headerSize+wire.HeaderSize:])
	return dst[:n], nil
}

// holding is the file with the record at lsn. j.mu is held.
func (j *Journal) holding(lsn LSN) *logFile {
	for i := len(j.files) - 1; i >= 0; i-- {
		if f := j.files[i]; f.first <= lsn {
			if lsn < f.endLSN() {
				return f
			}
			return nil
		}
	}
	return nil
}

// Replay calls visit for every good entry of r in log order, reading the log once in large pieces.
// body is the inline body, empty when e.At.Len > 0, and is valid during the call. It must run before
// the first checkpoint; visit's error ends it.
func (j *Journal) Replay(r *Recovered, visit func(e *Entry, body []byte) error) error {
	byGroup := make(map[uint64]*GroupLog, len(r.Groups))
	for i := range r.Groups {
		byGroup[r.Groups[i].Group] = &r.Groups[i]
	}
	j.mu.Lock()
	files := slices.Clone(j.files)
	j.mu.Unlock()
	var s scanner
	for _, f := range files {
		if f.first >= r.End {
			break
		}
		b, err := s.load(f.file, f.end)
		if err != nil && !f.damaged {
			return err
		}
		var failed error
		scan(f, b, fileHeaderSize, func(ev *event) bool {
			if ev.kind != KindPrepare || ev.what != intact && ev.what != scuffed {
				return true
			}
			if e := byGroup[ev.group].entry(ev.op, f.first+LSN(ev.pos)); e != nil {
				var body []byte
				if e.At.Len == 0 {
					body = ev.raw[wire.HeaderSize:]
				}
				failed = visit(e, body)
			}
			return failed == nil
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// entry is g's good entry op, if it stands at lsn.
func (g *GroupLog) entry(op uint64, lsn LSN) *Entry {
	if g == nil || len(g.Entries) == 0 || op < g.Entries[0].Header.Op {
		return nil
	}
	// Ops are contiguous unless the group has faults.
	i := op - g.Entries[0].Header.Op
	if i >= uint64(len(g.Entries)) || g.Entries[i].Header.Op != op {
		for i = 0; i < uint64(len(g.Entries)) && g.Entries[i].Header.Op != op; i++ {
		}
		if i == uint64(len(g.Entries)) {
			return nil
		}
	}
	if e := &g.Entries[i]; e.LSN == lsn && !e.Damaged {
		return e
	}
	return nil
}
