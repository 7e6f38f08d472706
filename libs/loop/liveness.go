package loop

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// watchAll is how many Watches pass before every group is looked at whatever happened. One that somebody uses is
// looked at with each call.
const watchAll = 10

// maxChanging bounds the view changes a loop runs at once on its own initiative (design-arguments 20).
const maxChanging = 256

// Silent is how many other members of the group give no answer. Any goroutine.
func (g *Group) Silent(now vsr.Tick, e *Echoes) (n int) {
	if g.peers == nil || e == nil {
		return 0
	}
	for i, node := range g.peers.nodes {
		if uint8(i) != g.peers.self && !e.Answers(node, now) {
			n++
		}
	}
	return n
}

// Serves reports whether this process may answer reads of the group: it leads it, has committed what
// it took over, and is not cut off from the members another primary would come from. Otherwise why says what to refuse with. Any goroutine.
func (g *Group) Serves(now vsr.Tick, e *Echoes) (ok bool, why link.Reason) {
	switch {
	case g.peers == nil:
		return true, link.ReasonNone
	case !g.Primary():
		return false, link.ReasonNotPrimary
	case g.peers.status.Load()&statusReads == 0:
		return false, link.ReasonBusy
	case !e.reached(g.peers, now):
		return false, link.ReasonViewChange
	}
	return true, link.ReasonNone
}

// Leased reports whether this process is the only one that may answer reads of the metadata group: it serves, and
// enough members that take part in its view have said lately that they follow nobody else. Otherwise why says
// what to refuse with. Any goroutine.
func (g *Group) Leased(now vsr.Tick, e *Echoes) (ok bool, why link.Reason) {
	view := g.View()
	if ok, why = g.Serves(now, e); ok && g.peers != nil && !e.leased(g.peers, view, now) {
		return false, link.ReasonViewChange
	}
	return ok, why
}

// Follows is the view this member takes part in; false in between. Any goroutine.
func (g *Group) Follows() (view uint32, ok bool) {
	if g.peers == nil {
		return 0, true
	}
	status := g.peers.status.Load()
	return uint32(status), status&statusFollows != 0
}

// liveness is which nodes are down, as the node's pulse says.
type liveness struct {
	down    [256]bool
	version uint64 // counts changes
	urgent  []bereaved
	waiting []bereaved

	answering [4]uint64   // nodes, at the last Watch
	watched   uint        // Watches so far
	gapped    uint32      // Echoes.gapped, and
	gaps      [256]uint32 // Echoes.gaps, as far as they were seen to
}

// bereaved is a group whose leader died in a view and that has not been told yet.
type bereaved struct {
	group *Group
	view  uint32
}

// grief says in which of the two queues a group stands.
type grief uint8

const (
	griefNone grief = iota
	griefWaiting
	griefUrgent
)

// NodeDead takes a node's death: enough others agree that it is not heard. Groups it leads are told in
// turn, those that work on something at once, idle ones when they next do. Called in a turn.
func (l *Loop) NodeDead(node uint8) {
	l.alive.down[node] = true
	l.alive.version++
	for _, g := range l.clustered {
		i, ok := g.peers.member(node)
		switch {
		case !ok || i == g.peers.self || g.muted():
		case g.core.Leader() == i:
			g.peers.grief = griefWaiting
			l.alive.waiting = append(l.alive.waiting, bereaved{g, g.core.View()})
		case g.peers.slot != 0:
			l.inform(g)
		}
	}
}

// NodeAlive takes a node's return or its start under another epoch. Called in a turn.
func (l *Loop) NodeAlive(node uint8) {
	if l.alive.down[node] {
		l.alive.down[node] = false
		l.alive.version++
	}
	l.NodeConnected(node)
}

// NodeConnected takes a new connection to a node: what was sent before may be lost. Groups led here say
// so: whoever missed a view change, this node or that one, learns of it. Called in a turn.
func (l *Loop) NodeConnected(node uint8) {
	if l.alive.down[node] {
		return // NodeAlive follows
	}
	for _, g := range l.clustered {
		i, ok := g.peers.member(node)
		if !ok || i == g.peers.self || g.muted() {
			continue
		}
		leads := g.core.Leader() == g.peers.self
		if leads || g.peers.slot != 0 {
			l.inform(g)
		}
		if leads {
			l.tell(g, vsr.Input{Kind: vsr.InputAlive, From: i})
		}
	}
}

// Watch steps down from the groups whose members do not answer any more, and takes up again those whose
// members do. Called in a turn, every 100 ms. Groups are looked at when other nodes answer than before, and now
// and then for those that came to be led since: ten thousand idle ones cost nothing in between.
func (l *Loop) Watch() {
	l.greet()
	now, a := l.env.Tick(), &l.alive
	answering := l.Echoes.answering(now)
	if a.watched++; answering == a.answering && a.watched%watchAll != 0 {
		return
	}
	a.answering = answering
	for _, g := range l.clustered {
		if g.Primary() || g.peers.isolated {
			l.measure(g, now)
		}
	}
}

