package simulator

import (
	"math/bits"
	"slices"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Moves of partitions between nodes. The metadata that decides them is modelled as one register that never fails and
// that nodes hear of after a while: it is a group of its own, whose rules are tested as such. What is tested here is
// what nodes do with it, with the rules of libs/vsr: who seals, who may go on, from what log, and what may go when.

// successions is how many successors of a partition a run has room for.
const successions = 2

// moveEvery is how often nodes look at a move, on average.
const moveEvery = 15 * millisecond

// register is what the metadata says of one partition.
type register struct {
	group  int   // index of its group of now
	target []int // of the move under way
	asked  int   // counts moves asked for
	origin *ancestor
	heard  []uint64 // by node: from when on it knows what the register says
}

// ancestor is the sealed group that the group of now succeeded.
type ancestor struct {
	group   int
	seal    wire.LogSeal
	settled bool
}

// copyOf is what a node has of a group it is no member of. It does not outlive the process.
type copyOf struct {
	life uint64
	log  groupLog
}

// registers makes one for each group that is born with the run.
func (w *World) registers() {
	for i := range w.config.Groups {
		if w.config.Groups[i].After == 0 {
			w.slots = append(w.slots, register{group: i, heard: make([]uint64, w.config.Nodes)})
		}
	}
}

// heirOf is the index of the group that can succeed a group, 0 when there is no room for one.
func (w *World) heirOf(group int) int {
	for i := range w.config.Groups {
		if w.config.Groups[i].After == group+1 && group != 0 {
			return i
		}
	}
	return 0
}

// succeeded reports whether the partition of a group has another group by now.
func (w *World) succeeded(group int) bool {
	for i := range w.slots {
		if w.slots[i].group == group {
			return false
		}
	}
	return len(w.config.Groups[group].Members) > 0
}

// change writes the register; each node hears of it by itself.
func (w *World) change(r *register) {
	for node := range r.heard {
		r.heard[node] = w.now + w.moves.about(10*millisecond)
	}
}

// startMove asks for a move of some partition to some nodes.
func (w *World) startMove(s *stream) {
	slot := s.index(len(w.slots))
	r := &w.slots[slot]
	spec := &w.config.Groups[r.group]
	heir := w.heirOf(r.group)
	nodes := make([]int, w.config.Nodes)
	for i := range nodes {
		j := s.index(i + 1)
		nodes[i], nodes[j] = nodes[j], i
	}
	target := nodes[:min(len(nodes), len(spec.Members))]
	up := 0
	for _, id := range target {
		if w.nodes[id].up() && !w.nodes[id].gone[r.group] {
			up++
		}
	}
	if spec.metadata() || heir == 0 || r.target != nil || r.origin != nil && !r.origin.settled || slices.Equal(target, spec.Members) || up < len(target) {
		return
	}
	w.count("move asked")
	r.target, r.asked = target, r.asked+1
	w.change(r)
	w.after(w.moves.about(moveEvery), func() { w.followMove(slot, r.asked) })
	if s.chance(0.15) {
		w.after(s.about(60*millisecond), func() { w.cancelMove(slot, r.asked) })
	}
}

// cancelMove takes a move back, which a seal that is on its way does not hear.
func (w *World) cancelMove(slot, asked int) {
	if r := &w.slots[slot]; r.asked == asked && r.target != nil {
		w.count("move given up")
		r.target = nil
		w.change(r)
	}
}

// followMove has every node do what it has to, until the move is complete or taken back.
func (w *World) followMove(slot, asked int) {
	r := &w.slots[slot]
	if r.asked != asked {
		return
	}
	sealed := false
	for _, n := range w.nodes {
		if n.condition == running && w.now >= r.heard[n.id] {
			n.moves(r)
		}
		sealed = sealed || n.sealed(r.group)
	}
	resting := r.target == nil && !sealed && (r.origin == nil || r.origin.settled)
	if resting && !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.owes(r) }) {
		return
	}
	if w.calm && r.target != nil && w.moves.chance(0.02) && slices.ContainsFunc(r.target, func(id int) bool { return w.nodes[id].retired || w.nodes[id].gone[r.group] }) {
		w.cancelMove(slot, asked) // its target is dead: an operator looks at it
	}
	w.after(w.moves.about(moveEvery), func() { w.followMove(slot, asked) })
}

// sealed reports whether what the node has of a group ends in a seal, committed or not, whether a process runs or not.
func (n *node) sealed(group int) bool {
	return slices.ContainsFunc(n.copies(group), func(l *groupLog) bool {
		last, ok := l.header(l.head())
		return ok && last.Operation == wire.OpSealPartition
	})
}

// owes reports whether the node is still to begin or to leave a group of the partition.
func (n *node) owes(r *register) bool {
	o := r.origin
	if o == nil || n.retired {
		return false
	}
	member := n.w.memberOf(r.group, n.id) >= 0
	return member && !n.begun[r.group] && !n.gone[r.group] || n.has(o.group) || len(n.forebears(r)) > 0
}

