package vsr

import "github.com/whippet-mq/whippet/libs/wire"

type status uint8

const (
	statusNormal status = iota
	statusViewChange
	statusRecovering
)

// Replica is one member's part in one group. It is not safe for concurrent use.
type Replica struct {
	group   Group
	quorums Quorums
	limit   uint64 // uncommitted prepares

	status        status
	view, logView uint32
	halted        bool // a sync failed: nothing more is promised
	spent         bool // a sent op could not be written: no op is minted in this view again

	tail      pipeline // commit point to head
	committed uint64   // highest op known committed, at most head here
	held      uint64   // every op up to here is as durable as the policy asks
	applied   uint64
	timeFloor uint64 // timestamp of the newest prepare ever seen
}

// New returns the replica that durable state describes. It panics on a boot that contradicts itself:
// that is a fault of the caller, who read and verified it.
//
// A group of one starts as primary with everything it holds committed: the caller applies up to
// Commit before it serves. A new group of more members starts in view 0.
func New(g Group, lim Limits, b Boot) *Replica {
	r := &Replica{
		group: g, quorums: QuorumsOf(int(g.Members)), limit: DefaultPipeline,
		view: b.View, logView: b.LogView, committed: b.Commit, held: b.Head, applied: b.Commit, timeFloor: b.TimeFloor,
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
	if g.Members == 1 {
		r.committed = b.Head
		r.tail.low = b.Head
	} else if b.State != Born {
		r.status = statusRecovering
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
	size := minRing
	for size < len(b.Tail)+1 {
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

// Primary reports whether this replica may mint ops.
func (r *Replica) Primary() bool {
	return r.status == statusNormal && !r.halted && !r.spent && r.leader() == r.group.Self
}

// leader is the member that leads the current view.
func (r *Replica) leader() uint8 { return uint8(r.view % uint32(r.group.Members)) }

// Trim gives back pipeline memory of a group that has fallen idle.
func (r *Replica) Trim() { r.tail.trim() }

// Step takes one event. out must be Reset before; it holds the effects afterwards. Remote input never
// panics: what cannot come from a correct member is ignored and named in out.Fault.
func (r *Replica) Step(in *Input, out *Output) {
	switch in.Kind {
	case InputRequest:
		r.request(in, out)
	case InputWritten:
		r.completed(in.Op, !r.group.Policy.Synced, out)
	case InputSynced:
		r.completed(in.Op, true, out)
	case InputWriteFailed:
		r.writeFailed(in, out)
	case InputApplied:
		r.reportApplied(in.Op, out)
	case InputTick, InputFrame, InputAdopted, InputVoteSaved, InputAlive, InputDead, InputIsolated, InputReached,
		InputPeerView, InputInstalled, InputTransferFailed, InputHandOver:
	default:
		out.Fault = FaultKind
	}
}
