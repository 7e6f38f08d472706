package simulator

import "slices"

// truncated checks that nothing committed is cut (S5), unless an op below it is on no disk any more.
func (h *history) truncated(m *member, from uint64) {
	if from <= m.state.op {
		h.fail(m, "S5", "cuts op %d, which it applied", from)
	}
	for op := from; op <= min(m.log.head(), uint64(len(h.ops))); op++ {
		if !m.log.has(op, h.ops[op-1].identity) {
			continue
		}
		if h.lookForLoss(); h.gone == 0 || h.gone > op {
			h.fail(m, "S5", "cuts op %d, which is committed", op)
		}
		break
	}
	if view := m.out.AdoptView; view != 0 { // that view began without these ops: nobody committed them
		h.promises[m.n.id] = slices.DeleteFunc(h.promises[m.n.id], func(p promise) bool { return p.op >= from && p.view < view })
	}
}

// lookForLoss finds the oldest committed op that no node holds. Only power cuts can make one, in groups
// that promise no more than the operating system has (D8).
func (h *history) lookForLoss() {
	if h.elsewhere() {
		h.gone = 0
		return
	}
	low := uint64(0)
	for _, n := range h.w.nodes {
		if n.hosts(h.group) {
			low = max(low, n.disk.logs[h.group].base.Op)
		}
	}
	before := h.gone
	h.gone = 0
	if op := h.firstLost(low, h.copies(nil)); op != 0 {
		h.gone = op
	}
	if h.gone != 0 && h.spec.Policy.Synced {
		h.w.fail("S10", "group %x: the committed op %d is on no disk", h.spec.ID, h.gone)
	}
	if before == 0 && h.gone != 0 {
		h.w.count("committed ops lost by power cuts")
		h.lossReported = false
	}
}

// elsewhere reports whether what counts of the group is in another one: in its successor, once that has begun somewhere,
// or still in the group it is to succeed.
func (h *history) elsewhere() bool {
	begun := func(group int) bool {
		return slices.ContainsFunc(h.w.nodes, func(n *node) bool { return n.begun[group] })
	}
	return h.w.succeeded(h.group) && begun(h.w.heirOf(h.group)) || h.spec.After > 0 && !begun(h.group)
}

// copies are all logs of the group on all nodes but one.
func (h *history) copies(except *node) (list []*groupLog) {
	for _, n := range h.w.nodes {
		if n != except {
			list = append(list, n.copies(h.group)...)
		}
	}
	return list
}

// firstLost is the first committed op above low that no copy has, 0 when there is none.
func (h *history) firstLost(low uint64, copies []*groupLog) uint64 {
	for op := low + 1; op <= uint64(len(h.ops)); op++ {
		id := h.ops[op-1].identity
		if !slices.ContainsFunc(copies, func(l *groupLog) bool { return l.has(op, id) }) {
			return op
		}
	}
	return 0
}

// heldElsewhere reports whether every op of a log from op on is intact and synced at another member.
// Ops that no quorum acknowledged need not be, where nothing asks for the group to go on.
func (h *history) heldElsewhere(n *node, op uint64, log *groupLog) bool {
	for ; op <= log.head(); op++ {
		id := log.at(op).header.Checksum
		if h.w.config.Profile == Safety && op > uint64(len(h.ops)) && h.proven[op] != id {
			continue
		}
		if !slices.ContainsFunc(h.w.nodes, func(other *node) bool {
			return other != n && other.hosts(h.group) && other.disk.damaged[h.group] == 0 && other.disk.logs[h.group].has(op, id)
		}) {
			return false
		}
	}
	return true
}

// survivesWithout reports whether every committed op is at another node too.
func (h *history) survivesWithout(n *node) bool {
	return h.elsewhere() || h.firstLost(0, h.copies(n)) == 0
}

// acceptLoss shortens the history to what a new primary holds, when the rest is on no disk any more.
func (h *history) acceptLoss(m *member) {
	h.lookForLoss()
	if h.gone == 0 || m.log.has(h.gone, h.ops[h.gone-1].identity) {
		return
	}
	h.w.count("loss accepted")
	if !h.lossReported && !h.solo() {
		h.fail(m, "N4", "%d committed ops from %d on are lost, and nobody said so", uint64(len(h.ops))-h.gone+1, h.gone)
	}
	if h.w.trace.loud() {
		h.w.trace.say("group %d: %d committed ops from %d on are lost", h.group, uint64(len(h.ops))-h.gone+1, h.gone)
	}
	h.losses++
	for _, c := range h.w.clients {
		c.door.shown[h.group] = min(c.door.shown[h.group], h.gone-1)
	}
	h.ops = h.ops[:h.gone-1]
	h.acknowledgedTo = min(h.acknowledgedTo, h.gone-1)
	for node := range h.promises {
		h.promises[node] = slices.DeleteFunc(h.promises[node], func(p promise) bool { return p.op >= h.gone })
	}
	for node := range h.lives {
		h.lives[node].checked = min(h.lives[node].checked, h.gone-1)
	}
	h.gone = 0
}

// reportedLoss notes that the core told of a log that may lack its end, and of ops that are known to.
func (h *history) reportedLoss(m *member, ops uint64) {
	h.lossReported = true
	if h.w.trace.loud() {
		h.w.trace.say("node %d group %d reports %d ops given up", m.n.id, h.group, ops)
	}
}
