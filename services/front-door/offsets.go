package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

// getOffset serves GetConsumerOffset (client-semantics.md §5.3).
func (s *Session) getOffset() action {
	q, err := wire.DecodeOffsetTarget(s.body)
	if err != nil {
		return s.empty()
	}
	target := s.resolveOffset(q.Consumer, q.Stream, q.Topic)
	if target.topic == nil {
		return s.absent()
	}
	if !target.mayPoll {
		return s.refused(wire.CodeUnauthorized)
	}
	part, group, ok := target.partition(q.Partition.ID)
	if !ok {
		return s.refused(wire.CodePartitionNotFound)
	}
	if !s.consumer(target, q.Consumer) {
		return s.absent()
	}
	s.readPartition(group, part.PurgeGeneration, target.since)
	s.call.Body = s.body
	return s.route(s.core.partitionService(group), (*Session).getOffset, (*Session).polled)
}

// storeOffset serves StoreConsumerOffset; everything that does not resolve is one answer, 20.
func (s *Session) storeOffset() action {
	q, err := wire.DecodeStoreOffset(s.body)
	if err != nil {
		return s.refused(wire.CodeResourceNotFound)
	}
	return s.writeOffset(q.Consumer, q.Stream, q.Topic, q.Partition, (*Session).storeOffset)
}

// deleteOffset serves DeleteConsumerOffset.
func (s *Session) deleteOffset() action {
	q, err := wire.DecodeDeleteOffset(s.body)
	if err != nil {
		return s.refused(wire.CodeResourceNotFound)
	}
	return s.writeOffset(q.Consumer, q.Stream, q.Topic, q.Partition, (*Session).deleteOffset)
}

func (s *Session) writeOffset(consumer wire.Consumer, stream, topic wire.Identifier, at wire.PartitionSelector, again step) action {
	if s.detached() {
		return s.refused(wire.CodeStaleClient)
	}
	target := s.resolveOffset(consumer, stream, topic)
	if target.topic == nil || !at.Set {
		return s.refused(wire.CodeResourceNotFound)
	}
	part, group, ok := target.partition(at.ID)
	if !ok || !s.owns(target, consumer, at.ID) {
		return s.refused(wire.CodeResourceNotFound)
	}
	if !target.mayPoll {
		return s.refused(wire.CodeUnauthorized)
	}
	s.callPartition(group, part.PurgeGeneration, target.since)
	s.call.Body, s.call.BodyStart = s.body, wire.HeaderSize
	return s.route(s.core.partitionService(group), again, (*Session).offsetWritten)
}

func (s *Session) resolveOffset(consumer wire.Consumer, stream, topic wire.Identifier) *route {
	start := 1 + consumer.ID.Size()
	return s.resolve(stream, topic, s.body[start:start+stream.Size()+topic.Size()])
}

// consumer resolves whose offset is meant; false when a group does not exist.
func (s *Session) consumer(target *route, consumer wire.Consumer) bool {
	s.call.ConsumerKind = consumer.Kind
	if consumer.Kind != wire.ConsumerGroup {
		s.call.ConsumerID = consumer.OffsetID()
		return true
	}
	group := target.topic.Group(consumer.ID)
	if group == nil {
		return false
	}
	s.call.ConsumerID, s.call.Generation = group.GroupKey.Group, group.Generation
	return true
}

// owns reports whether the client may write this offset: its own always, a group's only while it
// owns the partition. A pending revocation does not take that away.
func (s *Session) owns(target *route, consumer wire.Consumer, partition uint32) bool {
	if !s.consumer(target, consumer) {
		return false
	}
	if consumer.Kind != wire.ConsumerGroup {
		return true
	}
	return target.topic.Group(consumer.ID).Owns(s.member(), partition)
}

func (s *Session) offsetWritten() action {
	if s.call.Status != 0 {
		return s.refused(s.call.Status)
	}
	s.shown(0)
	out := s.call.Out
	if len(out) == 0 {
		out = wire.AppendSuccess(out)
	}
	return s.committed(s.id, s.header.Operation, out)
}
