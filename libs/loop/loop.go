package loop

import (
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Env is everything of a loop that is not a function of its events.
type Env interface {
	// Now is the wall clock in microseconds since the Unix epoch.
	Now() uint64
	// Rand returns 64 random bits.
	Rand() uint64
	// Submit hands a round to the journal. With now it is complete already and done says how;
	// otherwise its completion comes back as an event. ok is false when the journal is over its
	// budget: nothing was taken.
	Submit(r *journal.Round) (done journal.Done, now, ok bool)
	// Resume lets the journal take rounds again after one failed for lack of space.
	Resume()
	// Go runs file work on another goroutine and posts done(result) as an event.
	Go(work func() error, done func(error))

	// The rest serves groups of several members.

	// Tick is the monotonic clock.
	Tick() vsr.Tick
	// Send queues a frame for another node and never blocks. False: it is lost.
	Send(node uint8, f Frame) bool
	// SaveVotes makes votes durable; Voted(seq, error) comes back as an event, in the order of the calls.
	SaveVotes(seq uint64, votes []journal.Vote)
	// First is the lowest op of a group the journal still holds, on any goroutine; false if none.
	First(group uint64) (uint64, bool)
	// Range reads ops low..top of a group back from the journal, in order, until one can not be read or
	// visit fails. What visit gets is valid during the call. Any goroutine.
	Range(group, low, top uint64, visit func(e *journal.Entry, body []byte) error) error
	// MakeWhole makes everything written durable, bodies in segments too, and has the journal forget
	// that it kept the group fenced. done comes back as an event.
	MakeWhole(group uint64, fenced bool, done func(error))
}

// Limits bound what a loop holds.
type Limits struct {
	Pipeline int // prepares in flight per group, at most vsr's ceiling
	Queue    int // admitted calls waiting for the pipeline, per group
	RoundMax int // bytes after which a turn starts another round
}

// Loop owns groups and steps them. It is driven by one goroutine at a time.
type Loop struct {
	env    Env
	limits Limits
	groups map[uint64]*Group

	// Missing is asked for a group nobody hosts here; it may host it (AddBorn) and return it. A nil
	// result leaves the call to be refused with 58, for the reason given.
	Missing func(c *link.Call) (*Group, link.Reason)
	// MissingPeer is Missing for a frame of another node.
	MissingPeer func(group uint64) *Group
	// TransferFrame takes frames of state transfers (22 to 25), and owns them. Who sends them need not be a member.
	TransferFrame func(f *PeerFrame)
	// Transfer fetches the state of a group, at op above or higher, from a node. It ends with
	// Engine.Install or Loop.TransferFailed.
	Transfer func(g *Group, node uint8, above uint64)
	// LostOps is told of ops the members of a group gave up (rule D8).
	LostOps func(g *Group, ops uint64)
	// Echoes says which nodes can be reached; nil: all.
	Echoes *Echoes
	// Committed is told how long a call's op took from its stamp until it is executed, in µs; nil: nobody asks.
	Committed func(took uint64)
	// Counters count what was refused or lost.
	Counters Counters
	// Failed is told the first error of a round. Later rounds of the journal fail too when it was a
	// sync error.
	Failed func(error)
	// Ticked runs at the end of every tick.
	Ticked func()

	tight    func() bool // the journal needs room
	in       vsr.Input
	out      vsr.Output
	proposal Proposal
	written  *batch // being built: completes when written
	durable  *batch // being built: completes when synced
	flight   []*batch
	free     []*batch
	seq      uint64
	reached  journal.LSN // every round below is complete
	newest   journal.LSN
	touched  []*Group // admitted or completed something this turn
	settling []*Group
	dirty    []*Group // may have file work
	warm     []*Group // have buffers that are given back when they are idle
	finished []finished
	failing  []*Group // with a failed round; restarted when no round is in flight
	lost     bool     // the journal failed for good
	parted   []*Group // removed; their buffers go when no round is in flight
	working  int      // file work in flight

	// Groups of several members.
	clustered []*Group
	bodies    bodies
	retired   []retired // in the order of their rounds
	shut      []*Group  // wait for rounds to pass, in their order
	owing     []*Group  // with a failed adoption
	votes     []*Group  // to be saved by this turn
	ballots   []ballot
	voteSeq   uint64
	epoch     uint64 // suspect epoch in force
	timers    timers
	woken     []*Group
	late      bool // more groups than those woken were due
	alive     liveness
	changing  int      // view changes under way
	behind    []*Group // those that may not take part: see Behind
	serving   map[uint8]int
}

type finished struct {
	call *link.Call
	view uint32
}

// Event is one entry of a loop's inbox: a call, a function, a frame of another node, or else a round's
// completion.
type Event struct {
	Call *link.Call
	Func func()
	Peer *PeerFrame
	Done journal.Done
}

// New returns a loop without groups.
func New(env Env, limits Limits) *Loop {
	return &Loop{env: env, limits: limits, groups: make(map[uint64]*Group), serving: make(map[uint8]int)}
}

// Group returns a hosted group, or nil.
func (l *Loop) Group(id uint64) *Group { return l.groups[id] }

// Len is the number of hosted groups.
func (l *Loop) Len() int { return len(l.groups) }

// Turn takes events in order, then submits what they produced and finishes the calls that are
// answered. It repeats while rounds complete at once.
func (l *Loop) Turn(events []Event) {
	l.wakeUp()
	for i := range events {
		switch ev := &events[i]; {
		case ev.Call != nil:
			l.call(ev.Call)
		case ev.Func != nil:
			ev.Func()
		case ev.Peer != nil:
			l.received(ev.Peer)
		default:
			l.done(ev.Done)
		}
	}
	l.conclude()
}

// conclude submits what the events produced and finishes what is answered; machines may propose ops
// of their own when they settle.
func (l *Loop) conclude() {
	for again := true; again; again = l.written != nil || l.durable != nil || len(l.votes) > 0 {
		if len(l.alive.waiting)+len(l.alive.urgent) > 0 {
			l.elect()
		}
		for l.drainQueues(); l.submit(); l.drainQueues() {
		}
		l.castVotes()
		l.finish()
	}
}

// record puts a record of a group into this turn's round.
func (l *Loop) record(g *Group, rec journal.Record) {
	b := l.building(g.synced)
	b.round.Records = append(b.round.Records, rec)
}

// remove ends a group: its log goes with the next checkpoint.
func (l *Loop) remove(g *Group) {
	if g.gone {
		return
	}
	g.gone = true
	delete(l.groups, g.ID)
	if g.peers != nil {
		l.leave(g)
		l.vote(g)
	}
	g.refuseQueue(link.ReasonUnknownGroup)
	for op := g.tail.first; op < g.tail.next(); op++ {
		if e := g.tail.at(op); e.call != nil {
			e.call.Refuse(wire.CodeTransientNotAccepted, link.ReasonUnknownGroup)
			e.call = nil
		}
	}
	l.record(g, journal.Record{Kind: journal.KindGone, Group: g.ID})
	l.parted = append(l.parted, g)
}

// call routes one request to its group.
func (l *Loop) call(c *link.Call) {
	g, why := l.groups[c.Group], link.ReasonUnknownGroup
	if g == nil && l.Missing != nil {
		g, why = l.Missing(c)
	}
	if g == nil {
		c.Refuse(wire.CodeTransientNotAccepted, why)
		return
	}
	if g.unborn {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonViewChange)
		return
	}
	if g.peers != nil && !l.leads(g, c) {
		return
	}
	switch {
	case g.failed != 0:
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonDiskFull)
	case g.core.Closed():
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonViewChange) // a successor takes it
	case len(g.queue) > 0 || g.tail.count >= l.limits.Pipeline || g.Machine.Blocked():
		if len(g.queue) >= l.limits.Queue {
			c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBusy)
			return
		}
		g.queue = append(g.queue, queued{c, l.env.Tick()})
	default:
		l.admit(g, c)
	}
}

