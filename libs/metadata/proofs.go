package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// DeletedGroup reports whether the view proves that the partition group id was deleted: it is not
// there, and its slot's count of deletes moved past its tag. Absence alone proves nothing, and neither does
// a view from before the group was created, whose count is behind the tag.
func (v *View) DeletedGroup(id uint64) bool {
	if _, _, ok := v.PartitionByGroupID(id); ok {
		return false
	}
	stream, topic, _, tag := wire.SplitGroupID(id)
	deletes, _ := v.deletes.Get(TopicKey{stream, topic})
	moved := (deletes - tag) & wire.MaxTag // counts go round at MaxTag
	return moved > 0 && moved <= wire.MaxTag/2
}

// HasRevocations reports whether any consumer group waits for a hand-over.
func (v *View) HasRevocations() bool { return v.revoking.Len() > 0 }
