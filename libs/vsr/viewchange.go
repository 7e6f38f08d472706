package vsr

import (
	"math/bits"

	"github.com/whippet-mq/whippet/libs/wire"
)

// election is what a member knows of the view change it is in.
type election struct {
	heard    uint32   // members that proposed this view
	voted    bool     // own DoViewChange sent
	own      Report   // what it said: a repeat says the same
	reports  []Report // candidate: votes received, the own one included
	reported uint32   // their members
	decided  bool     // candidate: the log of the view is chosen
	stuck    bool     // candidate: all have reported, and no log is proven
	rounds   uint8    // views tried since one was normal
	deserts  bool     // a view was left for this one that left led
	left     uint8
}

// maxViewJump bounds how far a proposal may run ahead: a number beyond it is not from a correct member.
const maxViewJump = 1 << 24

// elect leaves the view for the next one that a living member leads.
func (r *Replica) elect(out *Output) {
	view := max(r.view+1, r.rejoin.seen)
	for range r.group.Members - 1 {
		if !r.isDeaf(r.leads(view)) {
			break
		}
		view++
	}
	r.enter(view, out)
}

// enter starts the change to view, which is higher than the current one. Nothing of it is sent before
// the vote is saved. A request that waits has an open outcome: the next view may commit it.
func (r *Replica) enter(view uint32, out *Output) {
	deserts, left := r.status == statusNormal && r.leader() != r.group.Self && !r.rejoin.released, r.leader()
	r.refuseFrom(r.committed+1, wire.CodeTransientNotCommitted, WhyViewChange, out)
	r.leave(view, out)
	r.election.deserts, r.election.left = deserts, left
	r.election.rounds = min(r.election.rounds+1, statusBackoff+1)
	r.armStatus()
	r.save(out)
}

// leave ends everything that belonged to the view.
func (r *Replica) leave(view uint32, out *Output) {
	r.view, r.status = view, statusViewChange
	r.rejoin.gone, r.rejoin.released = false, false
	r.election = election{rounds: r.election.rounds}
	r.plan = plan{}
	r.repair, r.questions, r.okSent = repair{}, nil, 0
	r.early.drop(^uint64(0), out)
	r.timers = [timerCount]Tick{}
}

func (r *Replica) armStatus() {
	r.arm(timerStatus, statusInterval<<(r.election.rounds-1)+r.jitter(statusJitter))
}

// save asks for the vote to be made durable. One vote is on its way at a time; the next one follows.
func (r *Replica) save(out *Output) {
	want := Vote{
		Save: true, View: r.view, LogView: r.logView, Whole: r.state == Whole, Deserts: r.election.deserts && r.logView < r.view, Deserted: r.election.left,
	}
	if r.saving || r.halted || want.View == r.saved.View && want.LogView == r.saved.LogView && want.Whole == r.saved.Whole {
		return
	}
	r.asked, r.saving = want, true
	out.Vote = want
}

// voteSaved goes on with what the vote had to be saved for.
func (r *Replica) voteSaved(out *Output) {
	if !r.saving {
		out.fault(FaultCompletion)
		return
	}
	r.saved, r.saving = r.asked, false
	if r.halted {
		return
	}
	r.save(out)
	switch {
	case !r.settled():
	case r.plan.active:
		r.pursue(out)
	case r.status == statusNormal:
		r.learn(out)
	case r.status == statusViewChange && r.election.decided:
		r.begin(out)
	case r.status == statusViewChange:
		r.propose(out)
	}
}

// propose sends StartViewChange and repeats it.
func (r *Replica) propose(out *Output) {
	h := wire.StartViewChangeHeader{Preamble: r.preamble(r.view), Group: r.group.ID}
	h.Put(out.send(Everyone, 0)[:])
	r.arm(timerVote, voteInterval)
	r.vote(out)
}

// vote sends the own DoViewChange once enough others want the view too.
func (r *Replica) vote(out *Output) {
	enough := max(1, (int(r.group.Members)-1)/2)
	if r.election.voted || r.election.decided || !r.settled() || bits.OnesCount32(r.election.heard) < enough {
		return
	}
	r.election.voted = true
	r.recordOwn()
	r.sendVote(out)
	r.decide(out)
}

// recordOwn pins what this member says of its log in this view. A candidate counts it.
func (r *Replica) recordOwn() {
	if r.election.own.Suffix != nil || r.election.reported>>r.group.Self&1 == 1 {
		return
	}
	r.election.own = r.report()
	if r.leader() == r.group.Self {
		r.record(r.election.own)
	}
}

func (r *Replica) record(d Report) {
	r.election.reports = append(r.election.reports, d)
	r.election.reported |= 1 << d.Member
}

