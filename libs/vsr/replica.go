package vsr

import "github.com/whippet-mq/whippet/libs/wire"

type status uint8

const (
	// statusNormal: the log is that of the view, and the vote says so.
	statusNormal status = iota
	// statusViewChange: the view has not begun here, or its log is still being taken on.
	statusViewChange
	// statusRecovering: restarted, and not yet heard what the view is.
	statusRecovering
)

// Replica is one member's part in one group. It is not safe for concurrent use.
type Replica struct {
	group   Group
	quorums Quorums
	limit   uint64 // uncommitted prepares

	status        status
	view, logView uint32
	saved, asked  Vote // on stable storage; asked for last
	saving        bool // asked is on its way
	state         LogState
	halted        bool // a sync failed: nothing more is promised
	isolated      bool // too few members are heard
	lossy         bool // an operator accepts loss

	tail      pipeline // commit point to head
	known     uint64   // highest op known to be committed by the group, maybe above the head
	committed uint64   // what of it is held here: it may be applied
	held      uint64   // every op up to here is as durable as the policy asks
	applied   uint64
	timeFloor uint64 // timestamp of the newest prepare ever seen

	names    []wire.PrepareHeader // newest first: ops of the log of logView that are not held
	doubt    uint64               // named ops up to here were in the log once, and may have been acknowledged
	goal     uint64               // highest op the log of the view is known to have
	early    window               // prepares above the head
	acked    uint64               // backup: no op up to here needs an acknowledgement
	okSent   uint64               // backup: newest op acknowledged in this view
	token    uint64               // of the newest Commit frame sent or seen
	told     uint64               // highest commit point sent in a Commit frame
	resent   uint8                // retransmissions without progress
	start    uint64               // primary: head when its view began
	reminded uint8                // Commit frames to members that do not acknowledge the newest op

	election  election
	plan      plan
	storing   bool // an Adopt is on its way to stable storage
	rejoin    rejoin
	questions []question // primary: at most one of each member
	repair    repair
	transfer  bool // a state transfer is under way

	deaf   uint32 // members that are not heard
	timers [timerCount]Tick
	now    Tick
	rand   uint64
}

// New returns the replica that durable state describes. It panics on a boot that contradicts itself:
// that is a fault of the caller, who read and verified it.
//
// A group of one starts as primary with everything it holds committed: the caller applies up to
// Commit before it serves. A new group of more members starts in view 0. A restarted member of several
// asks the others first: it wants an InputTick at once.
func New(g Group, lim Limits, b Boot) *Replica {
	r := &Replica{
		group: g, quorums: QuorumsOf(int(g.Members)), limit: DefaultPipeline, state: b.State,
		view: b.View, logView: b.LogView, saved: Vote{View: b.View, LogView: b.LogView, Whole: b.State <= Born},
		known: b.Commit, committed: b.Commit, held: b.Head, applied: b.Commit, goal: b.Head, acked: b.Head, timeFloor: b.TimeFloor,
	}
	if lim.Pipeline > 0 {
		r.limit = uint64(min(lim.Pipeline, MaxPipeline))
	}
	switch {
	case g.Members == 0 || g.Members > MaxMembers || g.Self >= g.Members && g.Self != NoMember:
		panic("vsr: not a member of the group")
	case b.Commit > b.Head || b.LogView > b.View:
		panic("vsr: boot record contradicts itself")
	}
	r.load(b)
	switch {
	case g.Members == 1:
		r.known, r.committed, r.tail.low = b.Head, b.Head, b.Head
	case b.State == Born:
		r.state = Whole
		r.rejoin.started = b.Started
	default:
		r.restart(b)
	}
	return r
}

// load fills the pipeline from the boot record, head first.
func (r *Replica) load(b Boot) {
	if b.Head == 0 {
		return
	}
	if len(b.Tail) == 0 { // damaged on disk: the chain goes on from an unknown parent
		b.Tail = []wire.PrepareHeader{wire.BlankPrepare(b.Head)}
	}
	size := 1
	for size < len(b.Tail) {
		size *= 2
	}
	r.tail = pipeline{ring: make([]slot, size), low: b.Head - uint64(len(b.Tail)) + 1, head: b.Head}
	for i := range b.Tail {
		h := &b.Tail[i]
		if h.Op != b.Head-uint64(i) {
			panic("vsr: boot headers are not in sequence")
		}
		s := r.tail.at(h.Op)
		s.header, s.acks = *h, 1<<r.group.Self
		r.timeFloor = max(r.timeFloor, h.Timestamp)
	}
}

