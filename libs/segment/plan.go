package segment

import "math"

// maxBatch bounds a batch the index knows nothing about: it came in one frame.
const maxBatch = 64 << 20

// Plan is a resolved query: the range of one view that answers it. It is a value; one goroutine
// uses it. Read may be called once.
type Plan struct {
	v       *View
	byTime  bool
	from    uint64 // first wanted offset, or
	time    uint64 // first wanted base timestamp
	count   uint64 // messages
	max     int64  // bytes of the reply
	extent  int    // where the walk starts:
	pos     int64  // a batch at or below the wanted one,
	base    uint64 // which starts with this offset
	size    int64
	cold    bool
	rebuilt bool // the index was rebuilt for this plan: what does not fit now is damage

	messages    uint32
	first, last uint64
}

// Plan finds what q selects without I/O and without allocating. maxBytes caps the reply (0: 8 MiB); one
// batch is always returned, whatever its size.
func (v *View) Plan(q Query, maxBytes int) (Plan, Outcome) {
	p := Plan{v: v, count: uint64(q.Count), max: int64(maxBytes)}
	if p.max <= 0 {
		p.max = defaultReply
	}
	if q.Count == 0 || v.start == v.next {
		return Plan{}, Empty
	}
	p.from = v.start
	switch q.Kind {
	case Offset:
		p.from = max(q.Value, v.start)
	case Timestamp:
		p.byTime, p.time = true, q.Value
		if p.extent = v.byTime(q.Value); p.extent == v.extents() {
			return Plan{}, Empty
		}
	case First:
	case Last:
		if v.next-v.start > p.count {
			p.from = v.next - p.count
		}
	default:
		return Plan{}, Empty
	}
	if p.from >= v.next {
		return Plan{}, Empty
	}
	if !p.byTime {
		p.extent = v.byOffset(p.from)
	}
	p.locate()
	if p.cold {
		return p, Cold
	}
	return p, Ready
}

// Resolve reads the indexes a Cold plan lacks. Errors as for Read.
func (p *Plan) Resolve() error {
	for p.cold { // again only if the cache dropped the index in between
		if err := p.v.extent(p.extent).load(false); err != nil {
			return err
		}
		p.locate()
	}
	return nil
}

// Size is the bytes Read needs at dst, an upper bound of the reply. It is tight to about the
// distance of two index entries, unless the plan is Cold and was not resolved.
func (p *Plan) Size() int { return int(p.size) }

// Messages is how many messages Read returned; FirstOffset and LastOffset are theirs.
func (p *Plan) Messages() uint32    { return p.messages }
func (p *Plan) FirstOffset() uint64 { return p.first }
func (p *Plan) LastOffset() uint64  { return p.last }

// locate sets pos to the index entry at or below the first wanted batch and size to what the
// reply can need from there on.
func (p *Plan) locate() {
	x := p.v.extent(p.extent)
	cold, ok := x.warm()
	p.cold = !ok
	if !ok {
		p.size = min(p.beyond(p.extent, math.MaxUint64), max(p.max, maxBatch))
		return
	}
	es := entries{cold, x.hot}
	var i, sure int // entry to start at; the first wanted batch ends at or below entry sure
	if p.byTime {
		i = max(es.byTime(p.time)-1, 0)
		sure = i + 2
	} else {
		i = es.byDelta(p.from-x.seg.base+1) - 1
		sure = i + 1
	}
	p.pos, p.base = int64(es.at(i).pos), x.seg.base+uint64(es.at(i).delta)
	first, least := x.next, x.length // upper bounds: first wanted offset, end of its batch
	if !p.byTime {
		first = p.from
	} else if i+1 < es.len() {
		first = x.seg.base + uint64(es.at(i+1).delta)
	}
	if sure < es.len() {
		least = int64(es.at(sure).pos)
	}
	end := add(first, p.count)
	bound := x.length
	if end < x.next {
		if j := es.byDelta(end - x.seg.base); j < es.len() {
			bound = int64(es.at(j).pos)
		}
	}
	bound -= p.pos
	if end > x.next {
		bound += p.beyond(p.extent+1, end)
	}
	p.size = min(bound, max(p.max, least-p.pos))
}

// beyond bounds the bytes of extents from i on that hold offsets below end, up to max.
func (p *Plan) beyond(i int, end uint64) (n int64) {
	for ; i < p.v.extents() && n < p.max; i++ {
		x := p.v.extent(i)
		if x.seg.base >= end {
			break
		}
		n += x.until(end)
	}
	return n
}

// until bounds the bytes of x that hold offsets below end.
func (x *extent) until(end uint64) int64 {
	if end < x.next {
		if cold, ok := x.warm(); ok {
			es := entries{cold, x.hot}
			if j := es.byDelta(end - x.seg.base); j < es.len() {
				return int64(es.at(j).pos)
			}
		}
	}
	return x.length
}

func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
