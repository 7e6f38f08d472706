package simulator

import (
	"github.com/whippet-mq/whippet/libs/vsr"
)

type condition uint8

const (
	down condition = iota
	running
	paused
)

// node is a machine with at most one process. A process hosts one member of each group that lists the
// node; all of them share the disk.
type node struct {
	w         *World
	id        int
	clock     clock
	disk      *disk
	condition condition
	life      uint64 // of the process; whatever an earlier one waits for is void
	started   vsr.Tick
	members   []*member // by group index, nil where the node is no member
	retired   bool      // it never starts again
	roster    bool      // it lost its disk and kept its place in all groups
	gone      []bool    // by group: this member is lost for ever, with its disk
	left      []bool    // by group: it was sealed, and nothing of it is kept here any more
	begun     []bool    // by group that succeeded another one: its log has begun here, durably
	copied    []*copyOf // by group: what was copied of it as a non-member
	inbox     []func()  // what waits while the process is paused
	heart     heart
	random    *stream
}

// hosts reports whether the node has, or had and will have, a member of a group.
func (n *node) hosts(group int) bool {
	return n.has(group) && (n.w.config.Groups[group].After == 0 || n.begun[group])
}

func (n *node) up() bool { return n.condition != down }

// tell runs an event in the process, at once or when a pause ends.
func (n *node) tell(event func()) {
	switch n.condition {
	case running:
		event()
	case paused:
		n.inbox = append(n.inbox, event)
	}
}

// later runs an event in the process of now after a delay.
func (n *node) later(delay uint64, event func()) {
	life := n.life
	n.w.after(delay, func() {
		if n.life == life {
			n.tell(event)
		}
	})
}

// boot starts a process on what the disk holds. The evidence of the session decides which logs may be
// missing something (design-arguments 1, D2 and D5).
func (n *node) boot() {
	if n.up() || n.retired {
		return
	}
	d := n.disk
	if d.session.open && d.session.boot != d.boot {
		d.session.epoch++
	}
	d.session.open, d.session.boot = true, d.boot
	if n.w.config.SyncBoot || n.hostsSynced() {
		d.settleQuietly()
	}
	n.condition, n.started = running, n.clock.tick()
	n.life++
	n.inbox = nil
	d.sync() // what the last process left to be synced
	n.w.trace.mark('b', uint64(n.id), n.life)
	if n.w.trace.loud() {
		n.w.trace.say("node %d starts, life %d, suspect epoch %d", n.id, n.life, d.session.epoch)
	}
	for group := range n.w.config.Groups {
		n.members[group] = nil
		if n.hosts(group) {
			n.members[group] = newMember(n, group, uint8(n.w.memberOf(group, n.id)))
		}
	}
	for _, m := range n.members {
		if m != nil {
			m.step(vsr.Input{Kind: vsr.InputTick})
		}
	}
	n.heart.start(n)
}

func (n *node) hostsSynced() bool {
	for group := range n.w.config.Groups {
		if n.w.memberOf(group, n.id) >= 0 && n.w.config.Groups[group].Policy.Synced {
			return true
		}
	}
	return false
}

// ending is how a process ends.
type ending uint8

const (
	killed ending = iota
	unpowered
	stoppedCleanly
)

// end stops the process. Everything it waits for is void.
func (n *node) end(how ending) {
	if !n.up() {
		if how == unpowered {
			n.disk.losePower()
			n.w.lookForLoss()
		}
		return
	}
	n.w.trace.mark('e', uint64(n.id), uint64(how))
	if n.w.trace.loud() {
		n.w.trace.say("node %d ends: %s", n.id, [...]string{"killed", "power cut", "stopped"}[how])
	}
	for _, m := range n.members {
		if m != nil {
			m.end()
		}
	}
	n.condition = down
	n.life++
	n.inbox = nil
	switch how {
	case killed:
		n.disk.stop()
	case unpowered:
		n.disk.losePower()
	case stoppedCleanly:
		n.disk.written = len(n.disk.pending)
		n.disk.settleQuietly()
		n.disk.forget()
		n.disk.session.open = false
	}
	n.w.lookForLoss()
}

// suspend stops the process for a while; what arrives waits.
func (n *node) suspend(duration uint64) {
	if n.condition != running {
		return
	}
	n.condition = paused
	life := n.life
	n.w.after(duration, func() {
		if n.life == life && n.condition == paused {
			n.resume()
		}
	})
}

func (n *node) resume() {
	n.condition = running
	waiting := n.inbox
	n.inbox = nil
	for i, event := range waiting {
		if n.condition != running { // an event ended the process
			return
		}
		_ = i
		event()
	}
}

// syncLost is a failed sync: nothing written since the last good one can be trusted, so the node says
// so durably and exits (design-arguments 9).
func (n *node) syncLost() {
	n.w.count("sync failed")
	d := n.disk
	d.lost = true
	d.session.epoch++
	d.session.syncedEpoch = d.session.epoch
	for _, m := range n.members {
		if m != nil {
			m.transfers++ // none may end on this disk
			m.step(vsr.Input{Kind: vsr.InputWriteFailed, Op: m.synced + 1, SyncLost: true})
		}
	}
	n.later(n.random.between(millisecond, 20*millisecond), func() {
		n.end(killed)
		d.written = d.chance.index(d.written + 1)
		d.pending = d.pending[:d.written]
		n.w.lookForLoss()
		n.w.after(n.w.config.Restart, n.boot)
	})
}

func (n *node) reportWritten() {
	for _, m := range n.members {
		if m != nil {
			m.reportWritten()
		}
	}
}

func (n *node) reportSynced() {
	for _, m := range n.members {
		if m != nil {
			m.reportSynced()
		}
	}
}

// receive takes a frame off the wire.
func (n *node) receive(from int, frame []byte, group int) {
	n.tell(func() {
		if group == pingFrame {
			n.heart.receive(from, frame)
			return
		}
		if m := n.members[group]; m != nil {
			m.receive(from, frame)
		}
	})
}
