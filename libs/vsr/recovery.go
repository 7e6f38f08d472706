package vsr

import (
	"math/bits"

	"github.com/whippet-mq/whippet/libs/wire"
)

// rejoin is what a member knows of itself and of the others outside a view: how it came up, and who
// disagrees about the view.
type rejoin struct {
	started     Tick      // of this process
	bootView    uint32    // the highest view an earlier life may have acted in
	incarnation wire.U128 // of this life, asked with and echoed
	probes      uint8     // unanswered so far
	unanswered  uint8     // questions for news

	gone       bool   // the leader of the view said that it does not lead it
	seen       uint32 // highest view a member proposed
	challenged Tick   // primary: a member last wanted a newer view
	corrected  Tick   // last StartView to a member that is behind
	asked      Tick   // last question to a member that is ahead

	aimed bool // aim is set
	aim   uint64

	peers    []uint32 // views the members reported
	reported uint32
}

// Counts of unanswered questions.
const (
	probesBeforeElection = 2
	probesBeforeVote     = 12 // the leader is heard and answers nothing
	newsBeforeElection   = 3
)

// settle notes that the view has begun here. With fresh, a log that reaches head has everything this
// member acknowledged in any life.
func (j *rejoin) settle(head uint64, fresh bool) {
	j.gone, j.probes, j.unanswered, j.challenged = false, 0, 0, 0
	if fresh {
		j.target(head)
	}
}

func (j *rejoin) target(head uint64) {
	if !j.aimed {
		j.aimed, j.aim = true, head
	}
}

// restart sets up a member that comes back: it asks for the view before it does anything else.
func (r *Replica) restart(b Boot) {
	r.status = statusRecovering
	r.doubt = b.Lost
	r.rejoin = rejoin{started: b.Started, bootView: b.View}
	if r.group.Policy.Incarnation {
		r.rejoin.incarnation = b.Incarnation
	}
	if b.AdoptView > b.LogView { // the crash fell between the adoption and its vote: the log is that of the view
		r.logView = b.AdoptView
		r.view = max(r.view, b.AdoptView)
	}
	if b.AdoptView == r.logView {
		for i := range b.Adopted {
			if b.Adopted[i].Op > b.Head {
				r.names = append(r.names, b.Adopted[i])
			}
		}
	}
	if n := len(r.names); n > 0 && r.names[n-1].Op > b.Head+1 {
		r.known = max(r.known, r.names[n-1].Op) // a view names everything from its commit point on
	}
	r.timers[timerProbe] = 1
}

// probe asks everyone for the view, and elects when the answer will not come.
func (r *Replica) probe(out *Output) {
	switch {
	case r.status == statusRecovering && r.mayElect():
		r.elect(out)
	case r.status == statusRecovering:
		r.rejoin.probes = min(r.rejoin.probes+1, probesBeforeVote)
		r.sendProbe(Everyone, out)
		if r.state == Empty && r.view == 0 {
			r.election.own = r.report()
			r.sendVote(out)
		}
		r.arm(timerProbe, probeInterval)
		if end := r.rejoin.started + lifeBeforeVote; r.rejoin.probes >= probesBeforeElection && end > r.now {
			r.timers[timerProbe] = min(r.timers[timerProbe], end)
		}
	case r.status == statusNormal && r.state != Whole && !r.rejoin.aimed:
		r.sendProbe(r.leader(), out)
		r.arm(timerProbe, probeInterval)
	}
}

// mayElect reports whether a recovering member may propose a view. An empty one does not: a group that
// was never started has nothing to change (rule D11), and in another the others decide.
func (r *Replica) mayElect() bool {
	return r.rejoin.probes >= probesBeforeElection && r.state != Empty && r.mayLeave()
}

