package metadata

import (
	"cmp"
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// DecodeSnapshot reads what EncodeSnapshot wrote, or the reference did. It checks every id, name,
// count and cross reference, returns an error that wraps ErrSnapshot for the first thing that does
// not fit, and keeps no reference to b. Statistics and unknown trailing elements are passed over.
func DecodeSnapshot(b []byte, limits Limits) (*View, error) {
	d := &decoder{rest: b}
	v := empty(limits)
	extra := d.record(snapshotFields-1, "snapshot") // without writer_release
	d.check(d.u64("version") == snapshotVersion, "version")
	v.Time, v.Op = d.u64("created_at"), d.u64("sequence_number")
	v.readUsers(d)
	v.readStreams(d)
	v.readClientTable(d)
	if extra > 0 {
		d.u64("writer_release")
	}
	if extra > 1 {
		v.readExtension(d)
	}
	d.skip(extra-2, "snapshot")
	d.check(len(d.rest) == 0, "end of snapshot")
	if d.failed {
		return nil, fmt.Errorf("%w: %s", ErrSnapshot, d.what)
	}
	return v, nil
}

func (v *View) readUsers(d *decoder) {
	if d.null() {
		return
	}
	d.fields(3, "users")
	for range d.list("users") {
		d.fields(2, "user entry")
		key, u := d.u32("user key"), readUser(d)
		_, taken := v.users.Get(key)
		_, named := v.userNames.Get(u.Name)
		d.check(!taken && !named && u.ID == key, "user")
		if d.failed {
			return
		}
		v.addUser(u)
	}
	for range d.list("tokens") {
		d.fields(2, "token owner")
		owner := d.u32("token owner")
		for range d.list("token list") {
			d.fields(2, "token entry")
			name, t := d.name("token name"), readToken(d)
			u := v.UserByID(owner)
			d.check(u != nil && t.UserID == owner && t.Name == name && v.TokenByHash(t.Hash) == nil, "token")
			if d.failed {
				return
			}
			_, taken := u.tokens.Get(name)
			d.check(!taken, "token name")
			v.addToken(u, t)
		}
	}
	d.skip(1, "permissioner")
}

func readUser(d *decoder) *User {
	extra := d.record(6, "user")
	u := &User{
		ID: d.u32("user id"), Name: d.name("user name"), PasswordHash: d.text("password hash"),
		tokens: newMap[string, *Token](cmp.Compare[string]),
	}
	status := d.text("user status")
	d.check(status == statusActive || status == statusInactive, "user status")
	u.Active = status == statusActive
	u.CreatedAt = d.u64("user created_at")
	u.Permissions = readPermissions(d)
	d.skip(extra, "user options")
	return u
}

func readToken(d *decoder) *Token {
	d.fields(4, "token")
	t := &Token{UserID: d.u32("token user"), Name: d.name("token name"), Hash: d.text("token hash")}
	d.check(len(t.Hash) == tokenHashSize, "token hash")
	if !d.null() {
		t.ExpiresAt = d.u64("token expiry")
	}
	return t
}

func readPermissions(d *decoder) *wire.Permissions {
	if d.null() {
		return nil
	}
	d.fields(2, "permissions")
	d.fields(globalPermissions, "global permissions")
	p := &wire.Permissions{Global: wire.GlobalRights(d.flags(globalPermissions, "global permissions"))}
	if d.null() {
		return p
	}
	for range d.table("stream permissions") {
		s := wire.StreamPermissions{Stream: d.u32("stream permissions")}
		d.fields(7, "stream permissions")
		s.Rights = wire.StreamRights(d.flags(6, "stream permissions"))
		if !d.null() {
			for range d.table("topic permissions") {
				t := wire.TopicPermissions{Topic: d.u32("topic permissions")}
				d.fields(4, "topic permissions")
				t.Rights = wire.TopicRights(d.flags(4, "topic permissions"))
				n := len(s.Topics)
				d.check(n == 0 || s.Topics[n-1].Topic < t.Topic, "order of topic permissions")
				s.Topics = append(s.Topics, t)
			}
		}
		n := len(p.Streams)
		d.check(n == 0 || p.Streams[n-1].Stream < s.Stream, "order of stream permissions")
		p.Streams = append(p.Streams, s)
	}
	return p
}

func (v *View) readStreams(d *decoder) {
	if d.null() {
		return
	}
	extra := d.record(1, "streams")
	for range d.list("streams") {
		d.fields(2, "stream entry")
		key := uint32(d.bounded(wire.MaxStreams-1, "stream key"))
		s := v.readStream(d)
		_, taken := v.streams.Get(key)
		_, named := v.streamNames.Get(s.Name)
		d.check(!taken && !named && s.ID == key, "stream")
		if d.failed {
			return
		}
		v.streams = v.streams.set(key, s)
		v.streamNames = v.streamNames.set(s.Name, key)
	}
	if extra > 0 {
		v.Revision = d.u64("revision")
	}
	d.skip(extra-1, "streams")
}

func (v *View) readStream(d *decoder) *Stream {
	extra := d.record(5, "stream")
	s := &Stream{
		ID: d.u32("stream id"), Name: d.name("stream name"), CreatedAt: d.u64("stream created_at"),
		topics:     newMap[uint32, *Topic](cmp.Compare[uint32]),
		topicNames: newMap[string, uint32](cmp.Compare[string]),
	}
	d.skip(1, "stream statistics")
	for range d.list("topics") {
		d.fields(2, "topic entry")
		key := uint32(d.bounded(wire.MaxTopics-1, "topic key"))
		t := v.readTopic(d, s.ID)
		_, taken := s.topics.Get(key)
		_, named := s.topicNames.Get(t.Name)
		d.check(!taken && !named && t.ID == key, "topic")
		if d.failed {
			return s
		}
		s.topics = s.topics.set(key, t)
		s.topicNames = s.topicNames.set(t.Name, key)
	}
	d.skip(extra, "stream options")
	return s
}

func (v *View) readTopic(d *decoder, stream uint32) *Topic {
	extra := d.record(8, "topic")
	t := &Topic{
		Stream: stream, ID: d.u32("topic id"), Name: d.name("topic name"), CreatedAt: d.u64("topic created_at"),
		groups:     newMap[uint32, *Group](cmp.Compare[uint32]),
		groupNames: newMap[string, uint32](cmp.Compare[string]),
	}
	typed := typedSettings{
		expiry: d.u64("message_expiry"), compression: d.text("compression"), size: d.u64("max_topic_size"),
	}
	d.skip(1, "topic statistics")
	v.readPartitions(d, t)
	if extra > 0 {
		v.readGroups(d, t)
	}
	if extra > 1 {
		t.nextGroupID = d.u32("next_consumer_group_id")
	}
	if extra > 2 {
		readOptions(d, t)
	} else {
		t.Settings = wire.DefaultTopicOptions()
	}
	d.skip(extra-3, "topic")
	typed.into(d, &t.Settings)
	d.check(t.groups.Len() == 0 || lastKey(t.groups) < t.nextGroupID, "next_consumer_group_id")
	return t
}

func lastKey[V any](m treeMap[uint32, V]) uint32 {
	key, _ := m.At(m.Len() - 1)
	return key
}

// typedSettings are the three settings a topic carries besides its options; they win, because an
// update may store an option whose value left the setting alone.
type typedSettings struct {
	expiry, size uint64
	compression  string
}

func (s typedSettings) into(d *decoder, settings *wire.TopicOptions) {
	d.check(s.compression == "none" || s.compression == "gzip", "compression")
	settings.Compression = wire.CompressionNone
	if s.compression == "gzip" {
		settings.Compression = wire.CompressionGzip
	}
	settings.MessageExpiry, settings.MaxTopicSize = s.expiry, s.size
	if s.expiry == 0 {
		settings.MessageExpiry = wire.Unlimited
	}
	if s.size == 0 {
		settings.MaxTopicSize = wire.Unlimited
	}
}

func (v *View) readPartitions(d *decoder, t *Topic) {
	count := d.list("partitions")
	d.check(count <= wire.MaxPartitionID, "partitions")
	var list []Partition
	for i := range count {
		extra := d.record(3, "partition")
		p := Partition{
			ID: d.u32("partition id"), Assignment: d.u64("consensus_group_id"), CreatedAt: d.u64("partition created_at"),
		}
		for j, field := range []*uint64{&p.CreatedRevision, &p.TrimTo, &p.PurgeGeneration} {
			if j < extra {
				*field = d.u64("partition")
			}
		}
		d.skip(extra-3, "partition")
		d.check(p.ID == uint32(i), "partition id")
		if d.failed {
			return
		}
		v.assignments = max(v.assignments, p.Assignment)
		list = append(list, p)
	}
	t.partitions = sortedMap(cmp.Compare[uint32], len(list), func(i int) (uint32, Partition) { return uint32(i), list[i] })
}

func readOptions(d *decoder, t *Topic) {
	var explicit, derived wire.Options
	for range d.table("options") {
		keyKind, key := d.field("option key")
		d.fields(2, "option")
		kind, value := d.field("option value")
		named := d.flag("option")
		d.check(keyKind == wire.KindString, "option key")
		if d.failed {
			return
		}
		if named {
			explicit = wire.AppendOption(explicit, string(key), kind, value)
		} else {
			derived = wire.AppendOption(derived, string(key), kind, value)
		}
	}
	d.check(t.configure(explicit, derived) == 0, "option value")
}

func (v *View) readGroups(d *decoder, t *Topic) {
	for range d.list("consumer groups") {
		d.fields(2, "group entry")
		key := d.u32("group key")
		g := readGroup(d, GroupKey{t.Stream, t.ID, key}, t.Partitions())
		_, taken := t.groups.Get(key)
		_, named := t.groupNames.Get(g.Name)
		d.check(!taken && !named, "group")
		if d.failed {
			return
		}
		t.groups = t.groups.set(key, g)
		t.groupNames = t.groupNames.set(g.Name, key)
		v.noteRevoking(g)
		for _, m := range g.Members {
			d.check(v.noteMembership(m.Client, g.GroupKey), "member with two slots")
		}
	}
}

func readGroup(d *decoder, key GroupKey, partitions uint32) *Group {
	d.fields(4, "group")
	d.check(d.u32("group id") == key.Group, "group id")
	g := &Group{GroupKey: key, Generation: d.u64("generation"), Name: d.name("group name"), partitions: partitions}
	owned := 0
	for range d.list("members") {
		d.fields(2, "member entry")
		slot := d.u32("member key")
		m := readMember(d, partitions)
		n := len(g.Members)
		d.check(m.Slot == slot && (n == 0 || g.Members[n-1].Slot < slot), "member")
		d.check(slot != ^uint32(0), "member slot")
		if d.failed {
			return g
		}
		g.Members = append(g.Members, m)
		owned += len(m.Partitions)
	}
	// Every partition has an owner as soon as there is a member, and no more than one.
	d.check(len(g.Members) == 0 || owned == int(partitions), "assignment")
	if d.failed {
		return g
	}
	g.index()
	for _, owner := range g.owners {
		d.check(owner != 0, "assignment")
	}
	for _, m := range g.Members {
		for i := range m.Revoking {
			d.check(g.Owner(m.Revoking[i].Partition) == m, "revocation")
		}
	}
	return g
}

func readMember(d *decoder, partitions uint32) *Member {
	extra := d.record(3, "member")
	m := &Member{Slot: d.u32("member id"), Client: d.u128("member client")}
	for range d.list("member partitions") {
		p := d.u32("member partition")
		d.check(p < partitions, "member partition")
		if d.failed {
			return m
		}
		m.Partitions = append(m.Partitions, p)
	}
	if extra == 0 {
		return m
	}
	for range d.list("pending revocations") {
		d.fields(3, "revocation")
		r := Revocation{Partition: d.u32("revocation"), Target: d.u32("revocation"), CreatedAt: d.u64("revocation")}
		d.check(!m.revokes(r.Partition), "revocation")
		if d.failed {
			return m
		}
		m.Revoking = append(m.Revoking, r)
	}
	d.skip(extra-1, "member")
	return m
}