// greet has the groups led here speak to nodes that did not answer for a while and do again: they may follow
// another primary by now, and say so when they are spoken to.
func (l *Loop) greet() {
	e, a := l.Echoes, &l.alive
	if e == nil || e.gapped.Load() == a.gapped {
		return
	}
	a.gapped = e.gapped.Load()
	for node := range e.gaps {
		if n := e.gaps[node].Load(); n != a.gaps[node] {
			a.gaps[node] = n
			l.NodeConnected(uint8(node))
		}
	}
}

// measure tells the core when the group begins or ceases to be cut off.
func (l *Loop) measure(g *Group, now vsr.Tick) {
	p := g.peers
	isolated := !l.Echoes.reached(p, now)
	if isolated == p.isolated || g.muted() {
		return
	}
	p.isolated = isolated
	kind := vsr.InputReached
	if isolated {
		kind = vsr.InputIsolated
	}
	l.tell(g, vsr.Input{Kind: kind})
}

// inform tells the core of every change of its members' lives since it last heard of one.
func (l *Loop) inform(g *Group) {
	p := g.peers
	if p.known == l.alive.version {
		return
	}
	p.known = l.alive.version
	for i, node := range p.nodes {
		bit := uint32(1) << i
		if down := l.alive.down[node]; uint8(i) != p.self && down != (p.dead&bit != 0) {
			l.pronounce(g, uint8(i), down)
		}
	}
}

func (l *Loop) pronounce(g *Group, member uint8, down bool) {
	p, bit, kind := g.peers, uint32(1)<<member, vsr.InputAlive
	p.dead &^= bit
	if down {
		kind, p.dead = vsr.InputDead, p.dead|bit
	}
	l.tell(g, vsr.Input{Kind: kind, From: member})
}

// prefer moves a group somebody waits for in front of the others whose leader died.
func (l *Loop) prefer(g *Group) {
	if g.peers.grief == griefWaiting {
		g.peers.grief = griefUrgent
		l.alive.urgent = append(l.alive.urgent, bereaved{g, g.core.View()})
	}
}

// elect tells groups that their leader died, as many as may change views at once.
func (l *Loop) elect() {
	a := &l.alive
	for l.changing < maxChanging && len(a.urgent)+len(a.waiting) > 0 {
		queue, due := &a.urgent, griefUrgent
		if len(a.urgent) == 0 {
			queue, due = &a.waiting, griefWaiting
		}
		b := (*queue)[0]
		*queue = (*queue)[1:]
		if b.group.peers.grief == due {
			b.group.peers.grief = griefNone
			l.bereave(b)
		}
	}
	if len(a.urgent)+len(a.waiting) == 0 {
		a.urgent, a.waiting = nil, nil
	}
}

// bereave tells a group of its leader's death. A leader that returned meanwhile leads no more: it lost
// what a primary knows (rule D12).
func (l *Loop) bereave(b bereaved) {
	g := b.group
	if g.gone || g.core.View() != b.view {
		return
	}
	leader := g.core.Leader()
	if g.peers.dead>>leader&1 == 0 {
		l.pronounce(g, leader, true)
	}
	g.peers.known = 0
	l.inform(g)
}

// HandOver asks every group led here to go to another member. Called in a turn, before a planned stop.
func (l *Loop) HandOver() {
	for _, g := range l.clustered {
		l.StandDown(g)
	}
}

// StandDown asks a group to go to another member if it is led here. Called in a turn.
func (l *Loop) StandDown(g *Group) {
	if g.peers != nil && !g.gone && g.Primary() && !g.muted() {
		l.tell(g, vsr.Input{Kind: vsr.InputHandOver})
	}
}

// PeerView takes what another node reports of its view of a group (rule D9). Called in a turn.
func (l *Loop) PeerView(g *Group, node uint8, view uint32) {
	if i, ok := g.peers.member(node); ok && !g.muted() {
		l.tell(g, vsr.Input{Kind: vsr.InputPeerView, From: i, Op: uint64(view)})
	}
}

// leads reports whether the call can be admitted here; otherwise it is answered.
func (l *Loop) leads(g *Group, c *link.Call) bool {
	l.inform(g)
	why := link.ReasonNone
	if g.core.Primary() && !g.muted() {
		if l.measure(g, l.env.Tick()); g.peers.isolated {
			why = link.ReasonViewChange
		}
	} else {
		why = link.ReasonNotPrimary
		l.prefer(g)
	}
	if why == link.ReasonNone {
		return true
	}
	g.hint(c)
	c.Refuse(wire.CodeTransientNotAccepted, why)
	return false
}
