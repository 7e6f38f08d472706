package metadata

import (
	"iter"
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Group is a consumer group of a topic: who of its members may read which partition. Every
// partition belongs to exactly one member, or to nobody while there are no members.
type Group struct {
	GroupKey
	Name       string
	Generation uint64    // +1 on every change of members or assignment
	Members    []*Member // ascending by Slot

	partitions uint32   // of the topic
	owners     []uint32 // partition -> slot of its owner + 1; 0 = nobody. Nil without members
}

// Member is one client's place in a group.
type Member struct {
	Slot       uint32
	Client     wire.U128
	Partitions []uint32     // owned, in the order they were given
	Revoking   []Revocation // owned partitions that are to move
}

// Revocation is the planned move of a partition to another member. Until it is completed the
// source still commits offsets but polls no more, and the target has nothing yet.
type Revocation struct {
	Partition uint32
	Target    uint32 // slot
	CreatedAt uint64 // µs
}

// Member returns the client's membership, nil when it is not a member.
func (g *Group) Member(client wire.U128) *Member {
	for _, m := range g.Members {
		if m.Client == client {
			return m
		}
	}
	return nil
}

// Owner returns the member that owns the partition, nil when nobody does.
func (g *Group) Owner(partition uint32) *Member {
	if uint64(partition) >= uint64(len(g.owners)) || g.owners[partition] == 0 {
		return nil
	}
	i, ok := slices.BinarySearchFunc(g.Members, g.owners[partition]-1, compareSlot)
	if !ok {
		return nil
	}
	return g.Members[i]
}

func compareSlot(m *Member, slot uint32) int { return int(int64(m.Slot) - int64(slot)) }

// Owns reports whether client owns the partition, so that it may store its offset. A pending
// revocation does not take that right.
func (g *Group) Owns(client wire.U128, partition uint32) bool {
	m := g.Owner(partition)
	return m != nil && m.Client == client
}

// Pollable reports whether client may poll the partition: it owns it and no revocation is pending.
func (g *Group) Pollable(client wire.U128, partition uint32) bool {
	m := g.Owner(partition)
	return m != nil && m.Client == client && !m.revokes(partition)
}

func (m *Member) revokes(partition uint32) bool {
	for i := range m.Revoking {
		if m.Revoking[i].Partition == partition {
			return true
		}
	}
	return false
}

// PollablePartitions yields what the member may poll, in assignment order: the answer to
// SyncConsumerGroup.
func (m *Member) PollablePartitions() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, p := range m.Partitions {
			if !m.revokes(p) && !yield(p) {
				return
			}
		}
	}
}

// PollableCount is the number of partitions PollablePartitions yields.
func (m *Member) PollableCount() int { return len(m.Partitions) - len(m.Revoking) }
