package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// slot is one op of the pipeline.
type slot struct {
	header wire.PrepareHeader
	body   Body
	acks   uint32 // bit i: member i holds the op
	waiter bool   // a request waits for it here
}

// pipeline holds the ops low..head in a ring of a power of two that grows on demand. low is the commit
// point, whose header the chain and a view-change suffix need; 0 is the empty log. At rest the ring holds
// that one header.
type pipeline struct {
	ring []slot
	low  uint64
	head uint64
}

// minRing is the size of a ring that grows.
const minRing = 4

func (p *pipeline) at(op uint64) *slot { return &p.ring[op&uint64(len(p.ring)-1)] }

// header returns the header at op, nil when it is not held here or not known.
func (p *pipeline) header(op uint64) *wire.PrepareHeader {
	if op == 0 || op < p.low || op > p.head {
		return nil
	}
	if h := &p.at(op).header; !h.Blank() {
		return h
	}
	return nil
}

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

// begin makes the log start behind h.
func (p *pipeline) begin(h *wire.PrepareHeader) {
	*p = pipeline{ring: make([]slot, 1), low: h.Op, head: h.Op}
	p.at(h.Op).header = *h
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

// trim gives back the memory beyond the commit point when nothing else is held.
func (p *pipeline) trim() {
	switch {
	case p.head == 0:
		p.ring = nil
	case p.low == p.head && len(p.ring) > 1:
		p.resize(1)
	}
}

// parent is the identity of op, 0 for op 0.
func (p *pipeline) parent(op uint64) wire.U128 {
	if op == 0 {
		return wire.U128{}
	}
	return p.at(op).header.Checksum
}

// precedes reports whether h is the next entry of the chain. An entry whose own header was lost has an
// unknown identity. Nothing follows a seal.
func (p *pipeline) precedes(h *wire.PrepareHeader) bool {
	if h.Op != p.head+1 || p.closed() {
		return false
	}
	return p.head > 0 && p.at(p.head).header.Blank() || p.parent(p.head) == h.Parent
}