// sendProbe sends RequestStartView. It needs no vote: it says which view is on stable storage.
func (r *Replica) sendProbe(to uint8, out *Output) {
	if r.rejoin.incarnation.IsZero() && !r.group.Policy.Mixed {
		r.rejoin.incarnation = wire.U128{Lo: r.rand | 1, Hi: uint64(r.now)}
	}
	h := wire.RequestStartViewHeader{Preamble: r.preamble(r.saved.View), Group: r.group.ID, Incarnation: r.rejoin.incarnation}
	h.Put(out.send(to, 0)[:])
}

// requestStartView answers as the acting primary. From the leader of the own view it says that the
// leader has lost its role, by a restart or on purpose.
func (r *Replica) requestStartView(in *Input, out *Output) {
	var h wire.RequestStartViewHeader
	if err := h.Decode(in.Header[:]); err != nil || !r.fromPeer(&h.Preamble, in, out) {
		out.fault(FaultFrame)
		return
	}
	if h.View > r.view && h.View-r.view <= maxViewJump {
		r.rejoin.seen = max(r.rejoin.seen, h.View)
	}
	switch {
	case r.acting() && h.View > r.view:
		r.challenged()
	case r.acting():
		r.question(in.From, h.Incarnation, out)
	case in.From == r.leader() && h.View >= r.view:
		r.rejoin.gone = true
		if r.status != statusRecovering {
			r.desert(out)
		}
	}
}

// question is a RequestStartView that waits until the primary holds what it had appended when it came.
type question struct {
	from        uint8
	head        uint64
	incarnation wire.U128
}

// question answers a member that asks for the view. It may have lost what it acknowledged: its
// acknowledgements do not count any more, it repeats what still holds; and the answer names everything
// up to the head, which is only done when it is held here too.
func (r *Replica) question(from uint8, incarnation wire.U128, out *Output) {
	for op := r.known + 1; op <= r.tail.head; op++ {
		r.tail.at(op).acks &^= 1 << from
	}
	if r.held >= r.tail.head {
		r.sendStartView(from, incarnation, out)
		return
	}
	for i := range r.questions {
		if q := &r.questions[i]; q.from == from {
			if q.incarnation != incarnation {
				q.head, q.incarnation = r.tail.head, incarnation
			}
			return
		}
	}
	r.questions = append(r.questions, question{from: from, head: r.tail.head, incarnation: incarnation})
}

// answer takes up the questions that waited for what is held now.
func (r *Replica) answer(out *Output) {
	waiting := r.questions[:0]
	for _, q := range r.questions {
		if q.head > r.held {
			waiting = append(waiting, q)
		} else {
			r.sendStartView(q.from, q.incarnation, out)
		}
	}
	if r.questions = waiting; len(waiting) == 0 {
		r.questions = nil
	}
}

// desert leaves a view whose leader is gone, or will as soon as it may.
func (r *Replica) desert(out *Output) {
	switch end := r.rejoin.started + lifeBeforeVote; {
	case r.mayLeave():
		r.elect(out)
	case r.now < end:
		r.timers[timerNews] = end
	}
}

// askView asks a member that speaks of a newer view for it.
func (r *Replica) askView(of uint8, out *Output) {
	if r.rejoin.asked == 0 || r.now >= r.rejoin.asked+correctInterval {
		r.rejoin.asked = r.now
		r.sendProbe(of, out)
	}
}

// newsExpired: an uncommitted tail, and the primary says nothing.
func (r *Replica) newsExpired(out *Output) {
	switch {
	case r.status == statusRecovering || r.leader() == r.group.Self:
	case r.rejoin.gone || r.isDeaf(r.leader()):
		r.desert(out)
	case r.status != statusNormal:
	case r.tail.head <= r.known && r.goal <= r.tail.head:
	case r.rejoin.unanswered >= newsBeforeElection:
		r.rejoin.gone = true
		r.desert(out)
	default:
		r.rejoin.unanswered++
		r.sendProbe(r.leader(), out)
		r.arm(timerNews, newsInterval)
	}
}

