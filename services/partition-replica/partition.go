package partitionreplica

import (
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Partition is one partition's replicated state: its messages, consumer offsets and recent writes.
// Its loop calls it; readers use view, offsets and fence from any goroutine.
type Partition struct {
	replica *Replica
	engine  *loop.Engine
	id      uint64 // group id
	dir     string
	home    uint32 // number of dir: states installed so far
	former  string // dir of the state before, until a checkpoint does without it
	stream  uint32
	topic   uint32
	number  uint32

	group   *loop.Group
	log     *segment.Log
	offsets *offsets
	recent  recent
	staged  []stagedOp // sends that are not applied yet, in op order
	purged  uint64     // generation proposed last
	trimTo  uint64     // trim proposed last, its offset + 1
	// resetting is a staged purge: what follows it in the log is stamped for the empty log. 0 = none.
	resetting uint64
	fence     atomic.Pointer[segment.Damage]
	wanted    atomic.Pointer[wanted] // purge generation, as last looked at

	// Of a damaged copy among others: whether another member took its lead, how many were asked for what is damaged.
	deposed bool
	asked   int
	mending atomic.Bool

	// Of a sealed group: who goes on, and that it is sealed, for readers. copies is what nodes said that are to
	// go on.
	heirs     []byte
	copies    map[uint8]copyReport
	sealed    atomic.Bool
	reporting atomic.Bool // the metadata is being told

	leading bool   // as counted
	view    uint32 // of the last role

	published  uint64      // offset behind the last applied send
	publishing bool        // published is ahead of the view
	committing atomic.Bool // an event to propose auto-commits is queued
	owing      atomic.Bool // auto-commits wait for room in the log
	propose    func()
}

// stagedOp is a send between staging and apply.
type stagedOp struct {
	op, base, next uint64
}

// Blocked implements loop.Machine. A purge resets offsets when it is applied, so what is admitted
// after it is stamped after it too.
func (p *Partition) Blocked() bool {
	p.followMetadata()
	return p.closed() == nil && !p.sealed.Load() && (p.resetting != 0 || p.wantedGeneration() > p.log.Generation())
}

// closed is the damage for which a partition takes nothing any more. With other members it goes on: what can not
// be read here they have, and what comes is as good as theirs.
func (p *Partition) closed() *segment.Damage {
	if p.group.Nodes() != nil {
		return nil
	}
	return p.fence.Load()
}

// Admit implements loop.Machine.
func (p *Partition) Admit(c *link.Call, prop *loop.Proposal) bool {
	if p.closed() != nil {
		c.Refuse(wire.CodeCannotSaveMessagesToSegment, link.ReasonNone)
		return false
	}
	switch c.Header.Operation {
	case wire.OpSendMessages:
		return p.admitSend(c, prop)
	case wire.OpStoreOffset:
		return p.admitStore(c, prop)
	case wire.OpDeleteOffset:
		return p.admitDelete(c, prop)
	default:
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
		return false
	}
}

// Stage implements loop.Machine.
func (p *Partition) Stage(h *wire.PrepareHeader, body []byte) (loop.Staged, error) {
	if h.Operation != wire.OpSendMessages {
		p.noteOwn(h, body)
		return loop.Staged{}, nil
	}
	base := p.log.Next()
	wire.StampBatch(body, p.number, base, h.Timestamp)
	return p.place(h, body, base), nil
}

// place appends a stamped batch to the log.
func (p *Partition) place(h *wire.PrepareHeader, body []byte, base uint64) loop.Staged {
	at := p.log.Append(body, h.Op)
	p.remember(h, base)
	if !at.Large {
		return loop.Staged{}
	}
	return loop.Staged{
		Large: journal.LargeBody{File: at.File, Pos: at.At.Pos, Data: body},
		At:    journal.Location(at.At),
	}
}

func (p *Partition) remember(h *wire.PrepareHeader, base uint64) {
	p.staged = append(p.staged, stagedOp{op: h.Op, base: base, next: p.log.Next()})
	p.recent.add(h.Client, recentWrite{sequence: h.Request, op: h.Op, base: base}, h.Timestamp)
}

// Unstage implements loop.Machine.
func (p *Partition) Unstage(op uint64) {
	n := len(p.staged)
	for n > 0 && p.staged[n-1].op >= op {
		n--
	}
	if n < len(p.staged) {
		p.log.Cut(p.staged[n].base)
		p.staged = p.staged[:n]
	}
	if p.resetting >= op {
		p.resetting = 0
	}
	p.recent.cut(op)
	p.purged, p.trimTo = p.log.Generation(), 0 // may have been among them
	if p.owing.Store(false); p.offsets.unsettle() {
		p.owe()
	}
}

// Apply implements loop.Machine.
func (p *Partition) Apply(h *wire.PrepareHeader, body []byte, c *link.Call) {
	if c != nil {
		c.ReplyOp = h.Operation
	}
	switch h.Operation {
	case wire.OpSendMessages:
		p.applySend(h, c)
	case wire.OpStoreOffset:
		p.applyStore(h, body, c)
	case wire.OpDeleteOffset:
		p.applyDelete(body, c)
	case wire.OpPurgeTopic:
		p.applyPurge(h, body)
	case wire.OpTruncatePartition:
		p.applyTrim(body)
	case wire.OpSealPartition:
		p.applySeal(body)
	}
}

// Settle implements loop.Machine: what was applied becomes visible to polls.
func (p *Partition) Settle() {
	if p.publishing {
		p.log.Publish(p.published)
		p.publishing = false
	}
	p.payOwed()
}

// fact is what statistics show of the partition.
func (p *Partition) fact() link.Fact {
	st := p.log.Stats()
	f := link.Fact{
		Group: p.id, Segments: uint32(st.Segments), Bytes: uint64(st.Bytes), Messages: st.Next - st.Start,
		Generation: st.Generation, Commit: p.group.Applied(),
	}
	if st.Next > 0 {
		f.CurrentOffset = st.Next - 1
	}
	return f
}

// Pending implements loop.Machine.
func (p *Partition) Pending() bool { return p.log.Stats().Unflushed > 0 }

// Rest implements loop.Machine.
func (p *Partition) Rest() {
	if len(p.staged) == 0 {
		p.staged = nil
	}
	p.log.Rest()
}

// Work implements loop.Machine: committed small batches are copied to their segment.
func (p *Partition) Work(now uint64, force bool) *loop.Work {
	f := p.log.FlushPlan(int64(now)*1000, force)
	if f == nil {
		return nil
	}
	return &loop.Work{Run: f.Run, Done: func(err error) {
		p.log.Flushed(f, err)
		p.replica.fileFailed(p, err)
	}}
}

// Close implements loop.Machine.
func (p *Partition) Close() {
	p.count(false, p.view)
	_ = p.log.Close()
}