func (r *Replica) sendVote(out *Output) {
	d := &r.election.own
	h := wire.DoViewChangeHeader{
		Preamble: r.preamble(r.view), Op: d.Head, Commit: d.Commit, Group: r.group.ID, LogView: d.LogView,
		Nack: d.Nack, Present: d.Present,
	}
	if d.Suspect {
		h.Flags = wire.DVCSuspect
	}
	h.Size, h.ChecksumBody = suffixSize(d.Suffix)
	h.Put(out.send(Everyone, 0)[:])
	out.Send[len(out.Send)-1].Suffix = d.Suffix
}

// repeatVotes is the retransmission of a view change.
func (r *Replica) repeatVotes(out *Output) {
	if r.status != statusViewChange || r.plan.active || !r.settled() || r.election.decided {
		return
	}
	if r.election.voted {
		r.sendVote(out)
	}
	if r.state == Empty { // only a fresh answer is adopted
		r.sendProbe(Everyone, out)
	}
	r.propose(out)
}

// statusExpired gives up a view that does not begin, unless too few members want any: then only time
// or the death of its leader helps, and higher numbers would help nobody.
func (r *Replica) statusExpired(out *Output) {
	switch {
	case r.status != statusViewChange:
	case r.election.voted || r.election.decided || r.isDeaf(r.leader()):
		r.elect(out)
	default:
		r.armStatus()
	}
}

// startViewChange takes a proposal.
func (r *Replica) startViewChange(in *Input, out *Output) {
	var h wire.StartViewChangeHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	if !r.invited(h.View, in.From, out) {
		return
	}
	r.election.heard |= 1 << in.From
	r.vote(out)
}

// doViewChange takes a vote. Members that are not the candidate learn the view from it.
func (r *Replica) doViewChange(in *Input, out *Output) {
	var h wire.DoViewChangeHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	if !follows(in.Suffix, h.Op, h.Size) {
		out.fault(FaultFrame)
		return
	}
	first := h.View == 0 && r.view == 0 && r.state == Empty // rule D11
	if !first && !r.invited(h.View, in.From, out) {
		return
	}
	if r.leader() != r.group.Self || r.election.decided || r.election.reported>>in.From&1 == 1 || !first && !r.settled() {
		return
	}
	if first && (h.Flags&wire.DVCSuspect == 0 || h.Op != 0 || r.startedElsewhere()) {
		return
	}
	r.recordOwn()
	r.record(Report{
		Member: in.From, LogView: h.LogView, Head: h.Op, Commit: h.Commit, Suspect: h.Flags&wire.DVCSuspect != 0,
		Nack: h.Nack, Present: h.Present, Suffix: append([]wire.PrepareHeader(nil), in.Suffix...),
	})
	r.decide(out)
}

// invited reports whether a proposal of view by a member is for the view change this one is in, or
// joins it. Who is behind is told what the view is, by whoever leads it.
func (r *Replica) invited(view uint32, from uint8, out *Output) bool {
	switch {
	case view < r.view || view == r.view && r.status == statusNormal:
		if r.acting() {
			r.sendStartView(from, wire.U128{}, out)
		}
		return false
	case view == r.view:
		if from == r.leader() && r.status == statusRecovering {
			r.rejoin.gone = true // it is not normal in the view in which this member was
		}
		return r.status == statusViewChange && !r.plan.active
	case view-r.view > maxViewJump:
		out.fault(FaultFrame)
		return false
	}
	r.rejoin.seen = max(r.rejoin.seen, view)
	if from == r.leader() {
		r.rejoin.gone, r.rejoin.released = true, true // it leaves its own view
	}
	if r.acting() {
		r.challenged()
		return false
	}
	if !r.mayLeave() {
		return false
	}
	r.enter(view, out)
	return true
}

// mayLeave reports whether this member may take part in a change away from its view. While the leader
// is heard it keeps its promise to it (design-arguments 14), and so it does in the first moments of a
// life, for the promises of the last one.
func (r *Replica) mayLeave() bool {
	switch {
	case r.halted || r.group.Members == 1 || r.now < r.rejoin.started+lifeBeforeVote:
		return false
	case r.rejoin.gone || r.isDeaf(r.leader()) || r.leader() == r.group.Self:
		return true
	case r.status == statusViewChange:
		return !r.plan.active
	case r.status == statusRecovering:
		return r.rejoin.probes >= probesBeforeVote
	}
	return false
}

// decide chooses the log of the view as soon as the votes suffice.
func (r *Replica) decide(out *Output) {
	if r.leader() != r.group.Self || r.election.decided || r.election.reported>>r.group.Self&1 == 0 {
		return
	}
	outcome := Merge(r.election.reports, MergeRules{
		Members: int(r.group.Members), Quorums: r.quorums, Lossy: r.lossy || !r.group.Policy.Synced,
	})
	r.election.stuck = outcome.Decision == Deadlocked
	if outcome.Decision != Decided {
		return
	}
	r.election.decided = true
	out.Lost, out.Salvaged = outcome.Lost, outcome.Salvaged
	r.disarm(timerVote)
	r.disarm(timerProbe)
	r.status = statusViewChange
	r.adopt(plan{view: r.view, head: outcome.Head, commit: outcome.Commit, headers: outcome.Headers}, out)
}