// fresh reports whether a StartView names everything this member ever acknowledged: it answers a
// question of this life, or begins a view in which no earlier life took part.
func (r *Replica) fresh(h *wire.StartViewHeader) bool {
	if !h.Incarnation.IsZero() && h.Incarnation == r.rejoin.incarnation {
		return true
	}
	return r.state == Suspect && h.View > r.rejoin.bootView
}

// mayJoin reports whether a StartView is to be adopted. An empty member has lost its votes too: it
// takes only a fresh answer of a view that enough others are not ahead of (rule D9).
func (r *Replica) mayJoin(h *wire.StartViewHeader) bool {
	if r.state != Empty {
		return true
	}
	behind := 0
	for m := range r.rejoin.peers {
		if r.rejoin.reported>>m&1 == 1 && r.rejoin.peers[m] <= h.View {
			behind++
		}
	}
	return r.fresh(h) && behind >= r.quorums.Replication
}

// mend makes a suspect or empty member whole once it holds the log that a fresh StartView named.
func (r *Replica) mend(out *Output) {
	switch {
	case r.state == Whole || r.status != statusNormal:
	case !r.rejoin.aimed:
		r.armIfNot(timerProbe, probeInterval)
	case r.held >= r.rejoin.aim:
		r.state = Whole
		r.save(out)
	}
}

// liveness takes what the node-level detector says.
func (r *Replica) liveness(in *Input, out *Output) {
	if in.From >= r.group.Members && (in.Kind == InputAlive || in.Kind == InputDead || in.Kind == InputPeerView) {
		out.fault(FaultSender)
		return
	}
	switch in.Kind {
	case InputAlive:
		r.deaf &^= 1 << in.From
		if r.acting() && in.From != r.group.Self {
			r.sendCommit(in.From, out)
		}
	case InputDead:
		r.deaf |= 1 << in.From
		if in.From == r.leader() && in.From != r.group.Self && r.status != statusRecovering && !r.halted {
			r.desert(out)
		}
	case InputIsolated:
		r.isolated = true
	case InputReached:
		r.isolated = false
		if r.acting() {
			r.sendCommit(Everyone, out)
		}
	case InputPeerView:
		r.peerView(in.From, uint32(min(in.Op, 1<<32-1)))
	case InputAcceptLoss:
		r.lossy = true
	case InputHandOver:
		if r.acting() && r.othersSuffice() && r.now >= r.rejoin.started+lifeBeforeVote {
			r.handOver(out)
		}
	}
}

func (r *Replica) peerView(m uint8, view uint32) {
	if r.state != Empty || m == r.group.Self {
		return
	}
	if r.rejoin.peers == nil {
		r.rejoin.peers = make([]uint32, r.group.Members)
	}
	r.rejoin.peers[m] = view
	r.rejoin.reported |= 1 << m
}

func (r *Replica) isDeaf(m uint8) bool { return r.deaf>>m&1 == 1 && m != r.group.Self }

// othersSuffice reports whether enough members are heard for a view change.
func (r *Replica) othersSuffice() bool {
	others := r.deaf &^ (1 << r.group.Self)
	return int(r.group.Members)-bits.OnesCount32(others) >= r.quorums.ViewChange
}

// handOver leaves the own view on purpose. The members take the question as the leader's word that it
// does not lead any more.
func (r *Replica) handOver(out *Output) {
	if r.group.Members == 1 {
		return
	}
	r.sendProbe(Everyone, out)
	r.elect(out)
}

// challenged notes that a member wants a newer view. One that voted for it can never take part in this
// one again: when it insists, the primary hands over (design-arguments 14).
func (r *Replica) challenged() {
	r.rejoin.challenged = r.now
	r.armIfNot(timerRelease, releaseDelay)
}

func (r *Replica) released(out *Output) {
	switch {
	case !r.acting() || r.now > r.rejoin.challenged+releaseMemory:
	case r.othersSuffice():
		r.handOver(out)
	default:
		r.arm(timerRelease, releaseDelay)
	}
}
