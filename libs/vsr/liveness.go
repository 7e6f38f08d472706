package vsr

import "math/bits"

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
