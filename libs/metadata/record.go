package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Records for replies. Sizes and counts of messages live on the partition replicas: callers fill
// them in.

// Record is the stream's reply record, without sizes.
func (s *Stream) Record() wire.StreamRecord {
	return wire.StreamRecord{ID: s.ID, CreatedAt: s.CreatedAt, TopicsCount: uint32(s.topics.Len()), Name: s.Name}
}

// Record is the topic's reply record as the generation is shown it, without sizes.
func (t *Topic) Record(g wire.Generation) wire.TopicRecord {
	return wire.TopicRecord{
		ID: t.ID, CreatedAt: t.CreatedAt, PartitionsCount: t.Partitions(), MessageExpiry: t.Settings.MessageExpiry,
		Compression: t.Settings.Compression, MaxTopicSize: t.Settings.MaxTopicSize, Name: t.Name,
		Explicit: t.Explicit, Derived: t.Derived(g),
	}
}

// AppendCreated appends the payload of CreateTopic's reply. The committed reply is the snapshot
// generation's; for a client of the other one the front-door puts its own in.
func (t *Topic) AppendCreated(dst []byte, g wire.Generation) []byte {
	dst = t.Record(g).Append(dst)
	for id, p := range t.partitions.All() {
		dst = wire.PartitionRecord{ID: id, CreatedAt: p.CreatedAt}.Append(dst)
	}
	return dst
}

// Record is the group's reply record.
func (g *Group) Record() wire.GroupRecord {
	return wire.GroupRecord{
		ID: g.Group, PartitionsCount: g.partitions, MembersCount: uint32(len(g.Members)), Name: g.Name,
	}
}

// AppendDetails appends the payload of GetConsumerGroup: the group and its members by slot.
func (g *Group) AppendDetails(dst []byte) []byte {
	dst = g.Record().Append(dst)
	for _, m := range g.Members {
		dst = wire.MemberRecord{ID: m.Slot, Partitions: m.Partitions}.Append(dst)
	}
	return dst
}

// Record is the user's reply record.
func (u *User) Record() wire.UserRecord {
	return wire.UserRecord{ID: u.ID, CreatedAt: u.CreatedAt, Status: u.Status(), Username: u.Name}
}

// Details is the user's record with its permissions.
func (u *User) Details() wire.UserDetails {
	return wire.UserDetails{UserRecord: u.Record(), Permissions: u.Permissions}
}

// Record is the token's record in the owner's list.
func (t *Token) Record() wire.TokenRecord {
	return wire.TokenRecord{Name: t.Name, ExpiryAt: t.ExpiresAt}
}
