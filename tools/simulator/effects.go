package simulator

import (
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// perform carries out the effects of a step.
func (m *member) perform() {
	out := &m.out
	if out.Truncate != 0 {
		m.truncate(out.Truncate)
	}
	if out.AdoptView != 0 {
		m.adopt()
	}
	for i := range out.Append {
		m.append(&out.Append[i])
	}
	if out.Lost != 0 || out.Salvaged {
		m.w.count("log salvaged")
		m.history.reportedLoss(m, out.Lost)
	}
	if out.Role.Changed {
		m.w.count("role changed")
		if out.Role.Primary {
			m.history.leads(m, out.Role.View)
			m.w.network.haunt(m.n.id, m.group)
		}
	}
	if out.Vote.Save {
		m.w.count("vote")
		vote := out.Vote
		m.history.castsVote(m, &vote)
		if wait := m.promised(&vote); wait > 0 {
			m.w.count("vote waits for a promise")
			m.n.later(wait, func() { m.n.disk.saveVote(m.group, vote) })
		} else {
			m.n.disk.saveVote(m.group, vote)
		}
	}
	for i := range out.Refused {
		m.refused(&out.Refused[i])
	}
	for i := range out.Send {
		m.send(&out.Send[i])
	}
	for i := range out.Serve {
		m.serve(&out.Serve[i])
	}
	if out.Transfer.Wanted {
		m.fetchState(out.Transfer)
	}
	for _, body := range out.Drop {
		m.take(body, "dropped")
	}
	if out.Commit != 0 {
		m.committed(out.Commit)
	}
	if out.Fault != vsr.FaultNone {
		m.w.count("fault " + out.Fault.String())
	}
	m.ring(out.Wake)
}

func (m *member) truncate(op uint64) {
	m.w.count("truncate")
	m.history.truncated(m, op)
	if op > m.log.head() {
		return
	}
	m.log.cut(op)
	m.written, m.synced = min(m.written, op-1), min(m.synced, op-1)
	m.n.disk.submit(record{kind: recordTruncate, group: m.group, op: op, view: m.truncateView(), urgent: m.truncateView() != 0})
}

// truncateView is set when the core waits for the truncation and nothing behind it says so.
func (m *member) truncateView() uint32 {
	if len(m.out.Adopt) > 0 {
		return 0
	}
	return m.out.AdoptView
}

// adopt puts the headers of a view's log on disk.
func (m *member) adopt() {
	m.adopting = m.out.AdoptView
	m.w.count("adoption")
	if len(m.out.Adopt) == 0 && m.out.Truncate != 0 && m.out.Truncate <= m.log.head()+1 {
		return // the truncate record says when
	}
	a := adoption{view: m.out.AdoptView, headers: append([]wire.PrepareHeader(nil), m.out.Adopt...)}
	m.history.adoptedHeaders(m, &a)
	m.log.adopt(a)
	m.n.disk.submit(record{kind: recordAdopt, group: m.group, adoption: a, view: a.view, urgent: true})
}

// append puts a prepare into the log, stamped when it was minted here.
func (m *member) append(a *vsr.Append) {
	body := m.take(a.Body, "appended")
	if r := m.waiting[a.Body]; r != nil {
		delete(m.waiting, a.Body)
		m.pipeline[a.Header.Op] = r
		r.op = a.Header.Op
		if !m.spec.Policy.SealBody {
			body = sealBody(append([]byte(nil), body...), a.Header.Op)
		}
		m.history.minted(m, &a.Header)
		if r.target != nil {
			m.w.seals[a.Header.Checksum] = r.target
		}
	}
	e := entry{header: a.Header, body: body}
	m.history.appended(m, &e)
	e.position = m.n.disk.submit(record{kind: recordPrepare, group: m.group, entry: e, urgent: m.spec.Policy.Synced})
	m.log.push(e)
}

// take ends a body's token.
func (m *member) take(token vsr.Body, what string) []byte {
	body, ok := m.bodies[token]
	if !ok {
		m.w.fail("body tokens", "node %d group %d: body %d is %s, but it is not with the core", m.n.id, m.group, token, what)
	}
	delete(m.bodies, token)
	return body
}

func (m *member) give(body []byte) vsr.Body {
	m.nextBody++
	m.bodies[m.nextBody] = body
	return m.nextBody
}

// committed has the state machine follow the commit point a little later.
func (m *member) committed(op uint64) {
	m.commit = op
	if m.applying {
		return
	}
	m.applying = true
	m.n.later(m.n.random.below(500), func() {
		m.applying = false
		m.apply(m.commit)
		m.step(vsr.Input{Kind: vsr.InputApplied, Op: m.state.op})
	})
}

// apply runs the state machine up to op and answers who waits.
func (m *member) apply(op uint64) {
	m.commit = max(m.commit, op)
	for m.state.op < op {
		e := m.log.at(m.state.op + 1)
		if e == nil {
			m.w.fail("S8", "node %d group %d: op %d is to be applied and not in the log %d..%d", m.n.id, m.group, m.state.op+1, m.log.base.Op, m.log.head())
		}
		m.history.applying(m, e)
		m.state.apply(e)
		m.history.applied(m)
		if r := m.pipeline[e.header.Op]; r != nil {
			delete(m.pipeline, e.header.Op)
			m.history.acknowledged(m, e, r)
			r.answer(answer{op: e.header.Op, view: m.core.View()})
		}
	}
}

// serve sends a range of the log, or says from where on it is held.
func (m *member) serve(s *vsr.Serve) {
	m.w.count("repair served")
	low := s.Low
	end := wire.RepairEndHeader{Nonce: s.Nonce, Group: m.spec.ID}
	end.Cluster, end.View, end.Replica, end.Size = clusterID, m.core.View(), m.self, wire.HeaderSize
	if low <= m.log.base.Op {
		low = m.log.base.Op + 1
		m.w.count("range evicted")
		end.Command, end.Op = wire.CommandRangeEvicted, low
		m.transmit(s.To, sealedEnd(&end))
	}
	top := min(s.Top, m.log.head())
	for op := low; op <= top; op++ {
		e := m.log.at(op)
		h := e.header
		h.Command = wire.CommandRepairPrepare
		if s.View != 0 {
			h.View = s.View
		}
		frame := make([]byte, wire.HeaderSize, wire.HeaderSize+bodySize)
		h.Put(frame)
		m.transmit(s.To, append(frame, e.body...))
	}
	end.Command, end.Op = wire.CommandRepairDone, max(top, low-1)
	m.transmit(s.To, sealedEnd(&end))
}

func sealedEnd(h *wire.RepairEndHeader) []byte {
	frame := make([]byte, wire.HeaderSize)
	h.Put(frame)
	return frame
}

// fetchState copies the state of another member, unless the way to it or it is out of order.
func (m *member) fetchState(t vsr.Transfer) {
	m.w.count("transfer wanted")
	m.transfers++
	number, donor := m.transfers, m.w.nodes[m.spec.Members[t.From]]
	reachable := func() bool {
		return donor.condition == running && donor.members[m.group] != nil && m.w.network.open(m.n.id, donor.id)
	}
	fail := func() {
		if m.transfers == number {
			m.w.count("transfer failed")
			m.step(vsr.Input{Kind: vsr.InputTransferFailed})
		}
	}
	m.n.later(m.n.random.between(millisecond, 20*millisecond), func() {
		if !reachable() || donor.members[m.group].state.op < max(t.Above, m.state.op, 1) {
			fail()
			return
		}
		from := donor.members[m.group]
		base, ok := from.log.header(from.state.op)
		if !ok {
			fail()
			return
		}
		copy := groupLog{base: base, digest: from.state.digest, table: copied(from.state.table), floor: from.log.floor}
		m.n.later(m.n.random.between(millisecond, 60*millisecond), func() {
			if !reachable() || m.state.op > base.Op {
				fail()
				return
			}
			if m.transfers == number {
				m.install(copy)
			}
		})
	})
}

// install replaces the log by a copied state, on disk and in the process at once.
func (m *member) install(l groupLog) {
	m.w.count("transfer installed")
	d := m.n.disk
	l.floor, l.lost = max(l.floor, m.log.floor), m.log.lost
	l.adopted = d.found(m.group).adopted
	d.dropGroup(m.group)
	d.logs[m.group] = l.clone()
	l.adopted = m.log.adopted
	m.log = l
	m.written, m.synced, m.commit = l.base.Op, l.base.Op, l.base.Op
	m.state.op, m.state.digest = l.base.Op, l.digest
	if m.state.table != nil {
		m.state.table = copied(l.table)
	}
	m.history.installed(m)
	m.step(vsr.Input{Kind: vsr.InputInstalled, Prepare: l.base})
}
