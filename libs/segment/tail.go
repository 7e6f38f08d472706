package segment

const (
	firstChunk = 512
	fullChunk  = 256 << 10
)

// piece is a run of small batches, contiguous in memory and in their file.
type piece struct {
	seg  *segment
	pos  int64 // of data[0] in the file
	at   int64 // log position of data[0]
	data []byte
}

func (p *piece) end() int64 { return p.at + int64(len(p.data)) }

// tail keeps the small batches no file holds yet. Bytes go into append-only chunks that are left to
// the collector: a view may hold them for as long as it likes. Pieces handed to a view are closed
// and never change; only the last piece grows, and views get that one by value.
type tail struct {
	pieces []piece
	open   bool // the last piece grows
	chunk  []byte
	size   int // of the last chunk
}

// add copies a batch behind everything added before.
func (t *tail) add(seg *segment, pos, at int64, batch []byte) {
	n := len(t.chunk)
	if cap(t.chunk)-n < len(batch) {
		t.size = min(max(firstChunk, 2*t.size), fullChunk)
		t.chunk, n, t.open = make([]byte, 0, max(t.size, len(batch))), 0, false
	}
	t.chunk = append(t.chunk, batch...)
	if t.open {
		p := &t.pieces[len(t.pieces)-1]
		if p.seg == seg && p.end() == at {
			p.data = p.data[:len(p.data)+len(batch)]
			return
		}
	}
	t.pieces = append(t.pieces, piece{seg, pos, at, t.chunk[n:]})
	t.open = true
}

// cut drops everything from log position end on. What is dropped was never visible; its chunk
// bytes are left unused rather than written again.
func (t *tail) cut(end int64) {
	n := len(t.pieces)
	for n > 0 && t.pieces[n-1].at >= end {
		n--
	}
	if n < len(t.pieces) {
		t.pieces, t.open = t.pieces[:n], false
	}
	if n > 0 && t.pieces[n-1].end() > end {
		p := &t.pieces[n-1]
		p.data = p.data[: end-p.at : end-p.at]
		t.open = false
	}
}

// upTo returns what a view of the log below end may use: closed pieces, and the growing one cut at end.
func (t *tail) upTo(end int64) (closed []piece, growing piece) {
	n := len(t.pieces)
	for n > 0 && t.pieces[n-1].at >= end {
		n--
	}
	if n == 0 {
		return nil, piece{}
	}
	p := t.pieces[n-1]
	if p.end() > end || t.open && n == len(t.pieces) {
		p.data = p.data[:min(end, p.end())-p.at]
		return t.pieces[: n-1 : n-1], p
	}
	return t.pieces[:n:n], piece{}
}

// drop forgets the pieces that end at or below flushed. A piece flushed in part stays whole.
func (t *tail) drop(flushed int64) {
	n := 0
	for n < len(t.pieces) && t.pieces[n].end() <= flushed {
		n++
	}
	switch {
	case n == 0:
	case n == len(t.pieces):
		*t = tail{size: t.size / 4} // an idle partition keeps nothing, a busy one soon has large chunks again
	default:
		// A fresh array: the old one holds on to the dropped chunks for as long as a view needs it.
		t.pieces = append([]piece(nil), t.pieces[n:]...)
	}
}

// dropSegment forgets the pieces of a removed segment; they are the oldest.
func (t *tail) dropSegment(seg *segment) {
	n := 0
	for n < len(t.pieces) && t.pieces[n].seg == seg {
		n++
	}
	if n == len(t.pieces) {
		*t = tail{}
	} else if n > 0 {
		t.pieces = append([]piece(nil), t.pieces[n:]...)
	}
}
