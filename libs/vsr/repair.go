package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// repair is the range this member has asked for.
type repair struct {
	active   bool
	peer     uint8
	from, to uint64
	nonce    wire.U128
	refused  uint8 // members in a row that had nothing of it
}

// missing asks for what the log of the view has and this member lacks. With a delay it leaves frames
// that are on their way the time to arrive.
func (r *Replica) missing(delay Tick, out *Output) {
	if !r.fetching() {
		return
	}
	from, to := r.tail.head+1, max(r.goal, r.known)
	if from > to {
		r.repair.active = false
		r.disarm(timerRepair)
		return
	}
	if r.tail.head-r.committed >= maxUnapplied/2 {
		r.armIfNot(timerRepair, repairInterval)
		return
	}
	if low := r.early.lowest(r.tail.head); low != 0 {
		to = min(to, low-1)
	}
	switch {
	case r.repair.active && from <= r.repair.to:
	case delay > 0 && !r.repair.active:
		r.armIfNot(timerRepair, delay)
	default:
		r.fetch(from, min(to, r.tail.head+wire.MaxSuffix), out)
	}
}

// fetching reports whether entries may be appended that others hold: as a backup of the view, or as a
// primary-elect whose vote already names them.
func (r *Replica) fetching() bool {
	if r.transfer || r.halted || r.plan.active || !r.settled() {
		return false
	}
	return r.status == statusNormal && r.leader() != r.group.Self ||
		r.status == statusViewChange && r.election.decided && r.logView == r.view
}

// fetch asks a member for a range, unless that is what was asked already.
func (r *Replica) fetch(from, to uint64, out *Output) {
	if r.transfer || r.repair.active && r.repair.from == from && r.repair.to == to {
		return
	}
	if r.repair.from == 0 {
		r.repair.peer = r.holder(from)
	}
	r.repair.active, r.repair.from, r.repair.to, r.repair.refused = true, from, to, 0
	r.ask(out)
}

func (r *Replica) ask(out *Output) {
	r.repair.nonce = wire.U128{Lo: r.rand ^ r.repair.nonce.Lo + 1, Hi: r.repair.nonce.Hi + 1}
	h := wire.RequestPreparesHeader{
		Preamble: r.preamble(0), Nonce: r.repair.nonce, FromOp: r.repair.from, ToOp: r.repair.to, Group: r.group.ID,
	}
	h.Put(out.send(r.repair.peer, 0)[:])
	r.arm(timerRepair, repairInterval)
}

// holder is the member to ask first: the primary, and for a primary-elect one that offered the op with
// the newest log.
func (r *Replica) holder(op uint64) uint8 {
	if r.leader() != r.group.Self {
		return r.leader()
	}
	best, view := r.next(r.group.Self), uint32(0)
	for i := range r.election.reports {
		d := &r.election.reports[i]
		h, at := d.at(op)
		if d.Member != r.group.Self && h != nil && d.Present.Bit(at) && d.LogView >= view {
			best, view = d.Member, d.LogView
		}
	}
	return best
}

// next is the member after m that is heard, whoever it is when none is.
func (r *Replica) next(m uint8) uint8 {
	for range r.group.Members {
		m = (m + 1) % r.group.Members
		if m != r.group.Self && !r.isDeaf(m) {
			return m
		}
	}
	m = (m + 1) % r.group.Members
	if m == r.group.Self {
		m = (m + 1) % r.group.Members
	}
	return m
}

// repairExpired: what was asked for did not come, or it is time to ask.
func (r *Replica) repairExpired(out *Output) {
	if r.repair.active {
		r.repair.active = false
		r.repair.peer = r.next(r.repair.peer)
	}
	if r.plan.active {
		r.pursue(out)
		return
	}
	r.missing(0, out)
}

// repaired takes a prepare served for repair. It reports whether the body's token was kept.
func (r *Replica) repaired(h *wire.PrepareHeader, body Body, out *Output) bool {
	if r.plan.active {
		if !r.plan.found && h.Op == r.plan.search && r.believes(h, r.plan.headers) && r.foundBelow(h, out) {
			r.pursue(out)
		}
		return false
	}
	if !r.fetching() || h.Op <= r.tail.head || !r.believes(h, r.names) {
		return false
	}
	before := r.tail.head
	kept := r.take(h, body, out)
	if r.tail.head > before && r.repair.active {
		r.arm(timerRepair, repairInterval)
	}
	if r.status == statusNormal {
		r.learn(out)
	}
	r.missing(0, out)
	return kept
}

