package frontdoor

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// getGroup serves GetConsumerGroup. A missing parent is a status, a missing group an empty answer.
func (s *Session) getGroup() action {
	q, err := wire.DecodeGroupTarget(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	topic, act, ok := s.readableTopic(q.Stream, q.Topic)
	if !ok {
		return act
	}
	group := topic.Group(q.Group)
	if group == nil {
		return s.empty()
	}
	return s.answer(group.AppendDetails(s.reset()))
}

// getGroups serves GetConsumerGroups: the groups of a topic without their members.
func (s *Session) getGroups() action {
	q, err := wire.DecodeTopicTarget(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	topic, act, ok := s.readableTopic(q.Stream, q.Topic)
	if !ok {
		return act
	}
	out := s.reset()
	for _, group := range topic.Groups() {
		out = group.Record().Append(out)
	}
	return s.answer(out)
}

// readableTopic resolves a topic whose groups the user may read; else act is the answer.
func (s *Session) readableTopic(stream, id wire.Identifier) (topic *metadata.Topic, act action, ok bool) {
	topic, code := s.view.Topic(stream, id)
	switch {
	case code != 0:
		return nil, s.refused(code), false
	case !s.can(metadata.RightReadTopic, topic.Stream, topic.ID):
		return nil, s.refused(wire.CodeUnauthorized), false
	}
	return topic, 0, true
}

// syncGroup serves SyncConsumerGroup: what the caller may poll now. Whoever is no member, for
// whatever reason, gets an empty answer.
func (s *Session) syncGroup() action {
	q, err := wire.DecodeGroupTarget(s.body)
	if err != nil {
		return s.empty()
	}
	group, code := s.view.Group(q.Stream, q.Topic, q.Group)
	if code != 0 {
		return s.empty()
	}
	member := group.Member(s.bound.client)
	if member == nil {
		return s.empty()
	}
	return s.answer(wire.GroupAssignment{
		Generation: group.Generation, Partitions: slices.Collect(member.PollablePartitions()),
	}.Append(s.reset()))
}

// isMember reports whether the client is in any consumer group.
func isMember(view *metadata.View, client wire.U128) bool { return len(view.Memberships(client)) > 0 }
