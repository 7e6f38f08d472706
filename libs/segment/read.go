package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// errBadIndex: the index did not lead to the batch it named.
var errBadIndex = errors.New("segment: index does not fit the log")

// Read fills dst, of at least Size bytes, with batches as they are stored; the first and the last
// are sliced and re-sealed where the selection cuts them. It returns the bytes used; 0 without an
// error means that nothing qualifies after all (a timestamp between two batches).
//
// Errors: *Damage, the partition is to be fenced; ErrTrimmed, plan again on the current view;
// io.ErrShortBuffer, dst is smaller than Size was; others are I/O errors that say nothing about the data.
func (p *Plan) Read(dst []byte) (int, error) {
	for {
		if err := p.Resolve(); err != nil {
			return 0, err
		}
		if int64(len(dst)) < p.size {
			return 0, io.ErrShortBuffer
		}
		r := reader{p: *p, i: p.extent, x: p.v.extent(p.extent), pos: p.pos, next: p.base, dst: dst}
		n, err := r.run()
		p.messages, p.first, p.last = r.p.messages, r.p.first, r.p.last
		if err != errBadIndex {
			return n, err
		}
		if err := r.x.load(true); err != nil {
			return 0, err
		}
		p.rebuilt = true
		if p.locate(); int64(len(dst)) < p.size {
			return 0, ErrTrimmed
		}
	}
}

// reader walks one plan. dst[out:held] are the bytes of x from pos on.
type reader struct {
	p         Plan // by value: dst goes to the file system, and with it all the reader points to
	i         int  // of x in the view
	x         *extent
	pos       int64
	next      uint64 // offset the batch at pos must start with
	dst       []byte
	out, held int
	left      uint64 // messages still wanted
}

func (r *reader) run() (int, error) {
	p := &r.p
	p.messages, r.left = 0, p.count
	h, found, err := r.seek()
	if err != nil || !found {
		return 0, err
	}
	p.first = h.base
	if !p.byTime {
		p.first = max(h.base, p.from)
	}
	for {
		size := int(h.length)
		if p.messages > 0 && int64(r.out+size) > p.max {
			break
		}
		// A first batch that will be sliced is read alone: what follows it would have to move.
		if ok, err := r.hold(size, h.base >= p.first); err != nil {
			return 0, err
		} else if !ok {
			if p.messages == 0 {
				return 0, r.misled()
			}
			break
		}
		if err := r.take(h); err != nil {
			return 0, err
		}
		if r.left == 0 {
			break
		}
		if h, found, err = r.head(); err != nil {
			return 0, err
		}
		if !found {
			break
		}
	}
	p.last = p.first + uint64(p.messages) - 1
	return r.out, nil
}

// seek walks from the index entry to the first wanted batch, whose bytes then stand at dst[0].
func (r *reader) seek() (header, bool, error) {
	p := &r.p
	exact := !p.byTime && p.from == p.base
	chunk := len(r.dst)
	if !exact {
		chunk = min(chunk, stride)
	}
	var before header // the batch skipped last, at beforeAt
	beforeAt := int64(-1)
	for at := r.pos; ; {
		if r.pos == r.x.length {
			if !r.advance() {
				return header{}, false, nil
			}
			at, r.held, beforeAt = 0, 0, -1
		}
		if r.pos+headerSize > at+int64(r.held) {
			at = r.pos
			r.held = int(min(int64(chunk), max(r.goal()-at, headerSize), r.x.length-at))
			if r.held < headerSize {
				return header{}, false, r.misled()
			}
			if err := p.v.readAt(r.x, r.dst[:r.held], at); err != nil {
				return header{}, false, err
			}
		}
		h := parseHeader(r.dst[r.pos-at:])
		if !h.plausible(r.pos, r.x) || h.base != r.next {
			return header{}, false, r.misled()
		}
		if p.byTime && h.time >= p.time || !p.byTime && h.base+uint64(h.count) > p.from {
			if p.byTime && beforeAt >= 0 {
				if err := r.checkTime(before, beforeAt); err != nil {
					return header{}, false, err
				}
				at, r.held, beforeAt = r.pos, 0, -1
				continue
			}
			if skip := int(r.pos - at); skip > 0 {
				r.held = copy(r.dst, r.dst[skip:r.held])
			}
			return h, true, nil
		}
		before, beforeAt = h, r.pos
		r.pos, r.next = r.pos+h.length, h.base+uint64(h.count)
	}
}

