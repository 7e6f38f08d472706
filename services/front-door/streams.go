package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// totals sum the facts of partitions.
type totals struct {
	size, messages uint64
	segments       uint32
}

func (t *totals) add(one totals) {
	t.size, t.messages, t.segments = t.size+one.size, t.messages+one.messages, t.segments+one.segments
}

// getStream serves GetStream: a stream with its topics, or nothing.
func (s *Session) getStream() action {
	q, err := wire.DecodeStreamTarget(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	stream := s.view.Stream(q.Stream)
	if stream == nil {
		return s.empty()
	}
	if !s.can(metadata.RightReadStream, stream.ID, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	s.groups = appendGroups(s.groups[:0], stream)
	return s.then(actFacts, (*Session).streamFacts)
}

func (s *Session) streamFacts() action {
	q, _ := wire.DecodeStreamTarget(s.body)
	stream := s.view.Stream(q.Stream)
	known := s.facts
	all, _ := s.core.sumStream(stream, known)
	out := streamRecord(stream, all).Append(s.reset())
	for _, topic := range stream.Topics() {
		var t totals
		t, known = s.core.sumTopic(topic, known)
		out = s.topicRecord(topic, t).Append(out)
	}
	return s.answer(out)
}

// getStreams serves GetStreams: every stream by id.
func (s *Session) getStreams() action {
	if !s.can(metadata.RightListStreams, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	s.groups = s.groups[:0]
	for _, stream := range s.view.Streams() {
		s.groups = appendGroups(s.groups, stream)
	}
	return s.then(actFacts, (*Session).streamsFacts)
}

func (s *Session) streamsFacts() action {
	out, known := s.reset(), s.facts
	for _, stream := range s.view.Streams() {
		var t totals
		t, known = s.core.sumStream(stream, known)
		out = streamRecord(stream, t).Append(out)
	}
	return s.answer(out)
}

func streamRecord(stream *metadata.Stream, t totals) wire.StreamRecord {
	r := stream.Record()
	r.SizeBytes, r.MessagesCount = t.size, t.messages
	return r
}

// appendGroups lists the consensus groups of a stream's partitions, by topic and partition.
func appendGroups(dst []uint64, stream *metadata.Stream) []uint64 {
	for _, topic := range stream.Topics() {
		dst = appendTopicGroups(dst, topic)
	}
	return dst
}

func appendTopicGroups(dst []uint64, topic *metadata.Topic) []uint64 {
	for _, p := range topic.AllPartitions() {
		dst = append(dst, topic.GroupID(&p))
	}
	return dst
}

// sumStream sums the facts of a stream's partitions, which known starts with, and returns the rest.
func (c *Core) sumStream(stream *metadata.Stream, known []link.Fact) (t totals, rest []link.Fact) {
	for _, topic := range stream.Topics() {
		var one totals
		one, known = c.sumTopic(topic, known)
		t.add(one)
	}
	return t, known
}

// sumTopic is sumStream for one topic, with what its removed partitions held. A partition counts at
// least one segment.
func (c *Core) sumTopic(topic *metadata.Topic, known []link.Fact) (t totals, rest []link.Fact) {
	t = c.removed.of(topic)
	for _, p := range topic.AllPartitions() {
		f := current(&p, known[0])
		known = known[1:]
		t.size += f.Bytes
		t.messages += f.Messages
		t.segments += max(1, f.Segments)
	}
	return t, known
}

// current is what a partition's facts say once the purges of the view are counted in: facts of an
// older generation are of messages that are gone.
func current(p *metadata.Partition, f link.Fact) link.Fact {
	if f.Generation < p.PurgeGeneration {
		return link.Fact{Group: f.Group}
	}
	return f
}
