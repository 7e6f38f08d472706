package metadata

import "github.com/whippet-mq/whippet/libs/wire"

func (v *View) createPartitions(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedCreatePartitions(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightManageTopic)
	if code != 0 {
		return code
	}
	if code := checkAssignments(q.Assignments, q.Count, t.Partitions()); code != 0 {
		return code
	}
	v.Revision++
	changed := *t
	for i := range q.Assignments {
		id := t.Partitions() + uint32(i)
		changed.partitions = changed.partitions.set(id, v.partition(t.Key(), id, &q.Assignments[i], h.Timestamp))
	}
	v.noteAssignments(q.Assignments)
	v.setTopic(v.regroup(&changed))
	return 0
}

func (v *View) deletePartitions(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodePartitions(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightManageTopic)
	if code != 0 {
		return code
	}
	if q.Count > t.Partitions() {
		return wire.CodeInvalidPartitionsCount
	}
	if q.Count == 0 {
		return 0
	}
	changed := *t
	for range q.Count {
		changed.partitions = changed.partitions.delete(changed.Partitions() - 1)
	}
	v.countDelete(t.Key())
	v.Revision++
	v.setTopic(v.regroup(&changed))
	return 0
}

// regroup deals the partitions of a topic anew in all its groups after their number changed. The topic
// is changed in place.
func (v *View) regroup(t *Topic) *Topic {
	for id, g := range t.groups.All() {
		resized := g.resize(t.Partitions())
		t.groups = t.groups.set(id, resized)
		v.noteRevoking(resized)
	}
	return t
}

func (v *View) truncatePartition(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedTruncatePartition(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightManageTopic)
	if code != 0 {
		return code
	}
	p, ok := t.Partition(q.Partition)
	if !ok {
		return wire.CodePartitionNotFound
	}
	v.Revision++
	if q.UpToOffset > p.TrimTo {
		p.TrimTo = q.UpToOffset
		changed := *t
		changed.partitions = t.partitions.set(p.ID, p)
		v.setTopic(&changed)
	}
	return 0
}
