package partitionreplica

import (
	"encoding/binary"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/wire"
)

// autoCommitClient is the client of offset stores that a poll caused (replica-wire.md 6.3).
var autoCommitClient = wire.U128{Lo: ^uint64(0), Hi: ^uint64(0)}

// admitStore refuses what the log must not hold: an offset that names no message.
func (p *Partition) admitStore(c *link.Call, prop *loop.Proposal) bool {
	req, err := wire.DecodeStoreOffsetRequest(c.Body)
	if err != nil {
		c.Refuse(wire.CodeResourceNotFound, link.ReasonNone)
		return false
	}
	k := offsetKey{c.ConsumerKind, c.ConsumerID}
	next := p.log.View().Next()
	if p.publishing {
		next = max(next, p.published)
	}
	if req.Offset >= next {
		c.Refuse(wire.CodeInvalidOffset, link.ReasonNone)
		return false
	}
	if !p.offsets.has(k) && p.offsets.count(k.kind) >= p.replica.config.MaxOffsets {
		c.Refuse(wire.CodeTooManyConsumerOffsets, link.ReasonNone)
		return false
	}
	p.proposeOffset(prop, wire.OpStoreOffset, c.Connection, c.Sequence, k, req.Offset)
	return true
}

func (p *Partition) admitDelete(c *link.Call, prop *loop.Proposal) bool {
	k := offsetKey{c.ConsumerKind, c.ConsumerID}
	if _, ok := p.offsets.get(k); !ok {
		c.Refuse(wire.CodeConsumerOffsetNotFound, link.ReasonNone)
		return false
	}
	p.proposeOffset(prop, wire.OpDeleteOffset, c.Connection, c.Sequence, k, 0)
	return true
}

// proposeOffset fills a proposal with the logged body of op 161 or 162 (replica-wire.md 6.4).
func (p *Partition) proposeOffset(prop *loop.Proposal, op wire.Operation, client wire.U128, request uint64, k offsetKey, offset uint64) {
	le := binary.LittleEndian
	buf := make([]byte, wire.HeaderSize, wire.HeaderSize+64)
	buf = append(buf, byte(k.kind))
	buf = wire.AppendNumericIdentifier(buf, k.id)
	buf = wire.AppendNumericIdentifier(buf, p.stream)
	buf = wire.AppendNumericIdentifier(buf, p.topic)
	buf = append(buf, 1)
	buf = le.AppendUint32(buf, p.number)
	if op == wire.OpStoreOffset {
		buf = le.AppendUint64(buf, offset)
	}
	buf = append(buf, 1)
	*prop = loop.Proposal{
		Operation: op, Client: client, Request: max(request, 1),
		Buf: buf, BodyStart: wire.HeaderSize, BodyLen: len(buf) - wire.HeaderSize,
	}
}

// loggedKey reads the offset key of a logged 161 or 162 body.
func loggedKey(c wire.Consumer) offsetKey {
	if c.ID.Kind == wire.IdentifierNumeric {
		return offsetKey{c.Kind, c.ID.ID}
	}
	return offsetKey{c.Kind, wire.HashName(c.ID.Name)}
}

func (p *Partition) applyStore(h *wire.PrepareHeader, body []byte, c *link.Call) {
	req, err := wire.DecodeStoreOffsetRequest(body)
	if err == nil {
		p.offsets.set(loggedKey(req.Consumer), req.Offset, h.Client == autoCommitClient)
	}
	answerEmpty(c)
}

func (p *Partition) applyDelete(body []byte, c *link.Call) {
	req, err := wire.DecodeDeleteOffsetRequest(body)
	if err == nil {
		p.offsets.remove(loggedKey(req.Consumer))
	}
	answerEmpty(c)
}

// answerEmpty is the success of a result-framed op without payload.
func answerEmpty(c *link.Call) {
	if c != nil {
		c.Out = append(c.Out[:0], 0, 0, 0, 0)
	}
}

// proposeAutoCommits puts the offsets promised to pollers into the log, one op per consumer.
func (p *Partition) proposeAutoCommits() {
	p.committing.Store(false)
	if p.fence.Load() != nil {
		return
	}
	for _, s := range p.offsets.pending(nil) {
		var prop loop.Proposal
		p.proposeOffset(&prop, wire.OpStoreOffset, autoCommitClient, 1, s.key, s.offset)
		p.engine.Loop.Propose(p.group, &prop, nil)
	}
}