func (l *Loop) admit(g *Group, c *link.Call) {
	l.proposal = Proposal{}
	if g.Machine.Admit(c, &l.proposal) {
		l.Propose(g, &l.proposal, c)
	}
}

// queueFor is how long a call waits for the pipeline, in microseconds. Who asked gives up soon: what waited for
// longer would be executed for nobody, and delay those behind it.
const queueFor = 500_000

// drainQueues admits waiting calls into the room that completions made.
func (l *Loop) drainQueues() {
	for _, g := range l.touched {
		n := 0
		for n < len(g.queue) && g.failed == 0 && g.tail.count < l.limits.Pipeline && !g.Machine.Blocked() {
			q := g.queue[n]
			g.queue[n] = queued{}
			if n++; l.env.Tick()-q.since > queueFor {
				q.call.Refuse(wire.CodeTransientNotAccepted, link.ReasonBusy)
				continue
			}
			l.admit(g, q.call)
		}
		if n > 0 {
			g.queue = g.queue[:copy(g.queue, g.queue[n:])]
		}
		g.touched = false
	}
	l.touched = l.touched[:0]
}

// Propose gives an admitted proposal its op and stages it. c is nil for the machine's own ops: false
// means the op was dropped, and its machine proposes it again later.
func (l *Loop) Propose(g *Group, p *Proposal, c *link.Call) bool {
	if c == nil && (g.unborn || g.failed != 0 || g.tail.count >= l.limits.Pipeline || g.peers != nil && !g.core.Primary()) {
		return false
	}
	l.in = vsr.Input{Kind: vsr.InputRequest, Now: l.env.Now(), Request: vsr.Request{
		Operation: p.Operation, Client: p.Client, Request: p.Request, Checksum: p.RequestChecksum,
		UserID: p.UserID, Size: uint32(wire.HeaderSize + p.BodyLen),
	}}
	frame := p.Bytes()
	if g.core.Policy().SealBody {
		l.in.BodyHash = wire.Hash64(frame[wire.HeaderSize:])
	}
	if g.peers != nil {
		l.in.Tick, l.in.Rand = l.env.Tick(), l.env.Rand()
	}
	l.step(g)
	if len(l.out.Append) == 0 {
		why := l.out.Refused[0]
		if g.peers != nil {
			l.carry(g)
			if c != nil {
				g.hint(c)
			}
		}
		return l.refuse(p, c, why.Code, reason(why.Why))
	}
	h := &l.out.Append[0].Header
	staged, err := g.Machine.Stage(h, frame[wire.HeaderSize:])
	if err != nil {
		g.core.Rollback(h.Op)
		return l.refuse(p, c, wire.CodeTransientNotAccepted, link.ReasonDiskFull)
	}
	h.Put(frame)
	b := l.enter(g, h, body{p.Frame, frame}, c, staged)
	b.bulk = b.bulk || !p.Reserved
	if g.peers != nil {
		l.out.Append = l.out.Append[:0]
		l.carry(g)
	}
	return true
}

