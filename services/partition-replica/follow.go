package partitionreplica

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// follow brings the hosted partitions in line with every newer metadata view.
func (r *Replica) follow() {
	defer r.gone.Done()
	for {
		changed := r.follower.Changed()
		r.Follow()
		select {
		case <-changed:
		case <-r.stop:
			return
		}
	}
}

// Follow brings the hosted partitions in line with the current metadata view: deletes, purges and the
// offsets of deleted consumer groups. The first look covers everything, later ones what changed.
// Start does it by itself unless the engines are stepped.
func (r *Replica) Follow() {
	v := r.follower.View()
	if r.seen == nil {
		for _, e := range r.engines {
			for _, p := range r.of(e) {
				r.reconcile(p, v)
			}
		}
		for _, s := range v.Streams() {
			for _, t := range s.Topics() {
				r.moves.noteTopic(t)
			}
		}
		r.sealedPartitions()
	} else {
		v.Changes(r.seen, func(older, newer *metadata.Topic) bool {
			r.reconcileTopic(older, v)
			r.reconcileTopic(newer, v)
			r.moves.noteTopic(newer)
			return true
		})
	}
	r.seen = v
}

// reconcileTopic looks at the hosted partitions of one state of a topic.
func (r *Replica) reconcileTopic(t *metadata.Topic, v *metadata.View) {
	if t == nil {
		return
	}
	for _, part := range t.AllPartitions() {
		if p := r.find(t.GroupID(&part)); p != nil {
			r.reconcile(p, v)
		}
		if origin, ok := t.OriginID(&part); ok {
			if p := r.find(origin); p != nil {
				r.reconcile(p, v)
			}
		}
	}
}

func (r *Replica) reconcile(p *Partition, v *metadata.View) {
	_, _, known := v.PartitionByGroupID(p.id)
	_, _, succeeded := v.Successor(p.id)
	switch {
	case known:
		p.engine.Do(func() {
			p.followMetadata()
			p.dropDeletedGroups(v)
			p.proposeTrim(segment.Retention{})
		})
	case succeeded: // what it has, the successor may need
	case v.DeletedGroup(p.id):
		p.engine.Do(func() { r.remove(p) })
	default:
		// Absence is not a delete: a log that lost its tail must not take data with it.
		r.metrics.quarantined.Inc()
		r.log.Warn("partition is not in the metadata and no delete is proven: files are kept", "group", p.id)
	}
}

// remove takes a deleted partition out of service; its files go to the trash.
func (r *Replica) remove(p *Partition) {
	if r.find(p.id) != p {
		return
	}
	r.mu.Lock()
	delete(r.partitions, p.id)
	n := len(r.partitions)
	r.mu.Unlock()
	r.metrics.partitions.Set(float64(n))
	r.held.set(p, false)
	r.owing.set(p, false)
	removal := p.log.Drop()
	p.engine.Remove(p.group)
	if removal != nil {
		p.engine.Background(func() error { return removal.Run(r.seconds()) }, func(err error) { r.fileFailed(p, err) })
	}
}

// followMetadata orders a purge the metadata asks for before anything that is admitted after it:
// messages sent after a purge's reply are kept, by construction.
func (p *Partition) followMetadata() {
	want := p.wantedGeneration()
	if want <= p.purged || p.closed() != nil {
		return
	}
	if p.own(wire.OpPurgeTopic, wire.PartitionPurge{Generation: want}.Append(make([]byte, wire.HeaderSize))) {
		p.purged = want
	}
}

// own proposes an op of the partition itself; body has room for the prepare header in front. False
// when there is no room for it now.
func (p *Partition) own(op wire.Operation, body []byte) bool {
	prop := loop.Proposal{Operation: op, Reserved: true, Buf: body, BodyStart: wire.HeaderSize, BodyLen: len(body) - wire.HeaderSize}
	return p.engine.Loop.Propose(p.group, &prop, nil)
}

func (p *Partition) applyPurge(h *wire.PrepareHeader, body []byte) {
	if p.resetting == h.Op {
		p.resetting = 0
	}
	purge, err := wire.DecodePartitionPurge(body)
	if err != nil || purge.Generation <= p.log.Generation() {
		return
	}
	p.Settle()
	p.offsets.purge(purge.Generation)
	p.log.Purge(purge.Generation)
	p.published, p.publishing, p.trimTo = 0, false, 0
}

func (p *Partition) applyTrim(body []byte) {
	if trim, err := wire.DecodePartitionTrim(body); err == nil {
		p.Settle()
		p.log.Trim(trim.UpToOffset)
	}
}

func (p *Partition) runRemoval(removal *segment.Removal) {
	if removal == nil {
		return
	}
	p.engine.Background(func() error { return removal.Run(p.replica.seconds()) }, func(err error) { p.replica.fileFailed(p, err) })
}

// proposeTrim proposes to remove the sealed segments that retention or a DeleteSegments watermark
// lets go and no consumer still needs.
func (p *Partition) proposeTrim(rt segment.Retention) {
	if p.closed() != nil || p.Blocked() {
		return
	}
	rt.Barrier = segment.NoBarrier
	if low, ok := p.offsets.barrier(); ok {
		rt.Barrier = low
	}
	if _, part, ok := p.replica.follower.View().PartitionByGroupID(p.id); ok && part.TrimTo > 0 && part.PurgeGeneration == p.log.Generation() {
		rt.Watermark, rt.HasWatermark = part.TrimTo, true
	}
	p.replica.held.set(p, rt.HasWatermark && p.log.View().Start() <= rt.Watermark)
	upTo, ok := p.log.TrimPlan(rt)
	if !ok || upTo+1 <= p.trimTo {
		return
	}
	if p.own(wire.OpTruncatePartition, wire.PartitionTrim{UpToOffset: upTo}.Append(make([]byte, wire.HeaderSize))) {
		p.trimTo = upTo + 1
	}
}

// dropDeletedGroups proposes to forget the offsets of consumer groups that no longer exist.
func (p *Partition) dropDeletedGroups(v *metadata.View) {
	if p.Blocked() {
		return
	}
	for _, s := range p.offsets.list() {
		if s.key.kind != wire.ConsumerGroup {
			continue
		}
		if v.GroupByKey(metadata.GroupKey{Stream: p.stream, Topic: p.topic, Group: s.key.id}) == nil {
			var prop loop.Proposal
			p.proposeOffset(&prop, wire.OpDeleteOffset, wire.U128{}, 1, s.key, 0)
			p.engine.Loop.Propose(p.group, &prop, nil)
		}
	}
}

// full says why a send of so many bytes has to be refused, or ReasonNone.
func (r *Replica) full(e *loop.Engine, bytes int) link.Reason {
	if e.Full() || !r.space.take(r.config, bytes) {
		return link.ReasonDiskFull
	}
	return link.ReasonNone
}
