package simulator

import (
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/vsr/pulse"
	"github.com/whippet-mq/whippet/libs/wire"
)

// heart is the liveness of nodes as one process sees it: a pulse, and what the cores were told of it.
type heart struct {
	n        *node
	pulse    *pulse.Pulse
	in       pulse.Input
	out      pulse.Output
	body     wire.PingBody
	progress []uint64 // one loop: rounds that went through the disk
	wake     uint64
	dead     [][]bool              // by group and member: as the core was told
	deaths   map[uint8]pulse.Event // of nodes that are dead now
	isolated []bool                // by group
}

func (h *heart) start(n *node) {
	groups := n.w.config.Groups
	*h = heart{n: n, progress: make([]uint64, 1), wake: h.wake, isolated: make([]bool, len(groups)), deaths: map[uint8]pulse.Event{}}
	agree := 0
	for i := range groups {
		h.dead = append(h.dead, make([]bool, len(groups[i].Members)))
		if need := groups[i].quorums().ViewChange - 1; need > 0 && (agree == 0 || need < agree) {
			agree = need
		}
	}
	h.pulse = pulse.New(pulse.Options{
		Header: wire.PingHeader{Node: uint8(n.id), Epoch: n.life}, Started: pulse.Tick(n.started), Agree: agree, Digests: h,
	})
	peers := make([]uint8, 0, n.w.config.Nodes)
	for id := range n.w.config.Nodes {
		peers = append(peers, uint8(id))
	}
	h.step(pulse.Input{Kind: pulse.InputPeers, Peers: peers})
}

// forget starts with a group that has got its members: nothing was said to its core of them.
func (h *heart) forget(group int) {
	if group < len(h.dead) {
		h.dead[group] = make([]bool, len(h.n.w.config.Groups[group].Members))
	}
}

// step gives the pulse one event and carries out its effects.
func (h *heart) step(in pulse.Input) {
	n := h.n
	if n.w.now >= n.disk.slowUntil {
		h.progress[0]++
	}
	h.in = in
	h.in.Now, h.in.Progress = pulse.Tick(n.clock.tick()), h.progress
	h.in.View, h.in.Follows = n.metadataView()
	h.pulse.Step(&h.in, &h.out)
	n.w.trace.mark('p', uint64(n.id), uint64(in.Kind), uint64(len(h.out.Events)), uint64(h.out.Wake))
	for i := range h.out.Send {
		s := &h.out.Send[i]
		n.w.network.send(n.id, int(s.To), wire.AppendPing(nil, &s.Header, &s.Body), pingFrame)
	}
	if h.out.Fault != pulse.FaultNone {
		n.w.count("ping refused")
	}
	for _, e := range append([]pulse.Event(nil), h.out.Events...) {
		h.event(&e)
	}
	h.watch()
	h.ring(h.out.Wake)
}

func (h *heart) ring(at pulse.Tick) {
	h.wake++
	wake := h.wake
	if at != 0 {
		h.n.later(h.n.clock.until(vsr.Tick(at)), func() {
			if h.wake == wake {
				h.step(pulse.Input{Kind: pulse.InputTick})
				h.askViews()
			}
		})
	}
}

// askViews asks the other members of partitions that lost their disk in which views they are (rule D9). Who
// lost its own does not say.
func (h *heart) askViews() {
	n := h.n
	for group, m := range n.members {
		if m == nil || !m.core.Lost() || m.spec.metadata() || !n.random.chance(0.3) {
			continue
		}
		for index, id := range m.spec.Members {
			other := n.w.nodes[id]
			if id == n.id || !n.w.network.open(n.id, id) || other.condition != running || other.members[group] == nil || other.members[group].core.Lost() {
				continue
			}
			view := other.members[group].core.View()
			n.later(n.random.between(millisecond, 100*millisecond), func() {
				m.step(vsr.Input{Kind: vsr.InputPeerView, From: uint8(index), Op: uint64(view)})
			})
		}
	}
}

// receive takes a Ping or Pong off the wire.
func (h *heart) receive(from int, frame []byte) {
	h.n.w.trace.mark('h', wire.Hash64(frame))
	var header wire.PingHeader
	if err := header.Decode(frame); err != nil || h.body.Decode(&header, frame[wire.HeaderSize:]) != nil {
		h.n.w.count("ping refused")
		return
	}
	in := pulse.Input{Kind: pulse.InputPing, From: uint8(from), Header: &header, Body: &h.body}
	if header.Command == wire.CommandPong {
		in.Kind = pulse.InputPong
	}
	h.step(in)
}

// event tells the cores what became known of a node.
func (h *heart) event(e *pulse.Event) {
	switch e.Kind {
	case pulse.EventDead, pulse.EventLoopDead:
		h.deaths[e.Node] = *e
	case pulse.EventAlive, pulse.EventLoopAlive, pulse.EventNewEpoch:
		delete(h.deaths, e.Node)
	}
	for group, m := range h.n.members {
		if m != nil {
			h.tell(group, m, e)
		}
	}
}

// born tells a member that begins of the nodes that were dead before.
func (h *heart) born(m *member) {
	for node := range h.n.w.nodes {
		if e, dead := h.deaths[uint8(node)]; dead {
			h.tell(m.group, m, &e)
		}
	}
}

