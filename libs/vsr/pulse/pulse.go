package pulse

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Pulse is the liveness state of one process. One goroutine at a time uses it.
type Pulse struct {
	opt     Options
	peers   []*peer // ascending node
	next    Tick    // next Pings
	wake    Tick    // asked for last
	urgent  bool    // a suspicion is to be told at once
	view    uint32  // of the metadata, and whether
	follows bool    // the replica of it here takes part in it

	progress []uint64
	heard    []wire.Heard
	scratch  []uint64
}

// New returns the pulse of a process without peers.
func New(o Options) *Pulse {
	o.Agree = max(1, o.Agree)
	return &Pulse{opt: o, next: o.Started}
}

// Step takes one input and puts its effects into out, which it resets.
func (p *Pulse) Step(in *Input, out *Output) {
	out.Reset()
	p.view, p.follows = in.View, in.Follows
	p.pause(in.Now)
	switch in.Kind {
	case InputTick:
		p.progress = append(p.progress[:0], in.Progress...)
	case InputPeers:
		p.progress = append(p.progress[:0], in.Progress...)
		p.setPeers(in)
	case InputPing:
		p.ping(in, out)
	case InputPong:
		p.pong(in, out)
	case InputUp:
		if p.peer(in.From) == nil {
			out.Fault = FaultPeer
		} else {
			p.urgent = true // it hears of this node, and is heard, now and not an Interval later
		}
	default:
		out.Fault = FaultKind
	}
	p.suspect(in.Now)
	p.judge(in.Now, out)
	p.send(in.Now, out)
	p.wake = p.due()
	out.Wake = p.wake
}

func (p *Pulse) peer(node uint8) *peer {
	for _, q := range p.peers {
		if q.node == node {
			return q
		}
	}
	return nil
}

// setPeers drops and adds peers. Those that stay keep what is known of them.
func (p *Pulse) setPeers(in *Input) {
	nodes := slices.Clone(in.Peers)
	slices.Sort(nodes)
	peers := make([]*peer, 0, len(nodes))
	for _, node := range slices.Compact(nodes) {
		if node == p.opt.Header.Node {
			continue
		}
		q := p.peer(node)
		if q == nil {
			q = &peer{node: node, alive: in.Now}
			p.next = in.Now
		}
		peers = append(peers, q)
	}
	p.peers = peers
}

// ping takes a Ping and answers it.
func (p *Pulse) ping(in *Input, out *Output) {
	q, h := p.peer(in.From), in.Header
	switch {
	case h.Node != in.From:
		out.Fault = FaultSender
	case q == nil:
		out.Fault = FaultPeer
	case h.Epoch < q.epoch || h.Epoch == q.epoch && h.Sent < q.sent:
		out.Fault = FaultStale
	default:
		p.receive(q, in, out)
		pong := Send{To: q.node, Header: p.header(wire.CommandPong, in.Now)}
		pong.Header.Echo, pong.Header.Mismatch = h.Sent, p.compare(q, in.Body.Digests)
		if !p.follows {
			pong.Header.MetadataView = wire.NoView
		}
		out.Send = append(out.Send, pong)
	}
}

func (p *Pulse) receive(q *peer, in *Input, out *Output) {
	first, again := q.epoch == 0, q.dead
	if q.epoch != in.Header.Epoch {
		q.restart(in.Header.Epoch)
		if !first {
			out.event(Event{Kind: EventNewEpoch, Node: q.node, Epoch: q.epoch})
			again = true
		}
	}
	silent, stuck := q.silent, q.stuck
	q.take(in.Now, in.Header, in.Body)
	p.urgent = p.urgent || silent || q.stuck != stuck
	if first || again {
		q.dead = false
		out.event(Event{Kind: EventAlive, Node: q.node, Epoch: q.epoch})
	}
	p.seen(q, in.Header.MetadataView, out)
}

// seen notes the metadata view a peer reports.
func (p *Pulse) seen(q *peer, view uint32, out *Output) {
	if q.view != view {
		q.view = view
		out.event(Event{Kind: EventView, Node: q.node, Epoch: q.epoch, View: view})
	}
}

// pong takes an echo.
func (p *Pulse) pong(in *Input, out *Output) {
	q, h := p.peer(in.From), in.Header
	switch echo := Tick(h.Echo); {
	case h.Node != in.From:
		out.Fault = FaultSender
	case q == nil:
		out.Fault = FaultPeer
	case h.Epoch < q.epoch:
		out.Fault = FaultStale
	case echo < p.opt.Started || echo > in.Now:
		out.Fault = FaultEcho
	case echo > q.echo:
		q.echo, q.echoView = echo, h.MetadataView
		p.mismatch(q, h.Mismatch, out)
	}
}

func (o *Output) event(e Event) { o.Events = append(o.Events, e) }

// header is a frame's header with what changes from frame to frame.
func (p *Pulse) header(c wire.Command, now Tick) wire.PingHeader {
	h := p.opt.Header
	h.Command, h.Sent, h.MetadataView = c, uint64(now), p.view
	return h
}

// send sends the Pings that are due; all of them at once when there is a suspicion to tell.
func (p *Pulse) send(now Tick, out *Output) {
	if len(p.peers) == 0 || now < p.next && !p.urgent {
		return
	}
	if now >= p.next {
		if p.next += Interval; p.next <= now {
			p.next = now + Interval
		}
	}
	p.urgent = false
	p.heard = p.heard[:0]
	for _, q := range p.peers {
		p.heard = append(p.heard, q.opinion())
	}
	for _, q := range p.peers {
		s := Send{To: q.node, Header: p.header(wire.CommandPing, now)}
		s.Body = wire.PingBody{Progress: p.progress, Heard: p.heard, Digests: p.digests(q, now)}
		out.Send = append(out.Send, s)
	}
}

// due is when the next InputTick is needed.
func (p *Pulse) due() Tick {
	if len(p.peers) == 0 {
		return 0
	}
	at := p.next
	for _, q := range p.peers {
		if !q.silent {
			at = min(at, q.alive+DeadAfter)
		}
	}
	return at
}
