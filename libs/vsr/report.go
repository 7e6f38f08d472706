package vsr

// ViewChanging reports whether a view change is under way here: whoever runs many groups bounds how
// many do that at once (design-arguments 20).
func (r *Replica) ViewChanging() bool { return r.status == statusViewChange }

// Leader is the member that leads the current view.
func (r *Replica) Leader() uint8 { return r.leader() }

// Deadlocked reports whether all members have told this candidate what they have, and no log is proven:
// only an operator can go on (InputAcceptLoss), or a member that finds what it lost.
func (r *Replica) Deadlocked() bool { return r.election.stuck }

// Settled reports whether this member takes part in a view with a log that has everything it ever
// acknowledged.
func (r *Replica) Settled() bool { return r.status == statusNormal && r.state == Whole }

// Current reports whether this member takes part in a view and has applied all it knows to be committed there:
// a primary what its view inherited too. One that is behind, or asks what the view is, does not.
func (r *Replica) Current() bool {
	return r.status == statusNormal && r.settled() && !r.transfer && r.applied >= r.known &&
		(r.leader() != r.group.Self || r.applied >= r.start)
}

// Lost reports whether this member came up without log and votes and has not got them back.
func (r *Replica) Lost() bool { return r.state == Empty }
