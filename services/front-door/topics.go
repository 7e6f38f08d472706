package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// getTopic serves GetTopic: a topic with its partitions, or nothing.
func (s *Session) getTopic() action {
	q, err := wire.DecodeTopicTarget(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	topic, code := s.view.Topic(q.Stream, q.Topic)
	if code != 0 {
		return s.empty()
	}
	if !s.can(metadata.RightReadTopic, topic.Stream, topic.ID) {
		return s.refused(wire.CodeUnauthorized)
	}
	s.groups = appendTopicGroups(s.groups[:0], topic)
	return s.then(actFacts, (*Session).topicFacts)
}

func (s *Session) topicFacts() action {
	q, _ := wire.DecodeTopicTarget(s.body)
	topic, _ := s.view.Topic(q.Stream, q.Topic)
	t, _ := s.core.sumTopic(topic, s.facts)
	out, known := s.topicRecord(topic, t).Append(s.reset()), s.facts
	for _, p := range topic.AllPartitions() {
		f := current(&p, known[0])
		known = known[1:]
		out = wire.PartitionRecord{
			ID: p.ID, CreatedAt: p.CreatedAt, SegmentsCount: max(1, f.Segments), CurrentOffset: f.CurrentOffset,
			SizeBytes: f.Bytes, MessagesCount: f.Messages,
		}.Append(out)
	}
	return s.answer(out)
}

// getTopics serves GetTopics: the only list that starts with its length. A missing stream has no
// topics.
func (s *Session) getTopics() action {
	q, err := wire.DecodeStreamTarget(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	stream := s.view.Stream(q.Stream)
	if stream == nil {
		return s.answer(wire.AppendCount(s.reset(), 0))
	}
	if !s.can(metadata.RightListTopics, stream.ID, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	s.groups = appendGroups(s.groups[:0], stream)
	return s.then(actFacts, (*Session).topicsFacts)
}

func (s *Session) topicsFacts() action {
	q, _ := wire.DecodeStreamTarget(s.body)
	stream, known := s.view.Stream(q.Stream), s.facts
	out := wire.AppendCount(s.reset(), uint32(stream.TopicCount()))
	for _, topic := range stream.Topics() {
		var t totals
		t, known = s.core.sumTopic(topic, known)
		out = s.topicRecord(topic, t).Append(out)
	}
	return s.answer(out)
}

func (s *Session) topicRecord(topic *metadata.Topic, t totals) wire.TopicRecord {
	r := topic.Record(s.sdk.Generation)
	r.SizeBytes, r.MessagesCount = t.size, t.messages
	return r
}

// describeOptions serves DescribeOptions. Only topics have options.
func (s *Session) describeOptions() action {
	q, err := wire.DecodeDescribeOptions(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	if q.Scope != wire.ScopeTopic {
		return s.answer(wire.AppendCount(s.reset(), 0))
	}
	return s.answer(wire.AppendTopicCatalog(s.reset(), s.sdk.Generation))
}
