package simulator

import (
	"math/bits"
	"slices"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// dvcKey names the one vote that a member may cast in a view.
type dvcKey struct {
	view   uint32
	member uint8
}

// seenDVC is what a member stated in a view.
type seenDVC struct {
	dvcKey
	logView uint32
	head    uint64
	flagged bool
	suffix  []wire.PrepareHeader
	nack    wire.U128
}

// statement is what a vote says of an op.
func (d *seenDVC) statement(op uint64) (h *wire.PrepareHeader, nack bool) {
	if op > d.head {
		return nil, true
	}
	i := int(d.head - op)
	if i >= len(d.suffix) {
		return nil, false
	}
	if d.suffix[i].Blank() {
		return nil, d.nack.Bit(i)
	}
	return &d.suffix[i], d.nack.Bit(i)
}

// sent checks a frame that leaves a member against its disk and against what it said before.
func (h *history) sent(m *member, s *vsr.Send, frame []byte) {
	switch s.Header.Command() {
	case wire.CommandPrepare:
		var p wire.PrepareHeader
		if p.Decode(frame) != nil || p.Verify() != nil {
			h.fail(m, "S19", "a prepare is sent that does not decode")
		}
		h.speaks(m, p.View, p.View)
		h.leads(m, p.View)
	case wire.CommandPrepareOk:
		h.sentAck(m, frame)
	case wire.CommandCommit:
		var c wire.CommitHeader
		if c.Decode(frame) != nil || !h.isCommitted(m, c.Commit) {
			h.fail(m, "S3", "a commit point is sent that is above the own one")
		}
		h.speaks(m, c.View, c.View)
		h.leads(m, c.View)
	case wire.CommandStartViewChange:
		var c wire.StartViewChangeHeader
		if c.Decode(frame) != nil {
			h.fail(m, "S9", "a StartViewChange is sent that does not decode")
		}
		h.speaks(m, c.View, 0)
	case wire.CommandDoViewChange:
		h.sentDVC(m, frame, s.Suffix)
	case wire.CommandStartView:
		h.sentSV(m, frame, s.Suffix)
	}
}

// speaks checks that the disk holds the view, and the log view, that a frame names (S9).
func (h *history) speaks(m *member, view, logView uint32) {
	saved := &m.n.disk.votes[h.group]
	if !saved.known && !m.flagged || saved.view < view || saved.logView < logView {
		h.fail(m, "S9", "speaks in view %d/%d, its disk has %d/%d", view, logView, saved.view, saved.logView)
	}
	life := &h.lives[m.n.id]
	life.view, life.logView = max(life.view, view), max(life.logView, logView)
}

// leads checks that nobody else led the view, and notes who does (S6).
func (h *history) leads(m *member, view uint32) {
	if h.solo() {
		return
	}
	if int(view)%len(h.spec.Members) != int(m.self) {
		h.fail(m, "S6", "acts as primary of view %d", view)
	}
	l, ok := h.leaders[view]
	if !ok {
		h.leaders[view] = leader{m.n.id, m.n.life}
		h.started(m, view)
	} else if l.life != m.n.life {
		h.fail(m, "S6", "acts as primary of view %d, which it led in life %d", view, l.life)
	}
}

// sentAck checks a PrepareOk: the op is on disk as the policy asks, with everything below it, at a
// member that can vouch for its log (S10, S15).
func (h *history) sentAck(m *member, frame []byte) {
	var ok wire.PrepareOkHeader
	if err := ok.Decode(frame); err != nil {
		h.fail(m, "S10", "an ack is sent that does not decode: %v", err)
	}
	h.speaks(m, ok.View, ok.View)
	if m.inDoubt() {
		h.fail(m, "S15", "acknowledges op %d with a log in doubt", ok.Op)
	}
	header, known := m.log.header(ok.Op)
	if !known && ok.Op < m.log.base.Op {
		return // left the log since, so it is committed
	}
	if !known || header.Checksum != ok.PrepareChecksum {
		h.fail(m, "S10", "acknowledges op %d, which is not in its log", ok.Op)
	}
	d := m.n.disk
	durable := max(d.handed, d.stable)
	if h.spec.Policy.Synced {
		durable = d.stable
	}
	if e := m.log.at(ok.Op); e != nil && e.position > durable {
		h.fail(m, "S10", "acknowledges op %d before it is durable", ok.Op)
	}
	h.noteAcks(m, ok.View, ok.Op)
}

// noteAcks notes an ack of op: it covers everything below, for a log has no holes and is chained.
func (h *history) noteAcks(m *member, view uint32, op uint64) {
	for ; op > m.log.base.Op; op-- {
		id := m.log.at(op).header.Checksum
		key := vote{place{view, op}, id}
		if h.acks[key]>>m.self&1 == 1 {
			return
		}
		h.acks[key] |= 1 << m.self
		if bits.OnesCount32(h.acks[key]) >= m.quorums().Replication {
			if h.proven[op] != id {
				h.provenIn[op] = view
			}
			h.proven[op] = id
		}
		h.promise(m, promise{op: op, identity: id, view: view})
	}
}

func (h *history) promise(m *member, p promise) {
	list := h.promises[m.n.id]
	at, found := slices.BinarySearchFunc(list, p, func(a, b promise) int { return int(int64(a.op - b.op)) })
	if found {
		list[at] = p
		return
	}
	h.promises[m.n.id] = slices.Insert(list, at, p)
}

// sentDVC checks a vote: on disk, not against an earlier promise, not against another vote (S11, S12,
// S13, S15).
func (h *history) sentDVC(m *member, frame []byte, suffix []wire.PrepareHeader) {
	var f wire.DoViewChangeHeader
	if err := f.Decode(frame); err != nil {
		h.fail(m, "S12", "a DoViewChange is sent that does not decode: %v", err)
	}
	d := &seenDVC{
		dvcKey: dvcKey{f.View, m.self}, logView: f.LogView, head: f.Op, flagged: f.Flags&wire.DVCSuspect != 0,
		suffix: slices.Clone(suffix), nack: f.Nack,
	}
	if f.View > 0 || !d.flagged { // empty members vote for view 0 before they have a vote record
		h.speaks(m, f.View, f.LogView)
	}
	if m.inDoubt() && !d.flagged {
		h.fail(m, "S15", "votes for view %d with a log in doubt", f.View)
	}
	if !d.flagged {
		h.w.count("dvc whole")
		h.checkPromises(m, d)
	} else {
		h.w.count("dvc flagged")
	}
	h.checkStatements(m, d)
}

// checkPromises: a member never nacks an op that it acknowledged and that no later view overruled (S11).
func (h *history) checkPromises(m *member, d *seenDVC) {
	for _, p := range h.promises[m.n.id] {
		header, nack := d.statement(p.op)
		if p.op <= m.log.base.Op {
			continue
		}
		if nack || header != nil && header.Checksum != p.identity {
			h.fail(m, "S11", "nacks op %d in view %d, which it acknowledged in view %d (head %d, log view %d)", p.op, d.view, p.view, d.head, d.logView)
		}
	}
}

// checkStatements compares a vote with the member's own earlier one and with those of the same log view.
func (h *history) checkStatements(m *member, d *seenDVC) {
	if first := h.votes[d.dvcKey]; first != nil && !first.flagged && !d.flagged {
		if op, ok := disagree(first, d, true); ok || first.logView != d.logView {
			h.fail(m, "S12", "contradicts its own vote for view %d at op %d", d.view, op)
		}
	} else if first == nil {
		h.votes[d.dvcKey] = d
		h.byView[d.view] = append(h.byView[d.view], d)
	}
	for _, other := range h.byView[d.view] {
		if op, ok := disagree(other, d, false); ok && other.logView == d.logView && other.member != d.member {
			h.fail(m, "S13", "votes for view %d with log view %d like member %d, and shows another op %d", d.view, d.logView, other.member, op)
		}
	}
}

// disagree finds an op where both show a header and not the same, or with nacks one shows a header where
// the other nacks.
func disagree(a, b *seenDVC, nacks bool) (op uint64, found bool) {
	for i := range a.suffix {
		op := a.head - uint64(i)
		x, nackX := a.statement(op)
		y, nackY := b.statement(op)
		switch {
		case x != nil && y != nil && x.Checksum != y.Checksum:
			return op, true
		case nacks && (x != nil && y == nil && nackY || y != nil && x == nil && nackX):
			return op, true
		}
	}
	return 0, false
}

// sentSV checks the log that a primary announces.
func (h *history) sentSV(m *member, frame []byte, suffix []wire.PrepareHeader) {
	var v wire.StartViewHeader
	if err := v.Decode(frame); err != nil {
		h.fail(m, "S6", "a StartView is sent that does not decode: %v", err)
	}
	h.speaks(m, v.View, v.View)
	h.leads(m, v.View)
	if v.Op > m.held() || !h.isCommitted(m, v.Commit) {
		h.fail(m, "S4", "announces head %d and commit %d, holds up to %d, commit %d, %d are committed", v.Op, v.Commit, m.held(), m.core.Commit(), len(h.ops))
	}
	if v.Op > 0 && len(suffix) == 0 {
		h.fail(m, "S4", "announces a view without headers")
	}
	for i := range suffix {
		if own, ok := m.log.header(suffix[i].Op); !ok || own.Checksum != suffix[i].Checksum {
			h.fail(m, "S4", "announces op %d and does not hold it", suffix[i].Op)
		}
	}
}

// isCommitted reports whether an op, and so everything below it, is committed: it is in the history, or a
// quorum acknowledged it and no member has noticed.
func (h *history) isCommitted(m *member, op uint64) bool {
	for at := uint64(len(h.ops)) + 1; at <= op; at++ {
		if header, ok := m.log.header(at); !ok || h.proven[at] != header.Checksum {
			return false
		}
	}
	return true
}

// started checks a member that begins a view: it holds every op that was committed in this view or an earlier one
// (S4). A late one may begin a view that the others have left, in which nothing is committed any more.
func (h *history) started(m *member, view uint32) {
	h.w.count("view started")
	if h.w.trace.loud() {
		h.w.trace.say("node %d group %d leads view %d, head %d commit %d", m.n.id, h.group, view, m.log.head(), m.core.Commit())
	}
	h.completed(m)
	h.acceptLoss(m)
	for op := m.log.base.Op + 1; op <= uint64(len(h.ops)); op++ {
		if h.provenIn[op] <= view && !m.log.has(op, h.ops[op-1].identity) {
			h.fail(m, "S4", "leads view %d without the committed op %d of %d", view, op, len(h.ops))
		}
	}
}

// adoptedHeaders is called when a member takes on a view's log without its bodies.
func (h *history) adoptedHeaders(m *member, a *adoption) {
	for i := range a.headers {
		if a.headers[i].Op != a.headers[0].Op-uint64(i) {
			h.fail(m, "H4", "adopts op %d at place %d below op %d", a.headers[i].Op, i, a.headers[0].Op)
		}
	}
	if n := len(a.headers); n > 0 && a.headers[n-1].Op > max(m.log.head(), uint64(len(h.ops)))+1 {
		h.fail(m, "H4", "adopts headers down to op %d, its log ends at %d and %d are committed", a.headers[n-1].Op, m.log.head(), len(h.ops))
	}
	if len(a.headers) > 0 {
		h.w.count("adoption of headers")
	}
}

// castsVote checks a vote before it is saved: with a new log view it says that the own log is that of the view, so
// nothing of it may be lost by a crash any more.
func (h *history) castsVote(m *member, v *vsr.Vote) {
	if v.LogView > m.n.disk.votes[h.group].logView && m.held() < m.log.head() {
		h.fail(m, "H5", "votes with log view %d and holds %d ops of %d", v.LogView, m.held(), m.log.head())
	}
}

// voteSaved is called when a vote becomes durable. A member that took on the log of a newer view is
// bound by that log, and no more by acks it gave in older views to ops that are not in it.
func (h *history) voteSaved(node int, before savedVote, v vsr.Vote) {
	n := h.w.nodes[node]
	if before.known && (v.View < before.view || v.LogView < before.logView) {
		h.w.fail("S7", "node %d group %x: vote %d/%d is saved after %d/%d", node, h.spec.ID, v.View, v.LogView, before.view, before.logView)
	}
	m := n.members[h.group]
	if v.LogView <= before.logView || m == nil {
		return
	}
	above := m.log.above(v.LogView)
	h.promises[node] = slices.DeleteFunc(h.promises[node], func(p promise) bool {
		named := slices.ContainsFunc(above, func(a wire.PrepareHeader) bool { return a.Checksum == p.identity })
		return p.view < v.LogView && !named && !m.log.has(p.op, p.identity)
	})
}

// damaged forgets nothing: the headers stay known, so no promise may be broken.
func (h *history) damaged(*member, uint64) { h.w.lookForLoss() }

// received notes what the core was given.
func (h *history) received(m *member, from int, header *wire.Header, suffix []wire.PrepareHeader) {
	h.w.count("received " + header.Command().String())
}