// forebears are the groups of the partition before the sealed one of which the node keeps something.
func (n *node) forebears(r *register) (list []int) {
	groups := n.w.config.Groups
	for g := groups[r.origin.group].After - 1; g >= 0; g = groups[g].After - 1 {
		if n.has(g) {
			list = append(list, g)
		}
	}
	return list
}

// has reports whether the node keeps anything of a group.
func (n *node) has(group int) bool {
	return n.w.memberOf(group, n.id) >= 0 && !n.left[group] && !n.gone[group]
}

// moves does the node's part of a move.
func (n *node) moves(r *register) {
	w := n.w
	if o := r.origin; o != nil {
		for _, g := range n.forebears(r) {
			n.leave(g, nil) // the sealed group had what counts, or it could not have been sealed
		}
		if w.memberOf(r.group, n.id) >= 0 && !n.begun[r.group] && !n.gone[r.group] {
			n.takeOver(r)
		} else if n.has(o.group) && (o.settled || n.begun[r.group]) && (o.settled || w.memberOf(r.group, n.id) >= 0) {
			n.leave(o.group, r)
		}
		if m := n.members[r.group]; m != nil && !o.settled && m.core.Primary() {
			n.settle(r)
		}
	}
	m := n.members[r.group]
	joins := slices.Contains(r.target, n.id) && w.memberOf(r.group, n.id) < 0
	switch {
	case joins && (n.copied[r.group] == nil || n.copied[r.group].life != n.life):
		if base, ok := n.fetched(r.group, w.config.Groups[r.group].Members, 0); ok {
			n.copied[r.group] = &copyOf{n.life, base}
			w.count("copied as a non-member")
		}
	case m == nil:
	case m.core.Closed():
		if seal, ok := m.core.Sealed(); ok && m.core.Primary() && m.synced >= seal.Op {
			w.succeed(r, m, seal)
		}
	case r.target != nil && m.mayServe(false) && w.copiesReady(r):
		m.seal(r.target)
	}
}

// copiesReady reports whether everybody who has to copy has.
func (w *World) copiesReady(r *register) bool {
	return !slices.ContainsFunc(r.target, func(id int) bool {
		n := w.nodes[id]
		c := n.copied[r.group]
		return w.memberOf(r.group, id) < 0 && (c == nil || c.life != n.life || !n.up())
	})
}

// seal proposes the last op of the group. Its body names the target, which the world remembers for it.
func (m *member) seal(target []int) {
	m.w.values++
	q := &request{group: m.group, value: m.w.values, body: newBody(m.w.values), target: slices.Clone(target)}
	m.w.count("seal proposed")
	if m.w.trace.loud() {
		m.w.trace.say("node %d seals group %d for nodes %v", m.n.id, m.group, target)
	}
	m.proposeAs(q, wire.OpSealPartition)
}

// succeed names the successor of a group that says it is sealed.
func (w *World) succeed(r *register, m *member, seal wire.LogSeal) {
	h := w.history[r.group]
	if seal.Op > uint64(len(h.ops)) || h.ops[seal.Op-1].identity != seal.Identity {
		h.fail(m, "M1", "says that it is sealed at op %d, which no quorum of it holds", seal.Op)
	}
	target := w.seals[seal.Identity]
	next := w.heirOf(r.group)
	w.count("group succeeded")
	w.config.Groups[next].Members = target
	for _, n := range w.nodes {
		n.heart.forget(next)
	}
	w.history[next].follows(h, seal)
	r.origin = &ancestor{group: r.group, seal: seal}
	r.group = next
	if slices.Equal(r.target, target) || w.heirOf(next) == 0 { // there is no room for another move
		r.target = nil
	}
	w.change(r)
	if w.trace.loud() {
		w.trace.say("group %d is sealed at op %d, group %d on nodes %v succeeds it", r.origin.group, seal.Op, next, target)
	}
}

// takeOver begins the successor at this node: with what it has, if that ends in the seal, or with what others have.
func (n *node) takeOver(r *register) {
	w, o := n.w, r.origin
	genesis := vsr.Genesis(clusterID, w.config.Groups[r.group].ID, o.seal)
	if m := n.members[o.group]; m != nil {
		if last, ok := m.log.header(m.state.op); ok && m.state.op == m.log.head() && vsr.Succeeds(&last, o.seal) {
			w.count("begun in place")
			n.inherit(r, groupLog{base: genesis, digest: m.state.digest, table: copied(m.state.table), floor: m.log.floor})
			n.leave(o.group, r)
			return
		}
		if w.moves.chance(0.9) { // it may catch up
			return
		}
	}
	if log, ok := n.fetched(o.group, w.config.Groups[o.group].Members, o.seal.Op); ok && vsr.Succeeds(&log.base, o.seal) {
		w.count("begun with a copy")
		log.base = genesis
		n.inherit(r, log)
		return
	}
	if log, ok := n.fetched(r.group, w.config.Groups[r.group].Members, o.seal.Op); ok {
		w.count("begun late")
		n.inherit(r, log)
	}
}