// View is the current view.
func (r *Replica) View() uint32 { return r.view }

// LogView is the view the log belongs to.
func (r *Replica) LogView() uint32 { return r.logView }

// Head returns the header of the newest op in the log; its Op is 0 when the log is empty.
func (r *Replica) Head() wire.PrepareHeader {
	if r.tail.head == 0 {
		return wire.PrepareHeader{}
	}
	return r.tail.at(r.tail.head).header
}

// Commit is the commit point: the highest op that may be applied.
func (r *Replica) Commit() uint64 { return r.committed }

// Applied is the highest op reported applied.
func (r *Replica) Applied() uint64 { return r.applied }

// Policy is the group's policy.
func (r *Replica) Policy() Policy { return r.group.Policy }

// TimeFloor is the timestamp below which no new prepare falls, in µs.
func (r *Replica) TimeFloor() uint64 { return r.timeFloor }

// Follows reports whether this replica takes part in its view: it leads it, or follows its leader.
func (r *Replica) Follows() bool { return r.status == statusNormal && !r.halted }

// Primary reports whether this replica may mint ops.
func (r *Replica) Primary() bool { return r.acting() && !r.isolated }

// CaughtUp reports whether this primary has applied everything its view inherited: ops above the commit
// point may have been acknowledged to clients before. Until then it answers no read that must see them.
func (r *Replica) CaughtUp() bool { return r.Primary() && r.applied >= r.start }

// Doubted reports whether a member wanted a newer view lately: it may have followed another primary, so that this one
// leads no more. Until that is decided nothing is read here (design-arguments 14).
func (r *Replica) Doubted() bool { return r.timers[timerRelease] != 0 }

// acting reports whether this replica leads its view, heard by the others or not.
func (r *Replica) acting() bool {
	return r.status == statusNormal && !r.halted && r.leader() == r.group.Self && r.settled()
}

// settled reports whether stable storage holds the vote that frames with a view rest on.
func (r *Replica) settled() bool { return r.saved.View == r.view && r.saved.LogView == r.logView }

// leader is the member that leads the current view.
func (r *Replica) leader() uint8 { return r.leads(r.view) }

func (r *Replica) leads(view uint32) uint8 { return uint8(view % uint32(r.group.Members)) }

// Trim gives back pipeline memory of a group that has fallen idle.
func (r *Replica) Trim() { r.tail.trim() }

// Step takes one event. out must be Reset before; it holds the effects afterwards. Remote input never
// panics: what cannot come from a correct member is ignored and named in out.Fault.
func (r *Replica) Step(in *Input, out *Output) {
	led := r.Primary()
	r.now, r.rand = max(r.now, in.Tick), in.Rand
	switch in.Kind {
	case InputTick:
		r.expire(out)
	case InputRequest:
		r.request(in, out)
	case InputFrame:
		r.frame(in, out)
	case InputWritten:
		r.completed(in.Op, !r.group.Policy.Synced, out)
	case InputSynced:
		r.completed(in.Op, true, out)
	case InputWriteFailed:
		r.writeFailed(in, out)
	case InputApplied:
		r.reportApplied(in.Op, out)
	case InputAdopted:
		r.adoptStored(out)
	case InputVoteSaved:
		r.voteSaved(out)
	case InputInstalled:
		r.installed(&in.Prepare, out)
	case InputTransferFailed:
		r.transferFailed()
	case InputAlive, InputDead, InputIsolated, InputReached, InputPeerView, InputHandOver, InputAcceptLoss:
		r.liveness(in, out)
	default:
		out.Fault = FaultKind
	}
	if leads := r.Primary(); leads != led {
		out.Role = Role{Changed: true, Primary: leads, View: r.view}
	}
	out.Wake = r.wake()
}
