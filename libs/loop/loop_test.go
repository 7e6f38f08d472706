package loop

import (
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// fakeEnv holds submitted rounds until the test completes them.
type fakeEnv struct {
	now     uint64
	rounds  []*journal.Round
	full    bool
	resumed int
}

func (e *fakeEnv) Now() uint64  { e.now++; return e.now }
func (e *fakeEnv) Rand() uint64 { return 4 }
func (e *fakeEnv) Submit(r *journal.Round) (journal.Done, bool, bool) {
	if e.full {
		return journal.Done{}, false, false
	}
	e.rounds = append(e.rounds, r)
	return journal.Done{}, false, true
}
func (e *fakeEnv) Resume()                          { e.resumed++ }
func (e *fakeEnv) Go(func() error, func(error))     {}
func (e *fakeEnv) Tick() vsr.Tick                   { return vsr.Tick(e.now) }
func (e *fakeEnv) Send(uint8, Frame) bool           { return false }
func (e *fakeEnv) SaveVotes(uint64, []journal.Vote) {}
func (e *fakeEnv) First(uint64) (uint64, bool)      { return 0, false }
func (e *fakeEnv) Range(uint64, uint64, uint64, func(*journal.Entry, []byte) error) error {
	return journal.ErrDropped
}
func (e *fakeEnv) MakeWhole(uint64, bool, func(error)) {}
func (e *fakeEnv) take() (r *journal.Round)            { r, e.rounds = e.rounds[0], e.rounds[1:]; return r }

// fakeMachine is a list of applied bodies that readers see only after Settle.
type fakeMachine struct {
	staged, applied []byte
	visible         int
	closed, blocked bool
}

func (m *fakeMachine) Blocked() bool { return m.blocked }
func (m *fakeMachine) Admit(c *link.Call, p *Proposal) bool {
	buf := append(make([]byte, wire.HeaderSize), c.Body...)
	*p = Proposal{Operation: wire.OpSendMessages, Buf: buf, BodyStart: wire.HeaderSize, BodyLen: len(c.Body)}
	return true
}
func (m *fakeMachine) Stage(_ *wire.PrepareHeader, body []byte) (Staged, error) {
	m.staged = append(m.staged, body[0])
	return Staged{}, nil
}
func (m *fakeMachine) Follow(h *wire.PrepareHeader, body []byte) (Staged, error) {
	return m.Stage(h, body)
}
func (m *fakeMachine) Bodies() func(journal.Location, []byte) error { return nil }
func (m *fakeMachine) Unstage(op uint64)                            { m.staged = m.staged[:op-1] }
func (m *fakeMachine) Apply(_ *wire.PrepareHeader, body []byte, c *link.Call) {
	m.applied = append(m.applied, body[0])
	if c != nil {
		c.Out = append(c.Out[:0], byte(m.visible))
	}
}
func (m *fakeMachine) Settle()                                                          { m.visible = len(m.applied) }
func (m *fakeMachine) Work(uint64, bool) *Work                                          { return nil }
func (m *fakeMachine) Pending() bool                                                    { return false }
func (m *fakeMachine) Rest()                                                            {}
func (m *fakeMachine) Replay(*wire.PrepareHeader, []byte, journal.Location, bool) error { return nil }
func (m *fakeMachine) Ready() error                                                     { return nil }
func (m *fakeMachine) Image() Image                                                     { return Image{} }
func (m *fakeMachine) Role(bool, uint32)                                                {}
func (m *fakeMachine) Close()                                                           { m.closed = true }

type rig struct {
	*Loop
	env   *fakeEnv
	group *Group
	state *fakeMachine
	lsn   journal.LSN
}

func newRig(t *testing.T, pipeline, queue int) *rig {
	t.Helper()
	r := &rig{env: &fakeEnv{}, state: &fakeMachine{}}
	r.Loop = New(r.env, Limits{Pipeline: pipeline, Queue: queue})
	r.group = &Group{ID: 7, Machine: r.state}
	r.group.tail.first = 1
	r.group.core = vsr.New(vsr.Group{ID: 7, Members: 1}, vsr.Limits{Pipeline: pipeline}, vsr.Boot{State: vsr.Born})
	r.groups[7] = r.group
	return r
}

func (r *rig) send(body byte) *link.Call {
	c := link.NewCall()
	c.Group, c.Body = 7, []byte{body}
	r.Turn([]Event{{Call: c}})
	return c
}

// complete finishes the oldest submitted round.
func (r *rig) complete(err error) {
	round := r.env.take()
	r.lsn += 100
	r.Turn([]Event{{Done: journal.Done{Seq: round.Seq, LSN: r.lsn, Synced: round.Sync, Err: err}}})
}

func isFinished(c *link.Call) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestAcknowledgedOnlyAfterTheRoundIsWritten(t *testing.T) {
	r := newRig(t, 8, 8)
	c := r.send('a')
	if isFinished(c) {
		t.Fatal("answered before its round was written")
	}
	if len(r.state.applied) != 0 {
		t.Fatal("applied before its round was written")
	}
	r.complete(nil)
	if !isFinished(c) || c.Status != 0 || c.Op != 1 {
		t.Fatalf("not acknowledged after the write: status %v op %d", c.Status, c.Op)
	}
	if r.state.visible != 1 {
		t.Fatal("answered before readers could see it")
	}
}

func TestEventsOfOneTurnShareOneRound(t *testing.T) {
	r := newRig(t, 8, 8)
	calls := make([]Event, 5)
	for i := range calls {
		c := link.NewCall()
		c.Group, c.Body = 7, []byte{byte('a' + i)}
		calls[i] = Event{Call: c}
	}
	r.Turn(calls)
	if len(r.env.rounds) != 1 || len(r.env.rounds[0].Records) != 5 {
		t.Fatalf("%d rounds for one turn", len(r.env.rounds))
	}
	r.complete(nil)
	if string(r.state.applied) != "abcde" {
		t.Fatalf("applied %q", r.state.applied)
	}
}

func TestFullPipelineQueuesThenRefuses(t *testing.T) {
	r := newRig(t, 2, 1)
	a, b, queued, over := r.send('a'), r.send('b'), r.send('c'), r.send('d')
	if !isFinished(over) || over.Status != wire.CodeTransientNotAccepted || over.Reason != link.ReasonBusy {
		t.Fatalf("the fourth call: status %v reason %v", over.Status, over.Reason)
	}
	r.complete(nil)
	if !isFinished(a) || isFinished(queued) {
		t.Fatal("wrong calls finished after the first round")
	}
	r.complete(nil)
	r.complete(nil)
	if !isFinished(b) || !isFinished(queued) || string(r.state.applied) != "abc" {
		t.Fatalf("applied %q", r.state.applied)
	}
}

// A call that waited too long is refused before anything of it is in the log.
func TestQueueIsBoundedInTime(t *testing.T) {
	r := newRig(t, 1, 8)
	first, late := r.send('a'), r.send('b')
	r.env.now += queueFor
	timely := r.send('c')
	r.env.now++
	r.complete(nil)
	if !isFinished(first) || !isFinished(late) || late.Status != wire.CodeTransientNotAccepted || late.Reason != link.ReasonBusy {
		t.Fatalf("the late call: status %v reason %v", late.Status, late.Reason)
	}
	r.complete(nil)
	if !isFinished(timely) || timely.Status != 0 || string(r.state.applied) != "ac" {
		t.Fatalf("applied %q", r.state.applied)
	}
}

func TestBlockedMachineMakesCallsWait(t *testing.T) {
	r := newRig(t, 8, 8)
	first := r.send('a')
	r.state.blocked = true
	waits := r.send('b')
	if len(r.state.staged) != 1 {
		t.Fatal("a call was staged while the machine was blocked")
	}
	r.state.blocked = false
	r.complete(nil)
	r.complete(nil)
	if !isFinished(first) || !isFinished(waits) || string(r.state.applied) != "ab" {
		t.Fatalf("applied %q", r.state.applied)
	}
}

func TestFailedRoundLosesNothingAcknowledgedAndLeavesNoHole(t *testing.T) {
	r := newRig(t, 8, 8)
	good, bad, behind := r.send('a'), r.send('b'), r.send('c')
	r.complete(nil)
	full := errors.New("no space")
	r.complete(full)
	if refused := r.send('x'); !isFinished(refused) || refused.Status != wire.CodeTransientNotAccepted {
		t.Fatal("a call was taken behind a hole")
	}
	r.complete(full)
	for _, c := range []*link.Call{bad, behind} {
		if !isFinished(c) || c.Status != wire.CodeTransientNotAccepted {
			t.Fatalf("failed call: status %v", c.Status)
		}
	}
	if !isFinished(good) || good.Status != 0 {
		t.Fatal("the written call was not acknowledged")
	}
	if r.env.resumed != 1 {
		t.Fatalf("journal resumed %d times", r.env.resumed)
	}
	again := r.send('d')
	r.complete(nil)
	if !isFinished(again) || again.Op != 2 || string(r.state.applied) != "ad" || string(r.state.staged) != "ad" {
		t.Fatalf("after the failure: op %d applied %q staged %q", again.Op, r.state.applied, r.state.staged)
	}
}

func TestOverBudgetRefusesAtOnce(t *testing.T) {
	r := newRig(t, 8, 8)
	r.env.full = true
	c := r.send('a')
	if !isFinished(c) || c.Status != wire.CodeTransientNotAccepted {
		t.Fatal("a call the journal has no room for must be refused at once")
	}
	r.env.full = false
	c = r.send('b')
	r.complete(nil)
	if !isFinished(c) || c.Op != 1 {
		t.Fatalf("op %d after room came back", c.Op)
	}
}

func TestRemovedGroupAnswersEveryWaiter(t *testing.T) {
	r := newRig(t, 1, 4)
	inFlight, queued := r.send('a'), r.send('b')
	r.Turn([]Event{{Func: func() { r.remove(r.group) }}})
	for _, c := range []*link.Call{inFlight, queued} {
		if !isFinished(c) || c.Status != wire.CodeTransientNotAccepted {
			t.Fatalf("waiter of a removed group: status %v", c.Status)
		}
	}
	r.complete(nil)
	r.complete(nil)
	if !r.state.closed || len(r.state.applied) != 0 {
		t.Fatal("the machine of a removed group is closed once no round is in flight, and applies nothing")
	}
	if c := r.send('c'); !isFinished(c) || c.Reason != link.ReasonUnknownGroup {
		t.Fatal("a removed group still takes calls")
	}
}

func TestCheckpointPositionNeverPassesAnOpenRound(t *testing.T) {
	r := newRig(t, 8, 8)
	r.send('a')
	r.send('b')
	second := r.env.rounds[1]
	r.Turn([]Event{{Done: journal.Done{Seq: second.Seq, LSN: 200}}})
	if r.reached != 0 {
		t.Fatalf("position %d while the first round is open", r.reached)
	}
	r.complete(nil)
	if r.reached != 200 {
		t.Fatalf("position %d after both", r.reached)
	}
}
