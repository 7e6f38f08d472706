package loop

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
)

// tickEvery is how often a runner looks for file work that became old enough.
const tickEvery = 250 * time.Millisecond

// Runner drives a Loop in a process. Whoever brings an event runs the turn itself when no turn is
// running, which spares a lone request every goroutine hop; otherwise the event waits in the inbox
// and the running turn's owner, or the runner's goroutine, takes it along with all others. Batching
// comes from that and from nothing else: there is no timer on the path of a request.
type Runner struct {
	Loop *Loop

	turn sync.Mutex // held while a turn runs

	mu     sync.Mutex // guards inbox, bodies, shut
	inbox  []Event
	spare  []Event // owned by the turn
	bodies int     // bytes of frames in the inbox
	shut   bool

	alarm *time.Timer // owned by the turn, as is armed
	armed vsr.Tick    // when it goes off; 0 = it does not

	stepped bool // whoever posts runs the turns; there is no goroutine
	wake    chan struct{}
	stop    chan struct{}
	gone    sync.WaitGroup
}

func newRunner(l *Loop) *Runner {
	r := &Runner{Loop: l, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	r.alarm = time.AfterFunc(time.Hour, r.kick)
	r.alarm.Stop()
	return r
}

// Start begins to run turns; before it the loop belongs to the caller.
func (r *Runner) Start() {
	r.gone.Add(1)
	go r.run()
	r.kick()
}

// Serve implements link.Service for the loop's groups.
func (r *Runner) Serve(c *link.Call) {
	if !r.post(Event{Call: c}) {
		c.Refuse(refusedClosing, link.ReasonClosing)
		return
	}
	r.tryTurn()
}

// Notify takes a journal completion; it is called on the journal's goroutines.
func (r *Runner) Notify(d journal.Done) {
	r.post(Event{Done: d})
	r.kick()
}

// Do runs f inside a turn, later.
func (r *Runner) Do(f func()) bool {
	if !r.post(Event{Func: f}) {
		return false
	}
	r.kick()
	return true
}

// Wait runs f inside a turn and returns when it has run. False: the runner has ended, and f will not run. It must
// not be called from a turn.
func (r *Runner) Wait(f func()) bool {
	var taken atomic.Bool // by the turn that runs f, or by the end of the runner
	done := make(chan struct{})
	run := func() {
		defer close(done)
		if !taken.Swap(true) {
			f()
		}
	}
	if !r.Do(run) {
		return false
	}
	select {
	case <-done:
	case <-r.stop:
		if !taken.Swap(true) {
			return false
		}
		<-done
	}
	return true
}

// Queued is how many events wait for a turn.
func (r *Runner) Queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inbox)
}

func (r *Runner) post(ev Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shut && ev.Call != nil {
		return false
	}
	r.inbox = append(r.inbox, ev)
	return true
}

// inboxBytes bounds the bodies of frames that wait for a turn; what is above it is lost and repaired.
const inboxBytes = 64 << 20

// postFrame queues a frame of another node; false when its body does not fit any more.
func (r *Runner) postFrame(f *PeerFrame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.bodies + len(f.bytes); n > inboxBytes && r.bodies > 0 {
		return false
	}
	r.bodies += len(f.bytes)
	r.inbox = append(r.inbox, Event{Peer: f})
	return true
}

// arm sets the alarm to when the loop wants to be woken. The caller holds r.turn.
func (r *Runner) arm() {
	at, ok := r.Loop.NextWake()
	switch {
	case r.stepped || !ok && r.armed == 0:
	case !ok:
		r.armed = 0
		r.alarm.Stop()
	case at != r.armed:
		r.armed = at
		r.alarm.Reset(time.Duration(max(0, int64(at)-int64(r.Loop.env.Tick()))) * time.Microsecond)
	}
}

func (r *Runner) kick() {
	if r.stepped {
		r.tryTurn()
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// tryTurn runs one turn on this goroutine unless one is running. A poster that fails to get the
// lock knows that its event was queued before the owner released it; the owner looks at the inbox
// after the release, so no event is left behind.
func (r *Runner) tryTurn() {
	if !r.turn.TryLock() {
		return
	}
	r.runTurn()
	r.endTurn()
}

// endTurn gives the turn back and sees to what was posted meanwhile. Every owner ends with it: who
// failed to get the turn has gone.
func (r *Runner) endTurn() {
	r.arm()
	late := r.stepped && r.Loop.late // else the alarm goes off
	r.turn.Unlock()
	r.mu.Lock()
	more := late || len(r.inbox) > 0
	r.mu.Unlock()
	if more {
		r.kick()
	}
}

// runTurn takes everything queued. The caller holds r.turn.
func (r *Runner) runTurn() bool {
	r.mu.Lock()
	r.spare, r.inbox, r.bodies = r.inbox, r.spare[:0], 0
	r.mu.Unlock()
	if len(r.spare) == 0 && !r.Loop.due() {
		return false
	}
	r.Loop.Turn(r.spare)
	clear(r.spare)
	return true
}

func (r *Runner) run() {
	defer r.gone.Done()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.wake:
			r.turn.Lock()
			for r.runTurn() {
			}
			r.endTurn()
		case <-tick.C:
			r.turn.Lock()
			r.Loop.Tick()
			r.endTurn()
		case <-r.stop:
			return
		}
	}
}

// Close refuses new calls, then waits until every event already queued and everything in flight is
// finished, at most for limit.
func (r *Runner) Close(limit time.Duration) {
	deadline := time.Now().Add(limit)
	r.mu.Lock()
	r.shut = true
	r.mu.Unlock()
	for idle := false; !idle && time.Now().Before(deadline); {
		r.turn.Lock()
		for r.runTurn() {
		}
		idle = r.Loop.idle()
		r.turn.Unlock()
		if !idle {
			select {
			case <-r.wake:
			case <-time.After(time.Millisecond):
			}
		}
	}
	close(r.stop)
	r.alarm.Stop()
	r.gone.Wait()
}