func (h *heart) tell(group int, m *member, e *pulse.Event) {
	node := int(e.Node)
	index := h.n.w.memberOf(group, node)
	if index < 0 {
		return
	}
	told := &h.dead[group][index]
	switch e.Kind {
	case pulse.EventAlive, pulse.EventLoopAlive:
		if view, ok := h.pulse.View(e.Node); ok && m.spec.metadata() {
			m.step(vsr.Input{Kind: vsr.InputPeerView, From: uint8(index), Op: uint64(view)})
		}
		if h.n.w.nodes[node].gone[group] { // another node now: it never speaks for this member
			if !*told {
				h.die(m, index)
			}
			return
		}
		*told = false
		m.step(vsr.Input{Kind: vsr.InputAlive, From: uint8(index)})
	case pulse.EventDead, pulse.EventLoopDead:
		if e.By.Enough(m.nodes(), m.quorums().ViewChange) && !*told {
			h.die(m, index)
		}
	case pulse.EventNewEpoch:
		h.die(m, index)
	case pulse.EventMismatch:
		if !*told {
			m.step(vsr.Input{Kind: vsr.InputAlive, From: uint8(index)})
		}
	case pulse.EventView:
		if m.spec.metadata() {
			m.step(vsr.Input{Kind: vsr.InputPeerView, From: uint8(index), Op: uint64(e.View)})
		}
	}
}

// connected is a new connection to a node that is not dead.
func (h *heart) connected(node int) {
	for group, m := range h.n.members {
		if index := h.n.w.memberOf(group, node); m != nil && index >= 0 && !h.dead[group][index] {
			m.step(vsr.Input{Kind: vsr.InputAlive, From: uint8(index)})
		}
	}
}

func (h *heart) die(m *member, index int) {
	h.dead[m.group][index] = true
	h.n.w.count("member dead")
	m.step(vsr.Input{Kind: vsr.InputDead, From: uint8(index)})
}

// watch tells cores that begin or cease to be cut off from the others.
func (h *heart) watch() {
	for group, m := range h.n.members {
		if m == nil || len(m.spec.Members) == 1 {
			continue
		}
		isolated := !h.pulse.Serving(m.nodes(), m.quorums().Replication, pulse.Tick(h.n.clock.tick()))
		if isolated == h.isolated[group] {
			continue
		}
		h.isolated[group] = isolated
		kind := vsr.InputReached
		if isolated {
			h.n.w.count("isolated")
			kind = vsr.InputIsolated
		}
		m.step(vsr.Input{Kind: kind})
	}
}

// Led is the digest of the groups this node leads that a node is a member of.
func (h *heart) Led(dst []uint64, node uint8) []uint64 {
	digest := uint64(0)
	for group, m := range h.n.members {
		if m != nil && m.core.Primary() && h.n.w.nodes[node].hosts(group) {
			digest ^= pulse.Digest(m.spec.ID, m.core.View())
		}
	}
	return append(dst, digest)
}

// Held is the digest of the groups here that a node leads, as far as this node knows.
func (h *heart) Held(dst []uint64, node uint8, loops int) []uint64 {
	digest := uint64(0)
	for _, m := range h.n.members {
		if m != nil && len(m.spec.Members) > 1 && m.spec.Members[m.core.Leader()] == int(node) {
			digest ^= pulse.Digest(m.spec.ID, m.core.View())
		}
	}
	for range loops {
		dst = append(dst, digest)
	}
	return dst
}

// nodes are the node ids of the group's members.
func (m *member) nodes() []uint8 {
	nodes := make([]uint8, len(m.spec.Members))
	for i, id := range m.spec.Members {
		nodes[i] = uint8(id)
	}
	return nodes
}

// mayServe reports whether a member may answer reads and admit writes as a primary. Reads of the
// metadata are linearizable: they need the lease. All need everything applied that the view inherited, for some
// of it may be acknowledged.
func (m *member) mayServe(read bool) bool {
	now := pulse.Tick(m.n.clock.tick())
	switch p := m.n.heart.pulse; {
	case !m.core.Primary():
		return false
	case read && (!m.core.CaughtUp() || m.core.Doubted()):
		return false
	case read && m.spec.metadata():
		return p.Leased(m.nodes(), m.quorums().Replication, m.core.View(), now)
	default:
		return p.Serving(m.nodes(), m.quorums().Replication, now)
	}
}

// metadataView is the view of the metadata here, and whether it is taken part in.
func (n *node) metadataView() (view uint32, follows bool) {
	for _, m := range n.members {
		if m != nil && m.spec.metadata() {
			return m.core.View(), m.core.Follows()
		}
	}
	return 0, false
}

// promised is how long, in µs, a vote waits that leaves a primary of the metadata which may still count on this
// member.
func (m *member) promised(v *vsr.Vote) uint64 {
	if !v.Deserts || !m.spec.metadata() {
		return 0
	}
	if bound := vsr.Tick(m.n.heart.pulse.Bound(uint8(m.spec.Members[v.Deserted]))); bound > m.n.clock.tick() {
		return m.n.clock.until(bound)
	}
	return 0
}
