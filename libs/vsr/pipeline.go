package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// slot is one op of the pipeline.
type slot struct {
	header wire.PrepareHeader
	body   Body
	acks   uint32 // bit i: member i holds the op
}

// pipeline holds the ops low..head in a ring of a power of two that grows on demand. low is the commit
// point, whose header the chain and a view-change suffix need; 0 is the empty log.
type pipeline struct {
	ring []slot
	low  uint64
	head uint64
}

const minRing = 4

func (p *pipeline) at(op uint64) *slot { return &p.ring[op&uint64(len(p.ring)-1)] }

// push makes room for the next op and returns its slot, emptied.
func (p *pipeline) push() *slot {
	if p.head-p.low+2 > uint64(len(p.ring)) {
		p.resize(max(minRing, 2*len(p.ring)))
	}
	p.head++
	s := p.at(p.head)
	*s = slot{}
	return s
}

// resize moves the held ops to a ring of n slots.
func (p *pipeline) resize(n int) {
	old := *p
	p.ring = make([]slot, n)
	if old.ring == nil {
		return
	}
	for op := old.low; op <= old.head; op++ {
		*p.at(op) = *old.at(op)
	}
}

// trim gives back memory beyond a small ring when only the commit point is held.
func (p *pipeline) trim() {
	if p.low == p.head && len(p.ring) > minRing {
		p.resize(minRing)
	}
}

// parent is the identity of op, 0 for op 0.
func (p *pipeline) parent(op uint64) wire.U128 {
	if op == 0 {
		return wire.U128{}
	}
	return p.at(op).header.Checksum
}
