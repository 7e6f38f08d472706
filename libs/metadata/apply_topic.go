package metadata

import (
	"cmp"

	"github.com/whippet-mq/whippet/libs/wire"
)

func (v *View) createTopic(h *wire.PrepareHeader, body []byte) ([]byte, wire.Code) {
	q, err := wire.DecodeLoggedCreateTopic(body)
	if err != nil {
		return nil, wire.CodeInvalidCommand
	}
	s, code := v.targetStream(h, q.Stream, RightCreateTopic)
	if code != 0 {
		return nil, code
	}
	name := string(q.Name)
	if _, taken := s.topicNames.Get(name); taken {
		return nil, wire.CodeTopicNameAlreadyExists
	}
	id := lowestFree(s.topics)
	if id >= wire.MaxTopics {
		return nil, wire.CodeTooManyTopics
	}
	if code := checkAssignments(q.Assignments, q.PartitionsCount, 0); code != 0 {
		return nil, code
	}
	t := &Topic{
		Stream: s.ID, ID: id, Name: name, CreatedAt: h.Timestamp,
		groups:     newMap[uint32, *Group](cmp.Compare[uint32]),
		groupNames: newMap[string, uint32](cmp.Compare[string]),
	}
	if code := t.configure(q.Explicit, q.Derived); code != 0 {
		return nil, code
	}
	v.Revision++
	t.partitions = sortedMap(cmp.Compare[uint32], len(q.Assignments), func(i int) (uint32, Partition) {
		return uint32(i), v.partition(t.Key(), uint32(i), &q.Assignments[i], h.Timestamp)
	})
	v.noteAssignments(q.Assignments)
	changed := *s
	changed.topics = s.topics.set(id, t)
	changed.topicNames = s.topicNames.set(name, id)
	v.streams = v.streams.set(s.ID, &changed)
	return t.AppendCreated(nil, wire.GenerationSnapshot), 0
}

// checkAssignments tests that the logged partitions are 0..count-1 and fit behind the existing ones.
func checkAssignments(list []wire.Assignment, count, existing uint32) wire.Code {
	if uint64(len(list)) != uint64(count) {
		return wire.CodeInvalidPartitionsCount
	}
	for i := range list {
		if list[i].Partition != uint32(i) {
			return wire.CodeInvalidPartitionsCount
		}
	}
	if uint64(existing)+uint64(count) > wire.MaxPartitionID {
		return wire.CodePartitionIdSpaceExhausted
	}
	return 0
}

// partition is a new partition of a topic; its tag is the number of deletes its slot has seen.
func (v *View) partition(k TopicKey, id uint32, a *wire.Assignment, now uint64) Partition {
	tag, _ := v.deletes.Get(k)
	return Partition{
		ID: id, Tag: tag, CreatedAt: now, CreatedRevision: v.Revision, Assignment: a.ConsensusGroup, members: string(a.Members),
	}
}

func (v *View) noteAssignments(list []wire.Assignment) {
	for i := range list {
		v.assignments = max(v.assignments, list[i].ConsensusGroup)
	}
}

func (v *View) updateTopic(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeUpdateTopic(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightManageTopic)
	if code != 0 {
		return code
	}
	s, _ := v.streams.Get(t.Stream)
	name := string(q.Name)
	if owner, taken := s.topicNames.Get(name); taken && owner != t.ID {
		return wire.CodeTopicNameAlreadyExists
	}
	changed := *t
	changed.Name = name
	if changed.Settings, err = wire.ParseTopicUpdate(t.Settings, q.Options); err != nil {
		return wire.CodeInvalidOptionValue
	}
	changed.Explicit = wire.MergeOptions(nil, t.Explicit, q.Options)
	stream := *s
	stream.topics = s.topics.set(t.ID, &changed)
	stream.topicNames = s.topicNames.delete(t.Name).set(name, t.ID)
	v.streams = v.streams.set(s.ID, &stream)
	return 0
}

func (v *View) deleteTopic(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeTopicTarget(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightManageTopic)
	if code != 0 {
		return code
	}
	v.bury(t)
	s, _ := v.streams.Get(t.Stream)
	changed := *s
	changed.topics = s.topics.delete(t.ID)
	changed.topicNames = s.topicNames.delete(t.Name)
	v.streams = v.streams.set(s.ID, &changed)
	v.Revision++
	return 0
}

func (v *View) purgeTopic(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeTopicTarget(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightManageTopic)
	if code != 0 {
		return code
	}
	if t.partitions.Len() > 0 {
		v.setTopic(t.purge())
		v.Revision++
	}
	return 0
}

// purge opens a new purge generation on every partition.
func (t *Topic) purge() *Topic {
	changed := *t
	changed.partitions = sortedMap(cmp.Compare[uint32], t.partitions.Len(), func(i int) (uint32, Partition) {
		id, p := t.partitions.At(i)
		p.PurgeGeneration++
		p.TrimTo = 0
		return id, p
	})
	return &changed
}
