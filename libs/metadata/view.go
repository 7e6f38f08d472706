package metadata

import (
	"cmp"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Limits bound the replicated state. Clients must be equal on all metadata replicas.
type Limits struct {
	// Clients is the capacity of the client table (metadata.clients_table_max), 2..65536.
	// 0 means DefaultClients.
	Clients int
	// Tokens is how many tokens a user may have (personal_access_token.max_tokens_per_user); 0 means
	// wire.DefaultMaxTokens. It bounds admission only.
	Tokens int
}

// DefaultClients is the capacity of the client table when none is configured.
const DefaultClients = 65536

// maxClients is the largest legal capacity and the bound on slots in snapshots (replica-wire §10.2).
const maxClients = 65536

// RootID is the id of the root user, who passes every check.
const RootID uint32 = 0

// RootUser is the account every node creates for itself before the log (client-semantics §8.1).
type RootUser struct {
	Name         string
	PasswordHash string // PHC string
}

// View is the metadata after one op: immutable, so any goroutine may read it, and everything it
// returns (pointers and slices included) must not be modified.
type View struct {
	Op       uint64 // last applied op of the metadata log
	Revision uint64 // counts changes of streams and assignments as documented in replica-wire §5.5
	Time     uint64 // prepare time of Op, µs

	limits Limits

	streams     treeMap[uint32, *Stream]
	streamNames treeMap[string, uint32]
	users       treeMap[uint32, *User]
	userNames   treeMap[string, uint32]
	tokens      treeMap[string, *Token] // by hash
	expiries    treeMap[expiry, *Token] // tokens that expire, soonest first

	clients     treeMap[wire.U128, *Client]
	slots       treeMap[uint32, wire.U128]     // slot of the client table -> client
	recency     treeMap[recency, wire.U128]    // clients by position of their latest reply
	retired     treeMap[uint64, *Client]       // clients pushed out of a full table, by the op that did it
	retiredAt   treeMap[wire.U128, uint64]     // client -> key of retired
	memberships treeMap[wire.U128, []GroupKey] // ascending

	revoking treeMap[GroupKey, struct{}] // groups with a pending revocation
	deletes  treeMap[TopicKey, uint16]   // how often partitions of a slot were deleted, mod 2048

	nodes       treeMap[uint8, *Node]
	assignments uint64 // highest consensus_group_id logged so far
}

// TopicKey addresses a topic by ids.
type TopicKey struct{ Stream, Topic uint32 }

// GroupKey addresses a consumer group by ids.
type GroupKey struct{ Stream, Topic, Group uint32 }

// TopicKey is the topic of the group.
func (k GroupKey) TopicKey() TopicKey { return TopicKey{k.Stream, k.Topic} }

func compareTopicKeys(a, b TopicKey) int {
	return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Topic, b.Topic))
}

func compareGroupKeys(a, b GroupKey) int {
	return cmp.Or(compareTopicKeys(a.TopicKey(), b.TopicKey()), cmp.Compare(a.Group, b.Group))
}

func compareU128(a, b wire.U128) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}

// New is the metadata before the first op: the root user alone.
func New(root RootUser, limits Limits) *View {
	v := empty(limits)
	v.addUser(&User{
		ID: RootID, Name: root.Name, PasswordHash: root.PasswordHash, Active: true, CreatedAt: 1,
		Permissions: &wire.Permissions{Global: wire.GlobalAll}, tokens: newMap[string, *Token](cmp.Compare[string]),
	})
	return v
}

func empty(limits Limits) *View {
	if limits.Clients <= 0 {
		limits.Clients = DefaultClients
	}
	limits.Clients = min(max(limits.Clients, 2), maxClients)
	if limits.Tokens <= 0 {
		limits.Tokens = wire.DefaultMaxTokens
	}
	return &View{
		limits:      limits,
		streams:     newMap[uint32, *Stream](cmp.Compare[uint32]),
		streamNames: newMap[string, uint32](cmp.Compare[string]),
		users:       newMap[uint32, *User](cmp.Compare[uint32]),
		userNames:   newMap[string, uint32](cmp.Compare[string]),
		tokens:      newMap[string, *Token](cmp.Compare[string]),
		expiries:    newMap[expiry, *Token](compareExpiries),
		clients:     newMap[wire.U128, *Client](compareU128),
		slots:       newMap[uint32, wire.U128](cmp.Compare[uint32]),
		recency:     newMap[recency, wire.U128](compareRecency),
		retired:     newMap[uint64, *Client](cmp.Compare[uint64]),
		retiredAt:   newMap[wire.U128, uint64](compareU128),
		memberships: newMap[wire.U128, []GroupKey](compareU128),
		revoking:    newMap[GroupKey, struct{}](compareGroupKeys),
		deletes:     newMap[TopicKey, uint16](compareTopicKeys),
		nodes:       newMap[uint8, *Node](cmp.Compare[uint8]),
	}
}
