package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// DeletedGroup reports whether the view proves that the partition group id was deleted: it is not
// there, and its slot's incarnation moved on. Absence alone proves nothing (design-arguments 10).
func (v *View) DeletedGroup(id uint64) bool {
	if _, _, ok := v.PartitionByGroupID(id); ok {
		return false
	}
	stream, topic, _, tag := wire.SplitGroupID(id)
	deletes, ok := v.deletes.Get(TopicKey{stream, topic})
	return ok && deletes != tag
}

// HasRevocations reports whether any consumer group waits for a hand-over.
func (v *View) HasRevocations() bool { return v.revoking.Len() > 0 }