// believes reports whether h is the view's entry at its op. Repairs carry no session and may be late:
// either the identity is known, or the sender says that the log of this view has it (Serve.View).
func (r *Replica) believes(h *wire.PrepareHeader, names []wire.PrepareHeader) bool {
	if want := named(names, h.Op); want != nil {
		return want.Checksum == h.Checksum
	}
	return h.View == r.view
}

// repairEnd takes RepairDone and RangeEvicted.
func (r *Replica) repairEnd(in *Input, out *Output) {
	var h wire.RepairEndHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	p := &r.repair
	if !p.active || in.From != p.peer || h.Nonce != p.nonce {
		return
	}
	switch {
	case h.Command == wire.CommandRangeEvicted && h.Op > p.from:
		r.startTransfer(h.Op-1, out)
	case h.Command == wire.CommandRangeEvicted:
	case h.Op < p.from && p.refused < r.group.Members-2: // it has nothing of it: another one may
		p.refused++
		p.peer = r.next(p.peer)
		r.ask(out)
	case r.tail.head >= p.to && !r.plan.active:
		p.active = false
		r.missing(0, out)
	}
}

// startTransfer: the log of the asked member begins above the hole. State is fetched instead.
func (r *Replica) startTransfer(above uint64, out *Output) {
	if above <= r.tail.head && !r.plan.active { // with a plan, what is here may not be what the view has
		return
	}
	out.Transfer = Transfer{Wanted: true, From: r.repair.peer, Above: above}
	r.transfer = true
	r.repair.active = false
	r.disarm(timerRepair)
	r.early.drop(^uint64(0), out)
}

// installed replaces log and state by what a transfer brought. Everything up to h is committed, hence
// in the log of this and of every later view.
func (r *Replica) installed(h *wire.PrepareHeader, out *Output) {
	r.transfer = false
	if h.Op <= r.committed || r.halted {
		out.fault(FaultCompletion)
		return
	}
	r.refuseFrom(r.committed+1, wire.CodeTransientNotCommitted, WhyViewChange, out)
	r.tail.begin(h)
	r.held, r.committed, r.applied = h.Op, h.Op, h.Op
	r.known, r.goal = max(r.known, h.Op), max(r.goal, h.Op)
	r.timeFloor = max(r.timeFloor, h.Timestamp)
	r.early.drop(h.Op, out)
	if len(r.names) > 0 && r.names[0].Op <= h.Op {
		r.names = nil
	}
	if r.plan.active {
		r.plan.found, r.plan.match, r.plan.stored = true, h.Op, false
		r.pursue(out)
		return
	}
	if r.status == statusNormal {
		r.drain(out)
		r.learn(out)
	}
	r.begin(out)
	r.missing(0, out)
}

func (r *Replica) transferFailed() {
	if r.transfer {
		r.transfer = false
		r.repair.peer = r.next(r.repair.peer)
		r.armIfNot(timerRepair, repairInterval)
	}
}

// requestPrepares serves a range. A normal member's log is that of its view; any other member vouches
// only for what is committed, and serves the rest to whoever knows its identity.
func (r *Replica) requestPrepares(in *Input, out *Output) {
	var h wire.RequestPreparesHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	top, view := min(h.ToOp, r.tail.head), r.view
	if r.status != statusNormal || !r.settled() {
		if h.FromOp <= r.committed {
			top = min(top, r.committed)
		} else {
			view = 0
		}
	}
	if h.FromOp > top {
		done := wire.RepairEndHeader{Preamble: r.preamble(0), Nonce: h.Nonce, Op: h.FromOp - 1, Group: r.group.ID}
		done.Command = wire.CommandRepairDone
		done.Put(out.send(in.From, 0)[:])
		return
	}
	top = min(top, h.FromOp+wire.MaxSuffix-1)
	out.Serve = append(out.Serve, Serve{To: in.From, Low: h.FromOp, Top: top, Nonce: h.Nonce, View: view})
}
