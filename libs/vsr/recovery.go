package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// rejoin is what a member knows of itself and of the others outside a view: how it came up, and who
// disagrees about the view.
type rejoin struct {
	started     Tick      // of this process
	bootView    uint32    // the highest view an earlier life may have acted in
	incarnation wire.U128 // of this life, asked with and echoed
	probes      uint8     // unanswered so far
	unanswered  uint8     // questions for news

	gone       bool   // the leader of the view does not lead it
	released   bool   // it said so itself
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
	j.gone, j.released, j.probes, j.unanswered, j.challenged = false, false, 0, 0, 0
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
	// A view names everything from its commit point on: what is missing below the names was committed when the log
	// took it on. Of a log that was longer then, and lost its end since, that says nothing.
	if n := len(r.names); n > 0 && r.names[n-1].Op > b.Head+1 && b.State == Whole && b.Lost == 0 {
		r.known = max(r.known, r.names[n-1].Op)
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

// startedElsewhere reports whether a member was heard to be in a view above 0: then this is not the first
// start, whatever old reports say.
func (r *Replica) startedElsewhere() bool {
	for _, view := range r.rejoin.peers {
		if view > 0 {
			return true
		}
	}
	return false
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
