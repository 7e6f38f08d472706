package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// DeletedGroup reports whether the view proves that the life of the partition group id is over: it was deleted,
// or others succeeded it. Its partition has a later incarnation, or is not there and its slot's count moved past
// its tag. Absence alone proves nothing, and neither does a view from before the group was created, which knows
// earlier tags only. What the successor of a group still needs of it, Successor says.
func (v *View) DeletedGroup(id uint64) bool {
	stream, topic, partition, tag := wire.SplitGroupID(id)
	k := TopicKey{stream, topic}
	last, _ := v.deletes.Get(k)
	if t := v.TopicByKey(k); t != nil {
		if p, ok := t.Partition(partition); ok {
			last = p.Tag
		}
	}
	return laterTag(last, tag)
}

// laterTag reports whether tag a is one of an incarnation after that of b. Tags go round at MaxTag.
func laterTag(a, b uint16) bool {
	moved := (a - b) & wire.MaxTag
	return moved > 0 && moved <= wire.MaxTag/2
}

// HasRevocations reports whether any consumer group waits for a hand-over.
func (v *View) HasRevocations() bool { return v.revoking.Len() > 0 }
