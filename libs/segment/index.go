package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// stride is the least distance in bytes between two index entries.
const stride = 32 << 10

// entry points at a batch.
type entry struct {
	time  uint64 // base timestamp
	delta uint32 // base offset minus the segment's
	pos   uint32
}

// index covers the first length bytes of a segment: the first batch, then the first one at least
// stride bytes behind the previous entry. So a batch longer than stride is followed by an entry, and
// the distance between two entries is below stride plus one batch.
type index struct {
	entries []entry
	length  int64
}

// extent is the committed part of a segment. Views hold it by value; hot only ever grows behind
// what a copy sees, so a published copy never changes.
type extent struct {
	seg                 *segment
	at                  int64  // log position of the segment's first byte
	next                uint64 // offset behind its last message
	length              int64  // bytes
	last                int64  // position of the last batch
	firstTime, lastTime uint64
	hash                uint64 // XXH3 of a sealed file, 0 while unknown
	coldLen             int64  // bytes covered by seg.cold, which is read on demand; hot covers the rest
	hot                 []entry
}

// warm returns the cold entries; false if they must be read from disk first.
func (x *extent) warm() ([]entry, bool) {
	if x.coldLen == 0 {
		return nil, true
	}
	ix := x.seg.cold.Load()
	if ix == nil || ix.length < x.coldLen {
		return nil, false
	}
	n := len(ix.entries)
	for n > 0 && int64(ix.entries[n-1].pos) >= x.coldLen {
		n-- // read for a later view, which knows more of the file
	}
	return ix.entries[:n], true
}

// entries is the whole index of an extent, usable without I/O.
type entries struct {
	cold, hot []entry
}

func (e entries) len() int { return len(e.cold) + len(e.hot) }

func (e entries) at(i int) entry {
	if i < len(e.cold) {
		return e.cold[i]
	}
	return e.hot[i-len(e.cold)]
}

