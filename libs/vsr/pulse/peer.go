package pulse

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// peer is what is known of one other node.
type peer struct {
	node   uint8
	epoch  uint64 // 0: never heard
	sent   uint64 // of the newest Ping of that epoch
	heard  Tick   // arrival of the last Ping, 0: none
	alive  Tick   // from when DeadAfter runs: heard, or what stands in for it
	excuse bool   // alive was put off since the last Ping, for a pause here
	loops  []progress
	view   uint32

	silent bool         // own suspicion of the node
	stuck  uint64       // own suspicions of loops, one bit each
	report []wire.Heard // what it hears of others
	dead   bool         // EventDead was said
	by     Set          // with this By
	down   uint64       // loops of which EventLoopDead was said
	downBy []Set        // with this By, per loop

	echo     Tick // send time of the newest Ping it answered
	echoView uint32

	digestDue  Tick
	digestSent Tick
	led        []uint64 // the digests sent then
}

// progress is the counter of one loop and when it was last seen to change.
type progress struct {
	count uint64
	since Tick
}

// all has a bit for each loop of the peer.
func (p *peer) all() uint64 {
	if n := len(p.loops); n > 0 && n < wire.MaxLoops {
		return 1<<n - 1
	}
	return ^uint64(0)
}

// unheard are the loops this node does not hear.
func (p *peer) unheard() uint64 {
	if p.silent {
		return p.all()
	}
	return p.stuck
}

// opinion is the report on the peer for others. One that was never heard but is not suspected yet
// counts as heard.
func (p *peer) opinion() wire.Heard {
	return wire.Heard{Node: p.node, Epoch: p.epoch, Loops: p.all() &^ p.unheard()}
}

// deaf is what p says of the life of q known here: that it does not hear any of the loops. A peer that
// was not heard lately, or does not mention q, says nothing.
func (p *peer) deaf(q *peer, loops uint64, now Tick) (deaf, says bool) {
	i := slices.IndexFunc(p.report, func(h wire.Heard) bool { return h.Node == q.node })
	if p == q || i < 0 || now > p.heard+reportFor {
		return false, false
	}
	h := p.report[i]
	if q.epoch != 0 && h.Epoch > q.epoch {
		return true, true // that life is over
	}
	if h.Epoch != 0 && h.Epoch < q.epoch {
		loops = ^uint64(0) // it hears an earlier life, or nothing at all
	}
	return h.Loops&loops == 0, true
}

// restart forgets the life before.
func (p *peer) restart(epoch uint64) {
	p.epoch, p.sent, p.loops, p.stuck, p.report = epoch, 0, p.loops[:0], 0, p.report[:0]
	p.down, p.by = 0, Set{}
	p.echo, p.echoView, p.digestSent, p.digestDue = 0, 0, 0, 0
}

// take takes a Ping of the peer's present life.
func (p *peer) take(now Tick, h *wire.PingHeader, body *wire.PingBody) {
	p.sent, p.heard, p.alive, p.excuse, p.silent = h.Sent, now, now, false, false
	p.report = append(p.report[:0], body.Heard...)
	if len(p.loops) != len(body.Progress) {
		p.loops = append(p.loops[:0], make([]progress, len(body.Progress))...)
		for i := range p.loops {
			p.loops[i].since = now
		}
	}
	p.stuck = 0
	for i, count := range body.Progress {
		l := &p.loops[i]
		if l.count != count {
			*l = progress{count, now}
		}
		if now-l.since >= StuckAfter {
			p.stuck |= 1 << i
		}
	}
}
