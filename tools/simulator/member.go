package simulator

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// member is one group's part of a process: the core and what a server keeps around it.
type member struct {
	n       *node
	w       *World
	group   int
	spec    *GroupConfig
	history *history
	self    uint8
	core    *vsr.Replica
	in      vsr.Input
	out     vsr.Output

	log       groupLog
	written   uint64 // ops up to here are reported written
	synced    uint64
	state     state
	commit    uint64 // the core's commit point, as it said
	applying  bool
	bodies    map[vsr.Body][]byte // what the core owes an Append or a Drop
	nextBody  vsr.Body
	waiting   map[vsr.Body]*request // admitted requests, by body
	pipeline  map[uint64]*request   // requests with an op
	wake      uint64                // counts timers: only the newest one rings
	wakeAt    vsr.Tick
	adopting  uint32 // view of the adoption that is on its way to the disk
	transfers uint64 // counts transfers: only the newest one ends
	stepping  bool
	flagged   bool // the boot said that the log may be short
	over      bool // the group was sealed and left
}

// newMember starts a member on what the disk holds.
func newMember(n *node, group int, self uint8) *member {
	m := &member{
		n: n, w: n.w, group: group, spec: &n.w.config.Groups[group], history: n.w.history[group], self: self,
		log: n.disk.found(group), bodies: map[vsr.Body][]byte{}, waiting: map[vsr.Body]*request{}, pipeline: map[uint64]*request{},
	}
	boot := m.bootRecord()
	m.written, m.synced = m.log.head(), m.log.base.Op
	for m.synced < m.written && m.log.at(m.synced+1).position <= n.disk.stable {
		m.synced++
	}
	m.state = state{op: m.log.base.Op, digest: m.log.digest}
	if m.spec.metadata() {
		m.state.table = copied(m.log.table)
	}
	m.core = vsr.New(vsr.Group{
		ID: m.spec.ID, Cluster: clusterID, Self: self, Members: uint8(len(m.spec.Members)), Policy: m.spec.Policy,
	}, vsr.Limits{Pipeline: m.spec.Pipeline}, boot)
	m.history.booted(m, &boot)
	m.apply(m.core.Commit())
	return m
}

// bootRecord says what is durable, and what that is worth (D5).
func (m *member) bootRecord() vsr.Boot {
	d := m.n.disk
	vote := &d.votes[m.group]
	if op := d.damaged[m.group]; op != 0 {
		d.damaged[m.group] = 0
		m.loseDamaged(op, vote.logView)
	}
	boot := vsr.Boot{Started: m.n.started, TimeFloor: max(m.log.floor, 1)}
	switch {
	case len(m.spec.Members) == 1:
		boot.State = vsr.Whole
	case !vote.known && (m.spec.metadata() || m.n.roster):
		boot.State = vsr.Empty
	case !vote.known && m.spec.After > 0 && m.log.base.Operation != wire.OpSucceedPartition:
		boot.State = vsr.Whole // others have begun the group; this member never acted
		*vote = savedVote{known: true, epoch: d.session.epoch}
	case !vote.known:
		boot.State = vsr.Born
		*vote = savedVote{known: true, epoch: d.session.epoch}
	case d.vouched(m.group):
		boot.State = vsr.Whole
	default:
		boot.State = vsr.Suspect
	}
	if m.spec.Policy.Incarnation {
		boot.Incarnation = wire.U128{Lo: m.n.random.next() | 1, Hi: m.n.random.next()}
	}
	m.flagged = boot.State == vsr.Suspect || boot.State == vsr.Empty
	boot.View, boot.LogView = vote.view, vote.logView
	boot.Head, boot.Commit = m.log.head(), m.log.commit()
	for op := boot.Head; op > 0 && op >= boot.Commit; op-- {
		if h, ok := m.log.header(op); ok {
			boot.Tail = append(boot.Tail, h)
		}
	}
	boot.Adopted, boot.AdoptView = m.log.newestAdoption()
	boot.Lost = m.log.lost
	m.w.count("boot " + [...]string{"whole", "born", "suspect", "empty"}[boot.State])
	return boot
}

