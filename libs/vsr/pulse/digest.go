package pulse

// digests are those to send to q now; nil most of the time.
func (p *Pulse) digests(q *peer, now Tick) []uint64 {
	if p.opt.Digests == nil || now < q.digestDue {
		return nil
	}
	q.digestDue, q.digestSent = now+DigestEvery, now
	q.led = p.opt.Digests.Led(q.led[:0], q.node)
	return q.led
}

// compare holds the digests of a Ping against what this node holds; a bit per loop that differs.
func (p *Pulse) compare(q *peer, led []uint64) (mismatch uint64) {
	if p.opt.Digests == nil || len(led) == 0 {
		return 0
	}
	p.scratch = p.opt.Digests.Held(p.scratch[:0], q.node, len(led))
	for l, held := range p.scratch {
		if l < len(led) && held != led[l] {
			mismatch |= 1 << l
		}
	}
	return mismatch
}

// mismatch takes the answer to the last digests. A loop in which something changed since they were sent
// is left for the next time.
func (p *Pulse) mismatch(q *peer, mismatch uint64, out *Output) {
	if mismatch == 0 || q.echo != q.digestSent || p.opt.Digests == nil {
		return
	}
	p.scratch = p.opt.Digests.Led(p.scratch[:0], q.node)
	for l, led := range p.scratch {
		if l < len(q.led) && led == q.led[l] && mismatch>>l&1 == 1 {
			out.event(Event{Kind: EventMismatch, Node: q.node, Loop: uint8(l), Epoch: q.epoch})
		}
	}
}
