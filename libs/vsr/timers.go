package vsr

// timer names a deadline. A group in which nothing is pending has none armed.
type timer uint8

const (
	timerPrepare timer = iota // primary: uncommitted prepares without enough acks
	timerVote                 // view change: repeat StartViewChange and DoViewChange
	timerStatus               // view change: it takes too long
	timerProbe                // recovering: repeat RequestStartView
	timerRepair               // a hole in the log: ask, or ask another member
	timerNews                 // backup: an uncommitted tail and not a word
	timerRelease              // primary: a member wants a newer view
	timerLag                  // primary: all is committed, and a member has not acknowledged it

	timerCount
)

// Intervals in µs. They bound how long something takes, never what may happen: safety rests on none
// of them, except that nobody votes in the first lifeBeforeVote.
const (
	prepareInterval = 50_000
	prepareBackoff  = 4 // doublings
	voteInterval    = 100_000
	statusInterval  = 500_000
	statusJitter    = 100_000
	statusBackoff   = 4 // doublings
	probeInterval   = 150_000
	repairInterval  = 200_000
	repairDelay     = 10_000 // prepares may still be on their way
	newsInterval    = 1_000_000
	releaseDelay    = 1_000_000
	releaseMemory   = 500_000
	correctInterval = 20_000
	remindInterval  = 500_000
	remindersMax    = 4 // doubling; then the group is left alone until something happens

	lifeBeforeVote = 500_000 // promises of the last life end (rule D12)
)

func (r *Replica) arm(t timer, after Tick) { r.timers[t] = r.now + after }

// armIfNot leaves an earlier deadline alone.
func (r *Replica) armIfNot(t timer, after Tick) {
	if r.timers[t] == 0 {
		r.arm(t, after)
	}
}

func (r *Replica) disarm(t timer) { r.timers[t] = 0 }

// wake is the earliest deadline, 0 when there is none.
func (r *Replica) wake() Tick {
	earliest := Tick(0)
	for _, at := range r.timers {
		if at != 0 && (earliest == 0 || at < earliest) {
			earliest = at
		}
	}
	return earliest
}

// expire runs what is due.
func (r *Replica) expire(out *Output) {
	for t := timer(0); t < timerCount; t++ {
		if at := r.timers[t]; at == 0 || at > r.now || r.halted {
			continue
		}
		r.disarm(t)
		switch t {
		case timerPrepare:
			r.retransmit(out)
		case timerVote:
			r.repeatVotes(out)
		case timerStatus:
			r.statusExpired(out)
		case timerProbe:
			r.probe(out)
		case timerRepair:
			r.repairExpired(out)
		case timerNews:
			r.newsExpired(out)
		case timerRelease:
			r.released(out)
		case timerLag:
			r.remind(out)
		}
	}
}

// jitter is a random part of span, so that members and groups do not act in step.
func (r *Replica) jitter(span Tick) Tick { return Tick(r.rand) % span }