// fetched is the applied state of a reachable member of a group, at an op or higher.
func (n *node) fetched(group int, members []int, above uint64) (groupLog, bool) {
	for _, i := range members {
		donor := n.w.nodes[i]
		from := donor.members[group]
		if donor == n || donor.condition != running || from == nil || !n.w.network.open(n.id, i) || from.state.op < max(above, 1) {
			continue
		}
		if base, ok := from.log.header(from.state.op); ok {
			return groupLog{base: base, digest: from.state.digest, table: copied(from.state.table), floor: from.log.floor}, true
		}
	}
	return groupLog{}, false
}

// inherit makes a state durable as the beginning of the successor's log here, and starts the member.
func (n *node) inherit(r *register, log groupLog) {
	group := r.group
	n.w.history[group].inherited(n, &log)
	n.disk.logs[group], n.begun[group] = log, true
	if n.disk.votes[group].known {
		n.w.fail("M2", "node %d begins group %d, in which it voted before", n.id, group)
	}
	n.members[group] = newMember(n, group, uint8(n.w.memberOf(group, n.id)))
	n.members[group].step(vsr.Input{Kind: vsr.InputTick})
	n.heart.born(n.members[group])
}

// leave takes what is left of a sealed group off the node.
func (n *node) leave(group int, r *register) {
	if n.members[group] != nil {
		n.members[group].over = true
		n.members[group].end()
	}
	n.members[group], n.left[group] = nil, true
	n.disk.dropGroup(group)
	n.disk.logs[group] = groupLog{}
	n.w.count("sealed group left")
	if r != nil {
		n.w.history[group].outlived(r)
	}
}

// settle counts who has begun: when they are enough, what the sealed group left elsewhere may go.
func (n *node) settle(r *register) {
	begun, members := uint32(0), n.w.config.Groups[r.group].Members
	for i, id := range members {
		if other := n.w.nodes[id]; other.condition == running && other.begun[r.group] && (other == n || n.w.network.open(n.id, id)) {
			begun |= 1 << i
		}
	}
	if vsr.Replaced(begun, len(members)) {
		n.w.count("move settled")
		n.w.history[r.group].settles(begun)
		r.origin.settled = true
		n.w.change(r)
	}
}

// follows begins the history of a successor: what the sealed group committed is committed.
func (h *history) follows(before *history, seal wire.LogSeal) {
	h.ops = slices.Clone(before.ops[:seal.Op])
	last := &h.ops[seal.Op-1]
	last.identity = vsr.Genesis(clusterID, h.spec.ID, seal).Checksum
	h.proven[seal.Op] = last.identity
	h.acknowledgedTo = min(before.acknowledgedTo, seal.Op)
	before.sealed = seal.Op
}

// inherited checks a state that a member is to begin with: it is that of the history, so nothing acknowledged is missing.
func (h *history) inherited(n *node, l *groupLog) {
	op := l.base.Op
	switch {
	case op > uint64(len(h.ops)) || h.ops[op-1].identity != l.base.Checksum:
		h.w.fail("M2", "node %d begins group %x behind op %d, which is not in its history", n.id, h.spec.ID, op)
	case !h.ops[op-1].applied: // the seal, which nobody had applied when it was reported
		h.ops[op-1].applied, h.ops[op-1].digest = true, l.digest
	case h.ops[op-1].digest != l.digest:
		h.w.fail("M2", "node %d begins group %x at op %d with another state: something acknowledged is missing", n.id, h.spec.ID, op)
	}
}

// settles checks that enough members have begun for what the sealed group left to go: a quorum of each kind.
func (h *history) settles(begun uint32) {
	if q := h.spec.quorums(); bits.OnesCount32(begun) < max(q.Replication, q.ViewChange) {
		h.w.fail("M4", "group %x counts as begun at %d members of %d", h.spec.ID, bits.OnesCount32(begun), len(h.spec.Members))
	}
}

// outlived checks that the history of a sealed group outlives what a node gives up of it: every op is on as many disks as
// the successor needs to go on, or still at a quorum of the sealed group.
func (h *history) outlived(r *register) {
	begun, kept := uint32(0), uint32(0)
	for i, n := range h.w.nodes {
		if n.begun[r.group] {
			begun |= 1 << i
		}
		if n.has(h.group) {
			kept |= 1 << i
		}
	}
	q, before := h.w.history[r.group].spec.quorums(), h.spec.quorums()
	if bits.OnesCount32(begun) < q.ViewChange && bits.OnesCount32(begun|kept) < max(q.ViewChange, before.Replication) {
		h.w.fail("M4", "group %x is left when %d nodes have begun its successor and %d keep it", h.spec.ID, bits.OnesCount32(begun), bits.OnesCount32(kept))
	}
}