// loseDamaged ends the log below the entry that cannot be read: what follows is known by its headers only,
// or not at all.
func (m *member) loseDamaged(op uint64, logView uint32) {
	_, adopted := m.log.newestAdoption()
	if op <= m.log.base.Op || op > m.log.head() || adopted > logView || !m.history.heldElsewhere(m.n, op, &m.log) {
		return
	}
	m.w.count("boot with a damaged entry")
	headers := slices.Clone(m.log.above(logView))
	for at := m.log.head(); at >= op && len(headers) < wire.MaxSuffix; at-- {
		headers = append(headers, m.log.at(at).header)
	}
	if headers[len(headers)-1].Op != op {
		return
	}
	if m.n.random.chance(0.3) { // its header can not be read either
		headers[len(headers)-1] = wire.BlankPrepare(op)
	}
	if m.n.random.chance(0.5) {
		m.log.lost = max(m.log.lost, m.log.head())
		m.log.cut(op)
		m.log.adopt(adoption{view: logView, headers: headers})
	} else { // the server says that the log may be short, until it is whole again
		m.log.cut(op)
		m.n.disk.votes[m.group].epoch = 0
	}
	m.n.disk.dropGroup(m.group)
	m.n.disk.logs[m.group] = m.log.clone()
	m.history.damaged(m, op)
}

// dropGroup forgets the records of a group that are not synced.
func (d *disk) dropGroup(group int) {
	kept := d.pending[:0]
	written := 0
	for i := range d.pending {
		if d.pending[i].group == group && d.pending[i].kind != recordAdopt {
			continue
		}
		if i < d.written {
			written++
		}
		kept = append(kept, d.pending[i])
	}
	d.pending, d.written = kept, written
}

// step gives the core one event and carries out its effects.
func (m *member) step(in vsr.Input) {
	if m.over {
		return
	}
	if m.stepping {
		panic("simulator: a step within a step")
	}
	m.stepping = true
	m.in = in
	m.in.Now, m.in.Tick, m.in.Rand = m.n.clock.wall(), m.n.clock.tick(), m.n.random.next()
	m.out.Reset()
	before := m.core.Commit()
	m.core.Step(&m.in, &m.out)
	m.w.steps++
	m.w.trace.mark('s', uint64(m.n.id), uint64(m.group), uint64(in.Kind), uint64(m.core.View()), m.core.Commit(), m.core.Head().Op, uint64(m.out.Wake))
	if m.w.trace.loud() {
		m.saySteps(before)
	}
	m.perform()
	m.history.check(m)
	m.stepping = false
}

// end answers nobody: clients of a process that ended learn it from the connection.
func (m *member) end() {
	for _, r := range m.pipeline {
		r.lost = true
	}
}

func (m *member) quorums() vsr.Quorums { return m.spec.quorums() }

// reportWritten tells the core how far its log is with the operating system.
func (m *member) reportWritten() {
	before := m.written
	for m.written < m.log.head() && m.log.at(m.written+1).position <= m.n.disk.handed {
		m.written++
	}
	if m.written > before {
		m.completed(vsr.InputWritten, m.written)
	}
}

func (m *member) reportSynced() {
	before := m.synced
	for m.synced < m.log.head() && m.log.at(m.synced+1).position <= m.n.disk.stable {
		m.synced++
	}
	if m.synced > before {
		m.completed(vsr.InputSynced, m.synced)
	}
}

func (m *member) completed(kind vsr.InputKind, op uint64) {
	m.history.completed(m)
	m.step(vsr.Input{Kind: kind, Op: op})
}

// held is how far the log is as durable as the policy asks.
func (m *member) held() uint64 {
	if m.spec.Policy.Synced {
		return m.synced
	}
	return max(m.written, m.synced)
}

// loseFrom takes the ops whose records from a position on the disk refused.
func (m *member) loseFrom(position uint64) {
	for op := m.written + 1; op <= m.log.head(); op++ {
		if m.log.at(op).position >= position {
			m.log.cut(op)
			m.step(vsr.Input{Kind: vsr.InputWriteFailed, Op: op})
			return
		}
	}
}

// inDoubt reports whether the member cannot vouch for its log.
func (m *member) inDoubt() bool { return m.flagged && !m.n.disk.vouched(m.group) }

func (m *member) adopted(view uint32) {
	if view == m.adopting {
		m.adopting = 0
		m.step(vsr.Input{Kind: vsr.InputAdopted})
	}
}

func (m *member) voteSaved() { m.step(vsr.Input{Kind: vsr.InputVoteSaved}) }

// ring sets the timer that the core asked for.
func (m *member) ring(at vsr.Tick) {
	if at == m.wakeAt {
		return
	}
	m.wake++
	m.wakeAt = at
	if at == 0 {
		return
	}
	wake := m.wake
	m.n.later(m.n.clock.until(at), func() {
		if m.wake == wake {
			m.wakeAt = 0
			m.step(vsr.Input{Kind: vsr.InputTick})
		}
	})
}
