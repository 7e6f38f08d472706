package metadata

import (
	"iter"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Stream resolves a stream, nil when missing.
func (v *View) Stream(id wire.Identifier) *Stream { return resolve(id, v.streams, v.streamNames) }

// Streams yields the streams in id order.
func (v *View) Streams() iter.Seq2[uint32, *Stream] { return v.streams.All() }

// StreamCount is the number of streams.
func (v *View) StreamCount() int { return v.streams.Len() }

// Topic resolves a topic. The code of a miss is CodeStreamIdNotFound or CodeTopicIdNotFound.
func (v *View) Topic(stream, topic wire.Identifier) (*Topic, wire.Code) {
	s := v.Stream(stream)
	if s == nil {
		return nil, wire.CodeStreamIdNotFound
	}
	t := s.Topic(topic)
	if t == nil {
		return nil, wire.CodeTopicIdNotFound
	}
	return t, 0
}

// TopicByKey returns the topic with these ids, nil when missing.
func (v *View) TopicByKey(k TopicKey) *Topic {
	s, ok := v.streams.Get(k.Stream)
	if !ok {
		return nil
	}
	t, _ := s.topics.Get(k.Topic)
	return t
}

// Group resolves a consumer group. The code of a miss is that of Topic or
// CodeConsumerGroupIdNotFound.
func (v *View) Group(stream, topic, group wire.Identifier) (*Group, wire.Code) {
	t, code := v.Topic(stream, topic)
	if code != 0 {
		return nil, code
	}
	g := t.Group(group)
	if g == nil {
		return nil, wire.CodeConsumerGroupIdNotFound
	}
	return g, 0
}

// GroupByKey returns the consumer group with these ids, nil when missing.
func (v *View) GroupByKey(k GroupKey) *Group {
	t := v.TopicByKey(k.TopicKey())
	if t == nil {
		return nil
	}
	g, _ := t.groups.Get(k.Group)
	return g
}

// PartitionByGroupID returns the partition whose consensus group is id. All 64 bits must match: an
// id of an earlier or later incarnation finds nothing.
func (v *View) PartitionByGroupID(id uint64) (*Topic, Partition, bool) {
	if id&wire.MetadataGroup != 0 {
		return nil, Partition{}, false
	}
	stream, topic, partition, tag := wire.SplitGroupID(id)
	t := v.TopicByKey(TopicKey{stream, topic})
	if t == nil {
		return nil, Partition{}, false
	}
	p, ok := t.partitions.Get(partition)
	if !ok || p.Tag != tag {
		return nil, Partition{}, false
	}
	return t, p, true
}

// User resolves a user, nil when missing.
func (v *View) User(id wire.Identifier) *User { return resolve(id, v.users, v.userNames) }

// UserByID returns the user with this id, nil when missing.
func (v *View) UserByID(id uint32) *User {
	u, _ := v.users.Get(id)
	return u
}

// UserByName returns the user with exactly this name, nil when missing.
func (v *View) UserByName(name []byte) *User {
	return v.User(wire.Identifier{Kind: wire.IdentifierNamed, Name: name})
}

// Users yields the users in id order.
func (v *View) Users() iter.Seq2[uint32, *User] { return v.users.All() }

// TokenByHash returns the token with this hash (64 hex characters), nil when unknown. Expired
// tokens are found too: see Token.Expired.
func (v *View) TokenByHash(hash string) *Token {
	t, _ := v.tokens.Get(hash)
	return t
}

// ExpiredTokens yields the tokens that are expired at now (µs), oldest expiry first.
func (v *View) ExpiredTokens(now uint64) iter.Seq[*Token] {
	return func(yield func(*Token) bool) {
		for k, t := range v.expiries.All() {
			if k.at > now || !yield(t) {
				return
			}
		}
	}
}

// Client returns the client table's entry of a client id, nil when it has none.
func (v *View) Client(id wire.U128) *Client {
	c, _ := v.clients.Get(id)
	return c
}

// UserOf is the user a session acts for: the owner of the client's entry. False when the session is over,
// superseded by a newer login of the client id, or its user was deleted. Ids of deleted users are given out
// again, so the id a connection logged in with is no substitute.
func (v *View) UserOf(client wire.U128, session uint64) (uint32, bool) {
	c := v.Client(client)
	if c == nil || c.Epoch != session || c.orphaned() {
		return 0, false
	}
	return c.UserID, true
}

// Clients yields the client table in client id order.
func (v *View) Clients() iter.Seq2[wire.U128, *Client] { return v.clients.All() }

// Memberships are the consumer groups the client is a member of, ascending.
func (v *View) Memberships(client wire.U128) []GroupKey {
	keys, _ := v.memberships.Get(client)
	return keys
}

// Revoking yields the groups with a pending revocation.
func (v *View) Revoking() iter.Seq2[GroupKey, *Group] {
	return func(yield func(GroupKey, *Group) bool) {
		for k := range v.revoking.All() {
			if !yield(k, v.GroupByKey(k)) {
				return
			}
		}
	}
}

// Counts of objects, for statistics.
type Counts struct {
	Streams, Topics, Partitions, Groups, Users, Clients int
}

// Counts walks the topics.
func (v *View) Counts() Counts {
	c := Counts{Streams: v.streams.Len(), Users: v.users.Len(), Clients: v.clients.Len()}
	for _, s := range v.streams.All() {
		c.Topics += s.topics.Len()
		for _, t := range s.topics.All() {
			c.Partitions += t.partitions.Len()
			c.Groups += t.groups.Len()
		}
	}
	return c
}
