package pulse

import "github.com/whippet-mq/whippet/libs/wire"

// Echo is the send time of the newest Ping that node answered, 0 if there is none.
func (p *Pulse) Echo(node uint8) Tick {
	if q := p.peer(node); q != nil {
		return q.echo
	}
	return 0
}

// EchoView is the metadata view that the answer to that Ping named; false if it named none, or there is no answer.
func (p *Pulse) EchoView(node uint8) (uint32, bool) {
	if q := p.peer(node); q != nil && q.echo != 0 && q.echoView != wire.NoView {
		return q.echoView, true
	}
	return 0, false
}

// Bound is until when a member here follows nobody but a primary at node, as far as Pings say: Quiet after the last
// one, 0 if none came.
func (p *Pulse) Bound(node uint8) Tick {
	if q := p.peer(node); q != nil && q.heard != 0 {
		return q.heard + Quiet
	}
	return 0
}

// View is the metadata view that node reported last; false if it was never heard.
func (p *Pulse) View(node uint8) (uint32, bool) {
	if q := p.peer(node); q != nil && q.epoch != 0 {
		return q.view, true
	}
	return 0, false
}

// Serving reports whether a primary here may admit and serve: replication members, this node among
// them, have echoed a Ping of the last EchoLimit.
func (p *Pulse) Serving(members []uint8, replication int, now Tick) bool {
	return p.echoed(members, replication, now, func(*peer) bool { return true })
}

// Leased is Serving for the metadata primary of a view: only echoes that carried its view count, so
// that no other primary can have answered later than the Ping was sent.
func (p *Pulse) Leased(members []uint8, replication int, view uint32, now Tick) bool {
	return p.echoed(members, replication, now, func(q *peer) bool { return q.echoView == view })
}

func (p *Pulse) echoed(members []uint8, quorum int, now Tick, counts func(*peer) bool) bool {
	n := 1
	for _, m := range members {
		if q := p.peer(m); q != nil && q.echo != 0 && now <= q.echo+EchoLimit && counts(q) {
			n++
		}
	}
	return n >= quorum
}

// MayVote reports whether a member here may join a view change of a group whose primary is, or was, at
// node primary: Quiet has passed since the last Ping of it, and since the start of this process, whose
// life before may have given promises. epoch is the life of the primary in which it led; 0 is the
// present one. A life that is over holds nobody back. The primary's own hand-over needs no permission.
func (p *Pulse) MayVote(primary uint8, epoch uint64, now Tick) bool {
	if now < p.opt.Started+Quiet {
		return false
	}
	q := p.peer(primary)
	return q == nil || epoch != 0 && epoch != q.epoch || now >= p.Bound(primary)
}
