package simulator

import (
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

type identity = wire.U128

// committedOp is one op of the one true history of a group.
type committedOp struct {
	identity identity
	body     uint64 // hash, once somebody applied it
	digest   uint64 // of the state after it
	applied  bool
	answered bool // a client was told
}

// leader is a process that led a view.
type leader struct {
	node int
	life uint64
}

type place struct {
	view uint32
	op   uint64
}

type vote struct {
	place
	identity identity
}

// promise is an op that a member acknowledged, and the view it did that in.
type promise struct {
	op       uint64
	identity identity
	view     uint32
}

// history is the reference model of one group: what was minted, acknowledged, committed and answered,
// by whom. It reads the state of members directly and is told of every effect.
type history struct {
	w     *World
	group int
	spec  *GroupConfig

	ops            []committedOp // op i+1 at i
	gone           uint64        // oldest committed op that no node holds any more, 0 = none
	lossReported   bool          // since gone
	acknowledgedTo uint64        // highest op whose client was answered
	sealed         uint64        // op of the seal behind which a successor goes on, 0: there is none

	leaders  map[uint32]leader
	mints    map[place]identity
	losses   int                 // how often the members gave ops up
	acks     map[vote]uint32     // members that acknowledged an op in a view
	proven   map[uint64]identity // by op: what a quorum acknowledged in one view
	provenIn map[uint64]uint32   // and the view of those acks
	promises [][]promise         // by node: in op order, acknowledged in any life and not overruled
	votes    map[dvcKey]*seenDVC
	byView   map[uint32][]*seenDVC
	lives    []lifetime // by node
}

// lifetime is what was seen of one member; the numbers of the process start again with it.
type lifetime struct {
	view, logView uint32 // highest ever said
	commit        uint64 // in this process
	checked       uint64 // committed ops compared with the history in this process
}

func newHistory(w *World, group int) *history {
	return &history{
		w: w, group: group, spec: &w.config.Groups[group],
		leaders: map[uint32]leader{}, mints: map[place]identity{}, acks: map[vote]uint32{}, proven: map[uint64]identity{}, provenIn: map[uint64]uint32{},
		promises: make([][]promise, w.config.Nodes), votes: map[dvcKey]*seenDVC{}, byView: map[uint32][]*seenDVC{},
		lives: make([]lifetime, w.config.Nodes),
	}
}

func (h *history) solo() bool { return len(h.spec.Members) == 1 }

func (h *history) fail(m *member, rule, format string, args ...any) {
	args = append([]any{m.n.id, h.spec.ID, m.self}, args...)
	h.w.fail(rule, "node %d group %x member %d: "+format, args...)
}

// booted compares what a start found with what the member had said before.
func (h *history) booted(m *member, b *vsr.Boot) {
	life := &h.lives[m.n.id]
	if b.View < life.view || b.LogView < life.logView {
		h.fail(m, "S7", "starts in view %d/%d after it spoke in %d/%d", b.View, b.LogView, life.view, life.logView)
	}
	life.commit, life.checked = 0, m.log.base.Op
	if b.State == vsr.Born && m.self == 0 {
		h.leaders[0] = leader{m.n.id, m.n.life} // a new group is in view 0, with nothing to start
	}
	h.completed(m)
	if h.solo() {
		h.lookForLoss()
		h.acceptLoss(m)
	}
	h.checkCommit(m)
}

// wiped forgets what a lost disk had promised.
func (h *history) wiped(n *node) {
	h.promises[n.id] = nil
	h.lives[n.id] = lifetime{}
}

// check compares a member with the history after a step.
func (h *history) check(m *member) {
	life := &h.lives[m.n.id]
	view, logView, commit, head := m.core.View(), m.core.LogView(), m.core.Commit(), m.core.Head()
	switch {
	case view < life.view || logView < life.logView || commit < life.commit:
		h.fail(m, "S7", "view %d/%d commit %d after %d/%d and %d", view, logView, commit, life.view, life.logView, life.commit)
	case logView > view || commit > head.Op || m.core.Applied() > commit:
		h.fail(m, "S8", "view %d/%d head %d commit %d applied %d", view, logView, head.Op, commit, m.core.Applied())
	case head.Op != m.log.head():
		h.fail(m, "H2", "the core's head is %d, the log ends at %d", head.Op, m.log.head())
	case head.Op > 0 && !head.Blank() && head.Checksum != m.log.parent():
		h.fail(m, "H2", "the core's head is not the last entry of the log")
	case len(m.bodies) > 2*vsr.MaxPipeline:
		h.fail(m, "S35", "the core holds %d bodies", len(m.bodies))
	case head.Op > max(commit, uint64(len(h.ops)))+vsr.MaxPipeline:
		h.fail(m, "S35", "%d ops above the commit point", head.Op-commit)
	}
	life.commit = commit
	h.checkCommit(m)
}

// checkCommit compares every op that the member counts as committed with the history, which only an
// acting primary may make longer (S1, S2, S3).
func (h *history) checkCommit(m *member) {
	life := &h.lives[m.n.id]
	commit := m.core.Commit()
	for op := life.checked + 1; op <= commit; op++ {
		header, ok := m.log.header(op)
		if !ok {
			h.fail(m, "S8", "commit %d is above the log", commit)
		}
		switch {
		case op <= uint64(len(h.ops)):
			if h.ops[op-1].identity != header.Checksum {
				h.fail(m, "S1", "op %d is committed here with identity %x, elsewhere with %x", op, header.Checksum.Lo, h.ops[op-1].identity.Lo)
			}
		default:
			h.checkQuorum(m, op, &header)
			h.ops = append(h.ops, committedOp{identity: header.Checksum})
			h.w.trace.mark('c', uint64(h.group), op, header.Checksum.Lo)
		}
		life.checked = op
	}
}

// checkQuorum has a new committed op proven by the acks of one view.
func (h *history) checkQuorum(m *member, op uint64, header *wire.PrepareHeader) {
	if op > 1 {
		if parent := h.ops[op-2].identity; header.Parent != parent {
			h.fail(m, "S2", "op %d does not name op %d as its parent", op, op-1)
		}
	}
	if h.proven[op] != header.Checksum {
		h.fail(m, "S3", "op %d counts as committed in view %d with the acks %b", op, m.core.View(), h.acks[vote{place{m.core.View(), op}, header.Checksum}])
	}
}

// minted notes a prepare that a primary made.
func (h *history) minted(m *member, p *wire.PrepareHeader) {
	if !m.core.Primary() || p.View != m.core.View() {
		h.fail(m, "S16", "op %d of view %d is minted in view %d, primary %v", p.Op, p.View, m.core.View(), m.core.Primary())
	}
	if l, ok := h.leaders[p.View]; !h.solo() && (ok && l != leader{m.n.id, m.n.life}) {
		h.fail(m, "S6", "mints in view %d that node %d led in life %d", p.View, l.node, l.life)
	}
	at := place{p.View, p.Op}
	if other, ok := h.mints[at]; ok && other != p.Checksum && !h.solo() {
		h.fail(m, "N2", "two prepares for op %d of view %d", p.Op, p.View)
	}
	h.mints[at] = p.Checksum
}

// appended checks an entry before it enters the log.
func (h *history) appended(m *member, e *entry) {
	p := &e.header
	last, _ := m.log.header(m.log.head())
	switch {
	case p.Op != m.log.head()+1:
		h.fail(m, "H3", "op %d is appended to a log that ends at %d", p.Op, m.log.head())
	case p.Verify() != nil || p.Command != wire.CommandPrepare:
		h.fail(m, "S19", "op %d is appended and its identity is not its own", p.Op)
	case p.Group != h.spec.ID || p.Cluster != clusterID:
		h.fail(m, "S36", "op %d of group %x is appended", p.Op, p.Group)
	case last.Op > 0 && p.Parent != last.Checksum:
		h.fail(m, "S2", "op %d is appended behind an op that is not its parent", p.Op)
	case last.Operation == wire.OpSealPartition || h.sealed != 0 && p.Op > h.sealed:
		h.fail(m, "M3", "op %d is appended behind the seal", p.Op)
	case p.Timestamp <= last.Timestamp:
		h.fail(m, "S18", "op %d of time %d is appended behind time %d", p.Op, p.Timestamp, last.Timestamp)
	}
	h.checkBody(m, e)
}

func (h *history) checkBody(m *member, e *entry) {
	if h.spec.Policy.SealBody {
		if e.header.ChecksumBody != wire.SealBody(e.body) {
			h.fail(m, "S27", "op %d is appended with another body", e.header.Op)
		}
		return
	}
	if stamp, ok := stampOf(e.body); !ok || stamp != e.header.Op {
		h.fail(m, "S27", "op %d is appended with a body stamped %d, intact %v", e.header.Op, stamp, ok)
	}
}

// completed is called before the core learns that more of its log is durable. What a primary holds
// counts as its ack.
func (h *history) completed(m *member) {
	if view := m.core.View(); h.solo() || h.leaders[view] == (leader{m.n.id, m.n.life}) {
		h.noteAcks(m, view, m.held())
	}
}

// applying checks an op before the state machine sees it.
func (h *history) applying(m *member, e *entry) {
	op := e.header.Op
	if op > uint64(len(h.ops)) || h.ops[op-1].identity != e.header.Checksum {
		h.fail(m, "S1", "op %d is applied and not the committed one", op)
	}
	if m.state.table != nil && e.header.Request <= m.state.table[e.header.Client] {
		h.fail(m, "S32", "op %d applies request %d of client %x again", op, e.header.Request, e.header.Client.Lo)
	}
	c, body := &h.ops[op-1], wire.Hash64(e.body)
	if c.applied && c.body != body {
		h.fail(m, "S22", "op %d has another body here", op)
	}
	c.body = body
}

// applied compares the state with that of the others at the same op.
func (h *history) applied(m *member) {
	c := &h.ops[m.state.op-1]
	if c.applied && c.digest != m.state.digest {
		h.fail(m, "S20", "the state after op %d is another", m.state.op)
	}
	c.applied, c.digest = true, m.state.digest
}

// installed compares a copied state with the history.
func (h *history) installed(m *member) {
	if c := &h.ops[m.state.op-1]; c.identity != m.log.base.Checksum || c.digest != m.state.digest {
		h.fail(m, "S21", "the state installed at op %d is another", m.state.op)
	}
	h.lives[m.n.id].checked = m.state.op
	h.w.lookForLoss()
}

// acknowledged is called when a client is told that its write is committed.
func (h *history) acknowledged(m *member, e *entry, r *request) {
	op := e.header.Op
	if h.sealed != 0 && op > h.sealed {
		h.fail(m, "M3", "client is told op %d of a group that is sealed at op %d", op, h.sealed)
	}
	if r.value != valueOf(e.body) {
		h.fail(m, "S33", "client is told op %d, which holds the value %d and not %d", op, valueOf(e.body), r.value)
	}
	h.ops[op-1].answered = true
	h.acknowledgedTo = max(h.acknowledgedTo, op)
}

// read checks an answer to a reader: a prefix of the history, and as the metadata lease promises not
// older than the request.
func (h *history) read(m *member, r *request) {
	op := m.state.op
	if op > uint64(len(h.ops)) || op > 0 && h.ops[op-1].applied && h.ops[op-1].digest != m.state.digest {
		h.fail(m, "S24", "a read shows op %d, which is not committed", op)
	}
	if h.spec.metadata() && op < r.floor {
		h.fail(m, "N7", "a read of the metadata shows op %d, op %d was acknowledged before it began", op, r.floor)
	}
	if op < r.shown && r.losses == h.losses {
		h.fail(m, "N7", "a read shows op %d, its front-door had shown op %d before it began", op, r.shown)
	}
}
