package partitionreplica

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// autoCommitClient is the client of offset stores that a poll caused (replica-wire.md 6.3).
var autoCommitClient = wire.U128{Lo: ^uint64(0), Hi: ^uint64(0)}

// admitStore refuses what the log must not hold: an offset that names no message.
func (p *Partition) admitStore(c *link.Call, prop *loop.Proposal) bool {
	if w, ok := p.recent.find(c.Connection, c.Sequence); ok { // others may have stored since
		p.repeated(c, w, emptyResult(c.Out[:0]))
		return false
	}
	req, err := wire.DecodeStoreOffset(c.Body)
	if err != nil {
		c.Refuse(wire.CodeResourceNotFound, link.ReasonNone)
		return false
	}
	k := offsetKey{c.ConsumerKind, c.ConsumerID}
	if p.stale(k, c.Generation) {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBehind)
		return false
	}
	next := p.log.View().Next()
	if p.publishing {
		next = max(next, p.published)
	}
	if req.Offset >= next {
		c.Refuse(wire.CodeInvalidOffset, link.ReasonNone)
		return false
	}
	if !p.offsets.has(k) && p.offsets.count(k.kind) >= p.replica.config.MaxOffsets {
		c.Refuse(wire.CodeConsumerOffsetsLimitReached, link.ReasonNone)
		return false
	}
	p.offsets.settle(k, ^uint64(0))
	p.proposeOffset(prop, wire.OpStoreOffset, c.Connection, c.Sequence, k, req.Offset)
	return true
}

func (p *Partition) admitDelete(c *link.Call, prop *loop.Proposal) bool {
	if w, ok := p.recent.find(c.Connection, c.Sequence); ok {
		p.repeated(c, w, emptyResult(c.Out[:0]))
		return false
	}
	k := offsetKey{c.ConsumerKind, c.ConsumerID}
	if p.stale(k, c.Generation) {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBehind)
		return false
	}
	if _, ok := p.offsets.get(k); !ok {
		c.Refuse(wire.CodeConsumerOffsetNotFound, link.ReasonNone)
		return false
	}
	p.offsets.settle(k, ^uint64(0))
	p.proposeOffset(prop, wire.OpDeleteOffset, c.Connection, c.Sequence, k, 0)
	return true
}

// stale reports whether a consumer group has changed since the request was resolved at generation:
// who may poll and store there has to be asked anew.
func (p *Partition) stale(k offsetKey, generation uint64) bool {
	if k.kind != wire.ConsumerGroup {
		return false
	}
	g := p.replica.follower.View().GroupByKey(metadata.GroupKey{Stream: p.stream, Topic: p.topic, Group: k.id})
	return g == nil || g.Generation > generation
}

// proposeOffset fills a proposal with the logged body of op 161 or 162 (replica-wire.md 6.4).
func (p *Partition) proposeOffset(prop *loop.Proposal, op wire.Operation, client wire.U128, request uint64, k offsetKey, offset uint64) {
	target := wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: k.kind, ID: wire.NumericID(k.id)},
		Stream:   wire.NumericID(p.stream), Topic: wire.NumericID(p.topic), Partition: wire.SelectPartition(p.number),
	}
	buf := make([]byte, wire.HeaderSize, wire.HeaderSize+64)
	if op == wire.OpStoreOffset {
		buf = wire.StoreOffsetRequest{OffsetTarget: target, Offset: offset, Ack: wire.AckQuorum}.Append(buf)
	} else {
		buf = wire.DeleteOffsetRequest{OffsetTarget: target, Ack: wire.AckQuorum}.Append(buf)
	}
	*prop = loop.Proposal{
		Operation: op, Client: client, Request: max(request, 1), Reserved: true,
		Buf: buf, BodyStart: wire.HeaderSize, BodyLen: len(buf) - wire.HeaderSize,
	}
}

// loggedKey reads the offset key of a logged 161 or 162 body.
func loggedKey(c wire.Consumer) offsetKey {
	return offsetKey{c.Kind, c.OffsetID()}
}

func (p *Partition) applyStore(h *wire.PrepareHeader, body []byte, c *link.Call) {
	req, err := wire.DecodeStoreOffset(body)
	if err == nil {
		p.offsets.set(loggedKey(req.Consumer), req.Offset, h.Client == autoCommitClient)
	}
	answerEmpty(c)
}

func (p *Partition) applyDelete(body []byte, c *link.Call) {
	req, err := wire.DecodeDeleteOffset(body)
	if err == nil {
		p.offsets.remove(loggedKey(req.Consumer))
	}
	answerEmpty(c)
}

// answerEmpty is the success of a result-framed op without payload.
func answerEmpty(c *link.Call) {
	if c != nil {
		c.Out = emptyResult(c.Out[:0])
	}
}

func emptyResult(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// proposeAutoCommits puts the offsets promised to pollers into the log, one op per consumer. Those
// there is no room for are owed: the next completion of an op, or the next second, tries again.
func (p *Partition) proposeAutoCommits() {
	p.committing.Store(false)
	if p.closed() != nil || p.Blocked() {
		return
	}
	for _, s := range p.offsets.pending(nil) {
		var prop loop.Proposal
		p.proposeOffset(&prop, wire.OpStoreOffset, autoCommitClient, 1, s.key, s.offset)
		if !p.engine.Loop.Propose(p.group, &prop, nil) {
			p.owe()
			return
		}
		p.offsets.settle(s.key, s.offset)
	}
}

// owe notes that auto-commits wait for room.
func (p *Partition) owe() {
	p.owing.Store(true)
	p.replica.owing.set(p, true)
}

// payOwed has auto-commits proposed for which there was no room.
func (p *Partition) payOwed() {
	if p.owing.Load() && !p.committing.Swap(true) {
		p.owing.Store(false)
		p.engine.Do(p.propose)
	}
}