// checkTime verifies the batch that was skipped last for its timestamp. No offset chain proves a
// timestamp; but they ascend, so if this one is below the wanted time, all before it are.
func (r *reader) checkTime(h header, pos int64) error {
	if data, _ := r.p.v.inMemory(r.x.at + pos); data != nil || !r.p.v.verify {
		return nil
	}
	if h.length > int64(len(r.dst)) {
		return r.misled()
	}
	b := r.dst[:h.length]
	if err := r.p.v.readAt(r.x, b, pos); err != nil {
		return err
	}
	if err := wire.VerifyBatch(b); err != nil {
		return r.x.damage(pos, "batch does not verify", err)
	}
	return nil
}

// head reads the header of the batch at pos; false: nothing more is wanted or fits.
func (r *reader) head() (header, bool, error) {
	if r.pos == r.x.length && !r.advance() {
		return header{}, false, nil
	}
	if ok, err := r.hold(headerSize, true); err != nil || !ok {
		return header{}, false, err
	}
	h := parseHeader(r.dst[r.out:])
	if !h.plausible(r.pos, r.x) || h.base != r.next {
		return header{}, false, r.x.damage(r.pos, fmt.Sprintf("no batch with offset %d", r.next), nil)
	}
	return h, true, nil
}

// hold makes dst[out:held] at least n bytes, by one read of n bytes, or of all that is wanted from
// this extent if ahead; false: dst has no room.
func (r *reader) hold(n int, ahead bool) (bool, error) {
	if r.held-r.out >= n {
		return true, nil
	}
	if len(r.dst)-r.out < n {
		return false, nil
	}
	at := r.pos + int64(r.held-r.out)
	more := n - (r.held - r.out)
	if ahead {
		more = max(more, int(min(int64(len(r.dst)-r.held), r.goal()-at)))
	}
	if err := r.p.v.readAt(r.x, r.dst[r.held:r.held+more], at); err != nil {
		return false, err
	}
	r.held += more
	return true, nil
}

// goal bounds the position in x up to which bytes are wanted.
func (r *reader) goal() int64 {
	if r.p.byTime && r.p.messages == 0 {
		return r.x.length
	}
	from := r.next
	if r.p.messages == 0 {
		from = r.p.from
	}
	return r.x.until(add(from, r.left))
}

// take turns the batch at dst[out] into a part of the reply.
func (r *reader) take(h header) error {
	p, size := &r.p, int(h.length)
	b := r.dst[r.out : r.out+size]
	skip := uint64(0)
	if p.messages == 0 && !p.byTime && p.from > h.base {
		skip = p.from - h.base
	}
	n := min(r.left, uint64(h.count)-skip)
	cut := n < uint64(h.count)
	if data, _ := p.v.inMemory(r.x.at + r.pos); data == nil && (cut || p.v.verify) {
		if err := wire.VerifyBatch(b); err != nil {
			return r.x.damage(r.pos, "batch does not verify", err)
		}
	}
	kept := size
	if cut {
		kept = copy(b, wire.CutBatch(b, uint32(skip), uint32(n)))
		r.held = r.out + kept + copy(r.dst[r.out+kept:], r.dst[r.out+size:r.held])
	}
	r.out += kept
	p.messages += uint32(n)
	r.left -= n
	r.pos, r.next = r.pos+h.length, h.base+uint64(h.count)
	return nil
}

// advance goes to the next extent.
func (r *reader) advance() bool {
	if r.i+1 >= r.p.v.extents() {
		return false
	}
	r.i++
	r.x, r.pos = r.p.v.extent(r.i), 0
	return true
}

// misled judges a header that is not where it should be: an index read from disk may be to blame
// once, after that the log is.
func (r *reader) misled() error {
	if !r.p.rebuilt && r.x.coldLen > 0 {
		return errBadIndex
	}
	return r.x.damage(r.pos, fmt.Sprintf("no batch with offset %d", r.next), nil)
}

// readError judges a failed read of counted bytes.
func (x *extent) readError(pos int64, err error) error {
	switch {
	case x.seg.isGone() || errors.Is(err, ErrTrimmed):
		return ErrTrimmed
	case vfs.IsNotExist(err):
		return x.damage(pos, "file is missing", err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return x.damage(pos, "file is too short", err)
	}
	return fmt.Errorf("segment %s: read at %d: %w", x.seg.path(), pos, err)
}
