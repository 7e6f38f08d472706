package simulator

import "github.com/whippet-mq/whippet/libs/vsr"

// inject plans every fault that strikes nodes, links or disks.
func (w *World) inject() {
	for f := frameFaults; f < faultCount; f++ {
		if rate := w.config.Rates[f]; rate > 0 && f != ClockSkew {
			w.planFault(f, newStream(w.config.Seed, "fault "+f.String()), rate)
		}
	}
}

func (w *World) planFault(f Fault, s *stream, rate float64) {
	w.after(s.about(uint64(second/rate)), func() {
		if w.calm {
			return
		}
		w.trace.mark('x', uint64(f))
		w.strike(f, s)
		w.planFault(f, s, rate)
	})
}

// strike lets one fault happen now.
func (w *World) strike(f Fault, s *stream) {
	n := w.nodes[s.index(len(w.nodes))]
	to := s.index(len(w.nodes))
	duration := s.about(second)
	switch f {
	case Reset:
		w.network.reset(n.id, to)
	case Cut:
		w.network.cut(n.id, to, duration)
	case Partition:
		side := uint32(1 + s.below(1<<len(w.nodes)-1))
		if s.chance(0.4) {
			side = 1 << n.id
		}
		w.network.part(side, s.chance(0.3), duration)
	case Kill, PowerCut:
		w.takeDown(n, s, f == PowerCut)
	case KillAll, PowerCutAll:
		for _, n := range w.nodes {
			w.takeDown(n, s, f == PowerCutAll)
		}
	case CrashLoop:
		w.crashLoop(n, s, s.between(2, 5))
	case Pause:
		n.suspend(s.between(10*millisecond, 2*second))
	case Trim:
		w.trim(n, s)
	case Relocate:
		w.startMove(s)
	case HandOver:
		w.handOver(n, s)
	case ClockJump:
		n.clock.shift += s.below(20 * second)
		n.clock.shift -= min(n.clock.shift, s.below(20*second))
	default:
		w.strikeDisk(f, n, s, duration)
	}
	w.count(f.String())
	if w.trace.loud() {
		w.trace.say("fault: %s (node %d)", f, n.id)
	}
}

// strikeDisk lets one fault of a disk happen.
func (w *World) strikeDisk(f Fault, n *node, s *stream, duration uint64) {
	switch f {
	case SlowDisk:
		n.disk.slowUntil, n.disk.slowLog = w.now+duration, s.chance(0.5)
	case WriteError:
		n.disk.failWrite = true
	case FullDisk:
		n.disk.fullUntil = w.now + duration/2
	case SyncError:
		if w.maySuffer(n) {
			n.disk.failSync = true
		}
	case Damage:
		w.damage(n, s)
	case Wipe:
		w.wipe(n, s)
	}
}

// takeDown ends a node and has it back after a short or a long while.
func (w *World) takeDown(n *node, s *stream, power bool) {
	wait := s.about(w.config.Restart)
	if s.chance(0.2) {
		wait += s.between(second, 3*second)
	}
	how := killed
	if power {
		how = unpowered
	} else if s.chance(0.1) {
		how = stoppedCleanly
	}
	wasUp := n.up()
	n.end(how)
	if wasUp {
		w.after(wait, n.boot)
	}
}

func (w *World) crashLoop(n *node, s *stream, times uint64) {
	n.end(killed)
	w.after(s.between(5*millisecond, 100*millisecond), func() {
		n.boot()
		if times > 0 && !w.calm {
			w.after(s.between(5*millisecond, 700*millisecond), func() { w.crashLoop(n, s, times-1) })
		}
	})
}

// trim takes applied ops out of a log, as a checkpoint does.
func (w *World) trim(n *node, s *stream) {
	m := n.members[s.index(len(n.members))]
	if n.condition != running || m == nil {
		return
	}
	m.core.Trim()
	stable := &n.disk.logs[m.group]
	op := min(m.state.op, stable.head())
	op -= min(op, s.below(30))
	if op <= max(m.log.base.Op, stable.base.Op) || stable.base.Op != m.log.base.Op {
		return
	}
	m.log.trim(op)
	stable.trim(op)
	w.count("trimmed")
}

// handOver asks the primary of a group to lead no longer.
func (w *World) handOver(n *node, s *stream) {
	m := n.members[s.index(len(n.members))]
	if n.condition == running && m != nil && m.core.Primary() {
		w.count("hand over asked")
		m.step(vsr.Input{Kind: vsr.InputHandOver})
	}
}

// maySuffer keeps the damage recoverable: every other node is up, and no member of it is in doubt.
func (w *World) maySuffer(n *node) bool {
	for _, other := range w.nodes {
		if other == n {
			continue
		}
		if !other.up() || other.disk.failSync || other.disk.lost {
			return false
		}
		for _, m := range other.members {
			if m != nil && (m.inDoubt() || m.n.disk.damaged[m.group] != 0) {
				return false
			}
		}
		for _, gone := range other.gone {
			if gone {
				return false
			}
		}
	}
	return true
}

func (w *World) everyGroupHas(members int) bool {
	for i := range w.config.Groups {
		if n := len(w.config.Groups[i].Members); n < members && n > 0 && !w.succeeded(i) {
			return false
		}
	}
	return true
}

// damage makes an entry unreadable that others hold, and restarts the node.
func (w *World) damage(n *node, s *stream) {
	group := s.index(len(n.members))
	m := n.members[group]
	if !n.up() || m == nil || len(m.spec.Members) < 3 || !w.maySuffer(n) {
		return
	}
	log := &n.disk.logs[group]
	if log.head() <= log.base.Op {
		return
	}
	n.disk.damaged[group] = log.head() - s.below(min(10, log.head()-log.base.Op))
	n.end(killed)
	w.after(s.about(w.config.Restart), n.boot)
}

// wipe takes a node's disk. Its metadata member comes back empty. Its partition members do so too where the
// node is one of a fixed roster; elsewhere a new disk is a new node id, and they never come back.
func (w *World) wipe(n *node, s *stream) {
	if !n.up() || !w.maySuffer(n) || !w.everyGroupHas(3) {
		return
	}
	for _, h := range w.history {
		if !h.survivesWithout(n) {
			return
		}
	}
	w.loseDisk(n, s.chance(0.5))
	w.after(s.about(w.config.Restart), n.boot)
}

// loseDisk ends a node and leaves it an empty disk; roster says whether it keeps its place.
func (w *World) loseDisk(n *node, roster bool) {
	n.end(killed)
	w.count("wiped")
	n.roster = roster
	for group := range w.config.Groups {
		n.disk.logs[group], n.disk.votes[group], n.disk.damaged[group] = groupLog{}, savedVote{}, 0
		spec := &w.config.Groups[group]
		n.gone[group] = n.gone[group] || w.memberOf(group, n.id) >= 0 && !spec.metadata() && (!roster || spec.After > 0 || w.succeeded(group))
		w.history[group].wiped(n)
	}
	n.disk.pending, n.disk.written = nil, 0
	n.disk.session = session{epoch: firstEpoch, syncedEpoch: firstEpoch}
	w.lookForLoss()
}
