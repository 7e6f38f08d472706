package metadata

import (
	"iter"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Stream is a namespace of topics.
type Stream struct {
	ID        uint32
	Name      string
	CreatedAt uint64 // µs

	topics     treeMap[uint32, *Topic]
	topicNames treeMap[string, uint32]
}

// Topic is a set of partitions with common settings.
type Topic struct {
	Stream    uint32
	ID        uint32
	Name      string
	CreatedAt uint64 // µs
	Settings  wire.TopicOptions
	Explicit  wire.Options // what clients named, sorted by key, as sent where UpdateTopic set it

	partitions  treeMap[uint32, Partition] // ids 0..n-1
	groups      treeMap[uint32, *Group]
	groupNames  treeMap[string, uint32]
	nextGroupID uint32
}

// Key addresses the topic by ids.
func (t *Topic) Key() TopicKey { return TopicKey{t.Stream, t.ID} }

// Partition is one log of a topic.
type Partition struct {
	ID              uint32
	Tag             uint16 // incarnation: how often this slot's partitions had been deleted at creation, mod 2048
	CreatedAt       uint64 // µs
	CreatedRevision uint64 // View.Revision of the op that created it
	Assignment      uint64 // consensus_group_id as logged; names nothing
	TrimTo          uint64 // deleted_up_to_offset: sealed segments up to here may go; 0 = none
	PurgeGeneration uint64
	// Origin is the group this one succeeded, nil for a group that was born empty.
	Origin *Origin

	members string // node ids, the leader of view 0 first
	target  string // members of the successor it is to have, empty: it stays
}

// Members are the node ids that host the partition, in member order; empty means every node of the
// roster in id order.
func (p *Partition) Members() []byte { return []byte(p.members) }

// MemberIndex is the place of a node in the member list, false when it is not in it.
func (p *Partition) MemberIndex(node uint8) (index int, ok bool) {
	for i := range len(p.members) {
		if p.members[i] == node {
			return i, true
		}
	}
	return 0, false
}

// Placed reports whether the partition has a member list of its own.
func (p *Partition) Placed() bool { return p.members != "" }

// GroupID is the id of the consensus group of partition p of topic t, incarnation tag included.
func (t *Topic) GroupID(p *Partition) uint64 { return wire.GroupID(t.Stream, t.ID, p.ID, p.Tag) }

// Partitions is the number of partitions; their ids are 0..n-1.
func (t *Topic) Partitions() uint32 { return uint32(t.partitions.Len()) }

// Partition returns partition id.
func (t *Topic) Partition(id uint32) (Partition, bool) { return t.partitions.Get(id) }

// AllPartitions yields the partitions in id order.
func (t *Topic) AllPartitions() iter.Seq2[uint32, Partition] { return t.partitions.All() }

// Groups yields the consumer groups in id order.
func (t *Topic) Groups() iter.Seq2[uint32, *Group] { return t.groups.All() }

// GroupCount is the number of consumer groups.
func (t *Topic) GroupCount() int { return t.groups.Len() }

// Group resolves a consumer group of the topic, nil when missing.
func (t *Topic) Group(id wire.Identifier) *Group { return resolve(id, t.groups, t.groupNames) }

// Topic resolves a topic of the stream, nil when missing.
func (s *Stream) Topic(id wire.Identifier) *Topic { return resolve(id, s.topics, s.topicNames) }

// Topics yields the topics in id order.
func (s *Stream) Topics() iter.Seq2[uint32, *Topic] { return s.topics.All() }

// TopicCount is the number of topics.
func (s *Stream) TopicCount() int { return s.topics.Len() }

// resolve finds by number or by exact name; a name of digits is still a name.
func resolve[T any](id wire.Identifier, byID treeMap[uint32, *T], byName treeMap[string, uint32]) *T {
	number := id.ID
	if id.IsNamed() {
		var ok bool
		if number, ok = byName.Get(string(id.Name)); !ok {
			return nil
		}
	}
	found, _ := byID.Get(number)
	return found
}