// byDelta returns the first entry whose delta is at or above d, len() if there is none.
func (e entries) byDelta(d uint64) int {
	lo, hi := 0, e.len()
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); uint64(e.at(mid).delta) < d {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// byTime returns the first entry whose time is at or above t, len() if there is none.
func (e entries) byTime(t uint64) int {
	lo, hi := 0, e.len()
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); e.at(mid).time < t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// grow appends the batch at pos to entries if it is due.
func grow(es []entry, pos int64, delta, time uint64) []entry {
	if len(es) > 0 && pos-int64(es[len(es)-1].pos) < stride {
		return es
	}
	return append(es, entry{time: time, delta: uint32(delta), pos: uint32(pos)})
}

// The hint file: a 64-byte head {magic u32, version u32, base u64, length u64, next u64, checksum of
// the last covered batch u64, entries u32, zero u32, reserved 8, XXH3 of all other bytes u64}, then
// 16 bytes an entry {time u64, delta u32, pos u32}. It is a hint: written in place, never synced,
// and dropped whole when anything about it does not fit.
const (
	hintMagic   = 0x58494857 // "WHIX"
	hintVersion = 1
	hintHead    = 64
	hintEntry   = 16
)

func encodeHint(base uint64, ix *index, next, fence uint64) []byte {
	b := make([]byte, hintHead+hintEntry*len(ix.entries))
	le := binary.LittleEndian
	le.PutUint32(b, hintMagic)
	le.PutUint32(b[4:], hintVersion)
	le.PutUint64(b[8:], base)
	le.PutUint64(b[16:], uint64(ix.length))
	le.PutUint64(b[24:], next)
	le.PutUint64(b[32:], fence)
	le.PutUint32(b[40:], uint32(len(ix.entries)))
	for i, e := range ix.entries {
		p := b[hintHead+hintEntry*i:]
		le.PutUint64(p, e.time)
		le.PutUint32(p[8:], e.delta)
		le.PutUint32(p[12:], e.pos)
	}
	le.PutUint64(b[56:], wire.Hash64(b)) // the field itself is zero while hashed
	return b
}

// hint is a decoded hint file; last is the position fence was read at.
type hint struct {
	index
	next, fence uint64
}

func decodeHint(base uint64, b []byte) (hint, bool) {
	le := binary.LittleEndian
	var h hint
	if len(b) < hintHead || le.Uint32(b) != hintMagic || le.Uint32(b[4:]) != hintVersion || le.Uint64(b[8:]) != base {
		return h, false
	}
	n := int(le.Uint32(b[40:]))
	sum := le.Uint64(b[56:])
	if len(b) != hintHead+hintEntry*n {
		return h, false
	}
	le.PutUint64(b[56:], 0)
	if wire.Hash64(b) != sum {
		return h, false
	}
	h.length, h.next, h.fence = int64(le.Uint64(b[16:])), le.Uint64(b[24:]), le.Uint64(b[32:])
	h.entries = make([]entry, n)
	for i := range h.entries {
		p := b[hintHead+hintEntry*i:]
		e := entry{le.Uint64(p), le.Uint32(p[8:]), le.Uint32(p[12:])}
		if i > 0 && (e.pos <= h.entries[i-1].pos || e.delta <= h.entries[i-1].delta) || int64(e.pos) >= h.length {
			return h, false
		}
		h.entries[i] = e
	}
	return h, n > 0 && h.entries[0].pos == 0 && h.entries[0].delta == 0
}

// writeHint replaces the hint file.
func writeHint(fs vfs.FS, name string, b []byte) error {
	f, err := fs.Open(name)
	if vfs.IsNotExist(err) {
		f, err = fs.Create(name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(b)))
}

func readHint(fs vfs.FS, name string, base uint64) (hint, bool) {
	f, err := fs.Open(name)
	if err != nil {
		return hint{}, false
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size < hintHead || size > hintHead+hintEntry*(2*maxSegmentSize/stride) {
		return hint{}, false
	}
	b := make([]byte, size)
	if _, err = f.ReadAt(b, 0); err != nil {
		return hint{}, false
	}
	return decodeHint(base, b)
}

// load makes seg.cold cover x.coldLen bytes: from the hint file as far as it fits the log, by
// walking the batch headers behind it. rebuild ignores what is there.
func (x *extent) load(rebuild bool) error {
	s := x.seg
	s.tuning.Lock()
	defer s.tuning.Unlock()
	if !rebuild {
		if _, ok := x.warm(); ok {
			return nil
		}
	}
	ix := &index{}
	if rebuild {
		s.lying.Store(true)
		s.hinted.Store(0)
	}
	if !s.lying.Load() {
		if h, ok := readHint(s.life.fs, s.indexPath(), s.base); ok && x.fits(&h) {
			ix = &h.index
			s.hinted.Store(h.length)
		}
	}
	if err := x.walk(ix); err != nil {
		return err
	}
	s.cold.Store(ix)
	return nil
}

// fits reports whether h describes bytes this extent counts: its last entry below coldLen, behind
// which it is cut, is a batch of the log, and if it covers all of them its fence is the last batch's checksum.
func (x *extent) fits(h *hint) bool {
	if h.length > x.length || h.next > x.next {
		return false
	}
	n := len(h.entries)
	for n > 0 && int64(h.entries[n-1].pos) >= x.coldLen {
		n-- // the checkpoint that counted more of the file did not become durable
	}
	h.entries = h.entries[:n]
	if n == 0 {
		return false
	}
	e := h.entries[n-1]
	var b [headerSize]byte
	if _, err := x.seg.ReadAt(b[:], int64(e.pos)); err != nil {
		return false
	}
	got := parseHeader(b[:])
	if !got.plausible(int64(e.pos), x) || got.base != x.seg.base+uint64(e.delta) || got.time != e.time {
		return false
	}
	if h.length < x.length {
		return true
	}
	if _, err := x.seg.ReadAt(b[:], x.last); err != nil {
		return false
	}
	return parseHeader(b[:]).checksum == h.fence && h.next == x.next
}

// walk extends ix to x.coldLen bytes from the batch headers in the file.
func (x *extent) walk(ix *index) error {
	pos, next := int64(0), x.seg.base
	if n := len(ix.entries); n > 0 {
		pos, next = int64(ix.entries[n-1].pos), x.seg.base+uint64(ix.entries[n-1].delta)
	}
	var buf []byte
	for start := int64(0); pos < x.coldLen; {
		if buf == nil || pos+headerSize > start+int64(len(buf)) {
			if buf == nil {
				buf = make([]byte, min(256<<10, x.coldLen-pos))
			}
			buf = buf[:min(int64(cap(buf)), x.coldLen-pos)]
			start = pos
			if _, err := x.seg.ReadAt(buf, pos); err != nil {
				return x.readError(pos, err)
			}
			if len(buf) < headerSize {
				return x.damage(pos, "bytes too short for a batch", nil)
			}
		}
		h := parseHeader(buf[pos-start:])
		if !h.plausible(pos, x) || h.base != next {
			return x.damage(pos, fmt.Sprintf("no batch with offset %d", next), nil)
		}
		if n := len(ix.entries); n == 0 || int64(ix.entries[n-1].pos) != pos {
			ix.entries = grow(ix.entries, pos, h.base-x.seg.base, h.time)
		}
		pos, next = pos+h.length, h.base+uint64(h.count)
	}
	if pos != x.coldLen {
		return x.damage(pos, "batch crosses the end of the counted bytes", nil)
	}
	ix.length = x.coldLen
	return nil
}

func (x *extent) damage(pos int64, reason string, err error) *Damage {
	return &Damage{Path: x.seg.path(), Segment: x.seg.base, Pos: pos, Reason: reason, Err: err}
}
