package segment

// Kind is a polling strategy, numbered as on the wire; next (5) is resolved to Offset by the
// caller, who knows the consumer's stored offset.
type Kind uint8

const (
	Offset    Kind = 1 // from Value on
	Timestamp Kind = 2 // from the first batch with base timestamp >= Value, in microseconds
	First     Kind = 3 // from the oldest retained message on
	Last      Kind = 4 // the newest Count messages
)

// Query is what a poll asks for.
type Query struct {
	Kind  Kind
	Value uint64
	Count uint32 // messages, at most
}

// Outcome of Plan.
type Outcome uint8

const (
	Empty Outcome = iota // no message qualifies
	Ready
	Cold // Plan.Resolve, which reads the disk, makes Size tight; ask it on the read pool first
)

// View is an immutable committed prefix of the log. It stays valid for ever; what a later trim or
// purge removed reads as ErrTrimmed or as the old bytes, never as others.
type View struct {
	generation  uint64
	start, next uint64
	sealed      []extent
	active      extent
	memory      []piece // small batches no file may be asked for, ascending
	growing     piece   // the last of them; no data: none
	verify      bool
}

// Generation is the purge generation the view belongs to.
func (v *View) Generation() uint64 { return v.generation }

// Start is the first retained offset.
func (v *View) Start() uint64 { return v.start }

// Next is the offset behind the last committed message.
func (v *View) Next() uint64 { return v.next }

// Current is the current_offset of a poll reply: the last committed offset, 0 if there is none.
func (v *View) Current() uint64 {
	if v.next == 0 {
		return 0
	}
	return v.next - 1
}

func (v *View) extents() int {
	if v.active.seg == nil {
		return 0 // nothing is sealed before something is active
	}
	return len(v.sealed) + 1
}

func (v *View) extent(i int) *extent {
	if i < len(v.sealed) {
		return &v.sealed[i]
	}
	return &v.active
}

// byOffset returns the extent that holds offset o, start <= o < next.
func (v *View) byOffset(o uint64) int {
	lo, hi := 0, v.extents()
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); v.extent(mid).next <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// byTime returns the first extent with a batch at or after t; extents() if there is none.
func (v *View) byTime(t uint64) int {
	lo, hi := 0, v.extents()
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); v.extent(mid).lastTime < t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// inMemory returns the bytes at log position at that memory holds, and otherwise how many bytes
// from there on must come from a file.
func (v *View) inMemory(at int64) (data []byte, file int64) {
	lo, hi := 0, len(v.memory)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); v.memory[mid].end() <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	p := &v.growing
	if lo < len(v.memory) {
		p = &v.memory[lo]
	}
	switch {
	case at < p.at:
		return nil, p.at - at
	case at < p.end():
		return p.data[at-p.at:], 0
	}
	return nil, 1 << 62
}

// readAt fills dst with committed bytes of x from pos on.
func (v *View) readAt(x *extent, dst []byte, pos int64) error {
	for len(dst) > 0 {
		data, file := v.inMemory(x.at + pos)
		n := copy(dst, data)
		if data == nil {
			n = int(min(int64(len(dst)), file))
			if _, err := x.seg.ReadAt(dst[:n], pos); err != nil {
				return x.readError(pos, err)
			}
		}
		dst, pos = dst[n:], pos+int64(n)
	}
	return nil
}
