package partitionreplica

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// polledHeader is the part of a poll reply before the batches: partition, current offset, count.
const polledHeader = 16

// poll answers on the caller's goroutine from the published view; it enters no loop.
func (r *Replica) poll(c *link.Call) {
	c.ReplyOp = wire.OpNonReplicated
	_, _, number, _ := wire.SplitGroupID(c.Group)
	req, err := wire.DecodePollMessages(c.Body)
	if err != nil {
		r.emptyPoll(c, 0, 0)
		return
	}
	p := r.find(c.Group)
	if !r.serves(p, c) {
		return
	}
	if p == nil || p.purging() {
		r.emptyPoll(c, number, 0)
		return
	}
	key := offsetKey{c.ConsumerKind, c.ConsumerID}
	if p.stale(key, c.Generation) {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBehind)
		return
	}
	for {
		again := r.pollView(c, p, &req, key)
		if !again {
			return
		}
	}
}

// pollView serves one poll from the current view; true asks to try again, on a newer one or, because a
// single batch is more than the caller can pass on, for fewer messages of it.
func (r *Replica) pollView(c *link.Call, p *Partition, req *wire.PollMessagesRequest, key offsetKey) (again bool) {
	v := p.log.View()
	q := segment.Query{Kind: segment.Kind(req.Strategy.Kind), Value: req.Strategy.Value, Count: req.Count}
	if req.Strategy.Kind == wire.StrategyNext {
		q.Kind, q.Value = segment.Offset, 0
		if at, ok := p.offsets.get(key); ok {
			q.Value = at + 1
		}
	}
	most := r.config.MaxPoll
	if c.MaxReply > 0 {
		most = min(most, c.MaxReply-wire.HeaderSize-polledHeader)
	}
	plan, outcome := v.Plan(q, most)
	if outcome == segment.Cold {
		if err := plan.Resolve(); err != nil {
			return r.pollFailed(c, p, err)
		}
	}
	if outcome == segment.Empty || plan.Size() == 0 {
		if p.closed() != nil {
			// What stood there is lost or unreadable: an empty success would say that nothing ever did.
			c.Refuse(wire.CodeCannotReadMessage, link.ReasonNone)
			return false
		}
		r.emptyPoll(c, p.number, v.Current())
		return false
	}
	frame, ok := r.pool.Try(wire.HeaderSize + polledHeader + plan.Size())
	if !ok {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBudget)
		return false
	}
	b := frame.Bytes()
	n, err := plan.Read(b[wire.HeaderSize+polledHeader:])
	if err != nil {
		frame.Release()
		return r.pollFailed(c, p, err)
	}
	frame.Resize(wire.HeaderSize + polledHeader + n)
	if size := frame.Len(); c.MaxReply > 0 && size > c.MaxReply && plan.Messages() > 1 {
		frame.Release()
		req.Strategy = wire.Strategy{Kind: wire.StrategyOffset, Value: plan.FirstOffset()}
		req.Count = max(1, uint32(uint64(plan.Messages())*uint64(c.MaxReply)/uint64(size)))
		return true
	}
	putPolled(b[wire.HeaderSize:], p.number, v.Current(), plan.Messages())
	if plan.Messages() > 0 {
		p.polledUpTo(c, key, plan.LastOffset(), v.Generation(), req.AutoCommit)
	}
	r.metrics.polled.Add(float64(n))
	c.OutFrame = frame
	c.Finish()
	return false
}

func putPolled(b []byte, partition uint32, current uint64, messages uint32) {
	le := binary.LittleEndian
	le.PutUint32(b, partition)
	le.PutUint64(b[4:], current)
	le.PutUint32(b[12:], messages)
}

func (r *Replica) emptyPoll(c *link.Call, partition uint32, current uint64) {
	var b [polledHeader]byte
	putPolled(b[:], partition, current, 0)
	c.Out = append(c.Out[:0], b[:]...)
	c.Finish()
}

// pollFailed answers a read that met damage: a typed status, never an empty success that would
// leave a consumer standing there for ever.
func (r *Replica) pollFailed(c *link.Call, p *Partition, err error) (again bool) {
	if errors.Is(err, segment.ErrTrimmed) {
		return true
	}
	var d *segment.Damage
	if errors.As(err, &d) {
		if r.damaged(p, d) && p.group.Nodes() != nil { // the next primary has it
			c.View, c.Primary = p.group.View(), p.group.LeaderIndex()
			c.Refuse(wire.CodeTransientNotAccepted, link.ReasonViewChange)
			return false
		}
		c.Refuse(wire.CodeCannotReadMessage, link.ReasonNone)
		return false
	}
	r.log.Error("poll failed", "group", p.id, "error", err)
	c.Refuse(wire.CodeIoError, link.ReasonNone)
	return false
}

// polledUpTo remembers what a consumer was given and promises its auto-commit, unless its group has
// changed meanwhile: then the messages may be another member's.
func (p *Partition) polledUpTo(c *link.Call, key offsetKey, last, generation uint64, commit bool) {
	if p.stale(key, c.Generation) {
		return
	}
	if key.kind == wire.ConsumerGroup {
		p.offsets.mark(key.id, c.Header.Client, last)
	}
	if commit && p.offsets.advance(key, last, generation) && !p.committing.Swap(true) {
		p.engine.Do(p.propose)
	}
}

// purging reports whether the metadata asks for a purge this partition has not applied: what is
// stored is gone for every reader already.
func (p *Partition) purging() bool {
	return p.wantedGeneration() > p.log.View().Generation()
}

// wantedGeneration is the purge generation that the newest metadata asks for. Readers and the loop look at it at
// the same time: what one of them finds in an older view must not stand for a newer one.
func (p *Partition) wantedGeneration() uint64 {
	v, known := p.replica.follower.View(), p.wanted.Load()
	if known != nil && known.view == v {
		return known.generation
	}
	now := &wanted{view: v}
	if _, part, ok := v.PartitionByGroupID(p.id); ok {
		now.generation = part.PurgeGeneration
	} else if known != nil {
		now.generation = known.generation
	}
	p.wanted.Store(now)
	return now.generation
}

// wanted is what one view of the metadata asks for.
type wanted struct {
	view       *metadata.View
	generation uint64
}

// storedOffset answers GetOffset from the replicated table.
func (r *Replica) storedOffset(c *link.Call) {
	c.ReplyOp = wire.OpNonReplicated
	p := r.find(c.Group)
	if !r.serves(p, c) {
		return
	}
	if p == nil || p.purging() {
		c.Finish()
		return
	}
	if at, ok := p.offsets.get(offsetKey{c.ConsumerKind, c.ConsumerID}); ok {
		le := binary.LittleEndian
		c.Out = le.AppendUint32(c.Out[:0], p.number)
		c.Out = le.AppendUint64(c.Out, p.log.View().Current())
		c.Out = le.AppendUint64(c.Out, at)
	}
	c.Finish()
}
