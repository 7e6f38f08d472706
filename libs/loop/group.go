package loop

import (
	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Group is one hosted consensus group: its core, its machine and the prepares between them that
// are not applied yet.
type Group struct {
	ID      uint64
	Machine Machine

	core    *vsr.Replica
	synced  bool // the policy's ack completion: synced, else written
	tail    tail
	applied wire.PrepareHeader // of the highest applied op
	queue   []queued           // admitted when the pipeline has room
	failed  uint64             // lowest op whose write failed; the group refuses until the tail is cut
	gone    bool
	unborn  bool   // its state is not in a checkpoint yet: it takes no part
	heir    *Group // the group that took its state over, when it is gone
	damage  damage
	peers   *peering // nil: a group of one

	touched, settle, dirty bool
	warm                   uint8 // ticks until it counts as idle; 0: it does
}

// damage is what a restart could not read of a group. Checkpoints must not take it for the group.
type damage struct {
	found  bool           // the log stops early, or the machine can not vouch for its state
	image  *journal.Image // then the one the state came from goes into every checkpoint as it was
	fenced bool           // the log above the images is given up, kept aside
}

// queued is a call that waits for the pipeline.
type queued struct {
	call  *link.Call
	since vsr.Tick
}

// refuseQueue answers the calls that wait for the pipeline: nothing of them was proposed.
func (g *Group) refuseQueue(why link.Reason) {
	for _, q := range g.queue {
		q.call.Refuse(wire.CodeTransientNotAccepted, why)
	}
	g.queue = nil
}

// rest gives back the buffers of an idle group. False: it is not idle yet.
func (g *Group) rest() bool {
	if g.tail.count > 0 || len(g.queue) > 0 {
		return false
	}
	g.tail.ring, g.queue = nil, nil
	g.core.Trim()
	g.Machine.Rest()
	return true
}

// Applied is the highest applied op.
func (g *Group) Applied() uint64 { return g.tail.first - 1 }

// entry is one prepare between staging and apply.
type entry struct {
	header wire.PrepareHeader
	frame  *buffer.Frame
	bytes  []byte // 256-byte header, then the body
	call   *link.Call
	floor  journal.LSN // its record is not below
}

func (e *entry) body() []byte { return e.bytes[wire.HeaderSize:] }

// tail holds the entries of ops first, first+1, … in a ring that grows with the pipeline and is
// given back when the group falls idle (rest): an idle group owns no buffer.
type tail struct {
	ring  []entry
	first uint64 // op of the oldest entry; the next op when empty
	count int
}

func (t *tail) next() uint64 { return t.first + uint64(t.count) }

func (t *tail) at(op uint64) *entry {
	return &t.ring[op%uint64(len(t.ring))]
}

func (t *tail) push(e entry) {
	if t.count == len(t.ring) {
		t.grow()
	}
	op := t.next()
	t.ring[op%uint64(len(t.ring))] = e
	t.count++
}

func (t *tail) grow() {
	old := *t
	t.ring = make([]entry, max(4, 2*len(old.ring)))
	for i := range old.count {
		op := old.first + uint64(i)
		t.ring[op%uint64(len(t.ring))] = *old.at(op)
	}
}

// pop drops the oldest entry after it was applied.
func (t *tail) pop() {
	t.at(t.first).drop()
	t.first++
	t.count--
}

// cut drops the entries from op on and returns how many there were.
func (t *tail) cut(op uint64) int {
	n := 0
	for t.count > 0 && t.next()-1 >= op {
		t.at(t.next() - 1).drop()
		t.count--
		n++
	}
	return n
}

func (e *entry) drop() {
	if e.frame != nil {
		e.frame.Release()
	}
	*e = entry{}
}

// batch is one round under construction or in flight, with the highest op of each group in it.
type batch struct {
	round journal.Round
	marks []mark
	notes []note
	bytes int
	bulk  bool // holds ops that may not use the journal's reserve
}

type mark struct {
	group *Group
	op    uint64 // highest op of the group in this round, below first if none of them counts any more
	first uint64 // lowest
}

func (b *batch) add(g *Group, op uint64, rec journal.Record, large journal.LargeBody) {
	if n := len(b.marks); n > 0 && b.marks[n-1].group == g {
		b.marks[n-1].op = op
	} else {
		b.marks = append(b.marks, mark{group: g, op: op, first: op})
	}
	b.round.Records = append(b.round.Records, rec)
	b.bytes += len(rec.Frame)
	if large.File != nil {
		b.round.Large = append(b.round.Large, large)
	}
}

func (b *batch) reset() {
	clear(b.round.Records)
	clear(b.round.Large)
	clear(b.marks)
	clear(b.notes)
	b.round = journal.Round{Records: b.round.Records[:0], Large: b.round.Large[:0]}
	b.marks, b.notes, b.bytes, b.bulk = b.marks[:0], b.notes[:0], 0, false
}
