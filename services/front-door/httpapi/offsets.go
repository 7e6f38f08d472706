package httpapi

import (
	"math"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

type offsetJSON struct {
	PartitionID   uint32 `json:"partition_id"`
	CurrentOffset uint64 `json:"current_offset"`
	StoredOffset  uint64 `json:"stored_offset"`
}

// getOffset serves GET …/consumer-offsets. Whatever is missing is one answer.
func getOffset(c *call) error {
	topic, err := c.topic()
	if err != nil {
		return err
	}
	query := c.query()
	target := wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: query.consumer()}, Stream: topic.Stream, Topic: topic.Topic,
		Partition: wire.SelectPartition(uint32(query.uint("partition_id", 32, 0))),
	}
	query.consistency()
	if err := query.err(); err != nil {
		return err
	}
	r := c.api.local.Read(c.caller.user, wire.CmdGetOffset, target.Append(nil))
	defer r.Release()
	switch {
	case r.Status == wire.CodePartitionNotFound || r.Status == 0 && len(r.Body) == 0:
		return errMissing
	case r.Status != 0:
		return refusal(r.Status)
	}
	o, err := wire.DecodeOffset(r.Body)
	if err != nil {
		return err
	}
	return c.json(offsetJSON{o.Partition, o.CurrentOffset, o.StoredOffset})
}

// storeOffset serves PUT …/consumer-offsets.
func storeOffset(c *call) error {
	topic, err := c.topic()
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := wire.StoreOffsetRequest{Ack: wire.AckQuorum, OffsetTarget: wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: topic.Stream, Topic: topic.Topic,
	}}
	b.record([]string{"offset", "partition_id", "consumer_id"}, 1, func(i int) {
		switch i {
		case 0:
			q.Offset = b.uint(math.MaxUint64)
		case 1:
			if !b.null() {
				q.Partition = wire.SelectPartition(uint32(b.uint(math.MaxUint32)))
			}
		case 2:
			q.Consumer.ID = b.consumer()
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	return c.writeOffset(&q.OffsetTarget, wire.OpStoreOffset, q.Append)
}

// consumer reads a consumer's number or name.
func (r *reader) consumer() wire.Identifier {
	if r.next() != '"' {
		return wire.NumericID(uint32(r.uint(math.MaxUint32)))
	}
	id, ok := identifier(string(r.str()))
	if !ok {
		r.unfit("Expected a consumer's number or name.")
	}
	return id
}

// deleteOffset serves DELETE …/consumer-offsets/{consumer}.
func deleteOffset(c *call) error {
	topic, err := c.topic()
	if err != nil {
		return err
	}
	consumer, err := c.id(2)
	if err != nil {
		return err
	}
	query := c.query()
	q := wire.DeleteOffsetRequest{Ack: wire.AckQuorum, OffsetTarget: wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: consumer}, Stream: topic.Stream, Topic: topic.Topic,
		Partition: query.optional("partition_id"),
	}}
	if err := query.err(); err != nil {
		return err
	}
	return c.writeOffset(&q.OffsetTarget, wire.OpDeleteOffset, q.Append)
}

// writeOffset performs an offset write. The grant is judged before the partition.
func (c *call) writeOffset(target *wire.OffsetTarget, op wire.Operation, body func([]byte) []byte) error {
	if !c.mayOn(target.Stream, target.Topic, metadata.RightPoll) {
		return refusal(wire.CodeUnauthorized)
	}
	if err := c.api.writes.enter(c.caller.key); err != nil {
		return err
	}
	defer c.api.writes.leave(c.caller.key)
	encoded := body(make([]byte, wire.HeaderSize))
	f, err := c.api.frame(len(encoded))
	if err != nil {
		return err
	}
	copy(f.Bytes(), encoded)
	r := c.api.local.WritePartition(c.caller.user, op, f)
	defer r.Release()
	if r.Status == wire.CodeTransientNotCommitted {
		return errOffsetUnsure
	}
	if r.Status != 0 {
		return refusal(r.Status)
	}
	return c.noContent(nil)
}

// mayOn reports whether the caller has a right on a topic; on one that does not exist everybody does.
func (c *call) mayOn(stream, topic wire.Identifier, right metadata.Right) bool {
	view := c.api.local.View()
	t, code := view.Topic(stream, topic)
	return code != 0 || view.Can(c.caller.user, right, t.Stream, t.ID)
}
