package frontdoor

import (
	"sync"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// removed keeps what removed partitions held. A topic's messages and size go on counting them, as the
// reference's counters do, until the topic is purged or this process ends.
type removed struct {
	mu     sync.Mutex
	topics map[metadata.TopicKey]removedTotals
}

type removedTotals struct {
	createdAt uint64 // of the topic, so that a later one with its ids starts at nothing
	totals
}

func newRemoved() *removed { return &removed{topics: make(map[metadata.TopicKey]removedTotals)} }

// of is what the topic's removed partitions held; no segments, which are gone.
func (r *removed) of(topic *metadata.Topic) totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.topics[topic.Key()]; t.createdAt == topic.CreatedAt {
		return t.totals
	}
	return totals{}
}

func (r *removed) add(topic *metadata.Topic, t totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.topics[topic.Key()]
	if sum.createdAt != topic.CreatedAt {
		sum = removedTotals{createdAt: topic.CreatedAt}
	}
	sum.size, sum.messages = sum.size+t.size, sum.messages+t.messages
	r.topics[topic.Key()] = sum
}

func (r *removed) purge(topic metadata.TopicKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.topics, topic)
}

// deletePartitions asks what the partitions to be removed hold, then orders their removal.
func (s *Session) deletePartitions() action {
	q, _ := wire.DecodePartitions(s.body)
	topic, code := s.view.Topic(q.Stream, q.Topic)
	if code != 0 || q.Count > topic.Partitions() || !s.can(metadata.RightManageTopic, topic.Stream, topic.ID) {
		s.leaving = totals{}
		return s.order(s.body)
	}
	s.groups = appendTopicGroups(s.groups[:0], topic)[topic.Partitions()-q.Count:]
	return s.then(actFacts, (*Session).deletePartitionsKnown)
}

func (s *Session) deletePartitionsKnown() action {
	s.leaving = totals{}
	for _, f := range s.facts {
		s.leaving.size += f.Bytes
		s.leaving.messages += f.Messages
	}
	return s.order(s.body)
}

// countRemoved brings the counts of removed partitions in line with an operation that succeeded.
func (s *Session) countRemoved(op wire.Operation) {
	if !succeeded(s.call.Out) {
		return
	}
	switch op {
	case wire.OpDeletePartitions:
		q, _ := wire.DecodePartitions(s.body)
		if topic, code := s.view.Topic(q.Stream, q.Topic); code == 0 {
			s.core.removed.add(topic, s.leaving)
		}
	case wire.OpPurgeTopic:
		q, _ := wire.DecodeTopicTarget(s.body)
		if topic, code := s.view.Topic(q.Stream, q.Topic); code == 0 {
			s.core.removed.purge(topic.Key())
		}
	case wire.OpPurgeStream:
		q, _ := wire.DecodeStreamTarget(s.body)
		if stream := s.view.Stream(q.Stream); stream != nil {
			for id := range stream.Topics() {
				s.core.removed.purge(metadata.TopicKey{Stream: stream.ID, Topic: id})
			}
		}
	}
}
