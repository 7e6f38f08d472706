package pulse

// pause excuses the peers when this node was not run for a while: what they sent meanwhile may be about
// to be read. Each is excused once until its next Ping, so that a node that is always late still
// notices deaths.
func (p *Pulse) pause(now Tick) {
	if p.wake == 0 || now <= p.wake+catchUp {
		return
	}
	for _, q := range p.peers {
		if !q.silent && !q.excuse {
			q.alive, q.excuse = max(q.alive, now-min(now, DeadAfter-catchUp)), true
		}
	}
}

// suspect forms the own opinion of who is silent. Loops are judged when a Ping comes.
func (p *Pulse) suspect(now Tick) {
	for _, q := range p.peers {
		if !q.silent && now >= q.alive+DeadAfter {
			q.silent, p.urgent = true, true
		}
	}
}

// judge turns suspicions that enough others share into events, and takes back those they share no more.
func (p *Pulse) judge(now Tick, out *Output) {
	for _, q := range p.peers {
		if q.unheard() == 0 && !q.dead && q.down == 0 {
			continue
		}
		var before, by Set
		if q.dead {
			before = q.by
		}
		dead := q.silent
		if dead {
			by = p.deaf(q, q.all(), before, now)
			dead = by.Len() >= p.opt.Agree
		}
		switch {
		case dead && (!q.dead || by != q.by):
			out.event(Event{Kind: EventDead, Node: q.node, Epoch: q.epoch, By: by})
		case !dead && q.dead:
			out.event(Event{Kind: EventAlive, Node: q.node, Epoch: q.epoch})
		}
		q.dead, q.by = dead, by
		for l := range q.loops {
			p.judgeLoop(q, l, now, out)
		}
	}
}

// deaf are the peers that do not hear any of the loops of q. Those in before did not: they stay until they
// say otherwise.
func (p *Pulse) deaf(q *peer, loops uint64, before Set, now Tick) (by Set) {
	for _, x := range p.peers {
		if deaf, says := x.deaf(q, loops, now); deaf || !says && before.Has(x.node) {
			by.Add(x.node)
		}
	}
	return by
}

// judgeLoop is judge for one loop.
func (p *Pulse) judgeLoop(q *peer, l int, now Tick, out *Output) {
	if len(q.downBy) < len(q.loops) {
		q.downBy = append(q.downBy, make([]Set, len(q.loops)-len(q.downBy))...)
	}
	bit := uint64(1) << l
	told := q.down&bit != 0
	dead := q.unheard()&bit != 0
	var before, by Set
	if told {
		before = q.downBy[l]
	}
	if dead {
		by = p.deaf(q, bit, before, now)
		dead = by.Len() >= p.opt.Agree
	}
	e := Event{Node: q.node, Loop: uint8(l), Epoch: q.epoch, By: by}
	switch {
	case dead && told && by != q.downBy[l], dead && !told && (!q.dead || by != q.by):
		e.Kind = EventLoopDead
		q.down |= bit
	case !dead && told:
		e.Kind = EventLoopAlive
		q.down &^= bit
	default:
		return
	}
	q.downBy[l] = by
	out.event(e)
}