func (l *Loop) refuse(p *Proposal, c *link.Call, code wire.Code, why link.Reason) bool {
	if p.Frame != nil {
		p.Frame.Release()
	}
	if c != nil {
		c.Refuse(code, why)
	}
	return false
}

func reason(w vsr.Why) link.Reason {
	switch w {
	case vsr.WhyNotPrimary:
		return link.ReasonNotPrimary
	case vsr.WhyWriteFailed:
		return link.ReasonDiskFull
	case vsr.WhyHalted:
		return link.ReasonClosing
	case vsr.WhyIsolated, vsr.WhyViewChange, vsr.WhySealed:
		return link.ReasonViewChange
	}
	return link.ReasonBusy
}

// step runs the core on l.in; l.out is valid until the next step.
func (l *Loop) step(g *Group) {
	l.out.Reset()
	g.core.Step(&l.in, &l.out)
}

func (l *Loop) building(synced bool) *batch {
	b := &l.written
	if synced {
		b = &l.durable
	}
	if *b == nil {
		*b = l.takeBatch()
		(*b).round.Sync = synced
	}
	return *b
}

func (l *Loop) takeBatch() *batch {
	if n := len(l.free); n > 0 {
		b := l.free[n-1]
		l.free = l.free[:n-1]
		return b
	}
	return new(batch)
}

// submit hands the built rounds to the journal and reports whether any completed at once.
func (l *Loop) submit() (again bool) {
	rounds := [...]*batch{l.written, l.durable}
	l.written, l.durable = nil, nil
	for _, b := range rounds {
		if b != nil {
			l.seq++
			b.round.Seq, b.round.Reserved = l.seq, !b.bulk
			l.flight = append(l.flight, b)
		}
	}
	for _, b := range rounds {
		if b == nil {
			continue
		}
		seq := b.round.Seq
		done, now, ok := l.env.Submit(&b.round)
		if !ok {
			done, now = journal.Done{Seq: seq, Err: errOverBudget}, true
		}
		if now {
			l.done(done)
			again = true
		}
	}
	return again
}
