package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// NoMember is the Self of a replica that only copies a group's state.
const NoMember = 0xff

// MaxMembers is the largest group.
const MaxMembers = 32

// Group names one consensus group and this process's place in it. All of it is fixed for the group's
// life; a move makes a new group.
type Group struct {
	ID      uint64
	Cluster wire.U128 // stamped on every frame
	Self    uint8     // member index, or NoMember
	Members uint8     // 1, 3, 5, 7; 2 in mixed clusters only
	Policy  Policy
}

// Policy holds everything in which planes and modes differ.
type Policy struct {
	SealBody    bool // prepares carry the hash of their body, one op in flight per client: metadata
	Incarnation bool // boots are told apart by incarnation numbers: metadata
	Synced      bool // an op counts as held when it is synced, else when it is written
	Mixed       bool // some members are reference nodes: their rules, no native frames
}

// Pipeline bounds, in prepares not yet committed. The ceiling keeps the suffix from the commit point to
// the head within one DoViewChange.
const (
	DefaultPipeline = 32
	MaxPipeline     = wire.MaxSuffix - 1
)

// Limits bound what a replica holds.
type Limits struct {
	Pipeline int // uncommitted prepares: 1..MaxPipeline, 0 = DefaultPipeline
}

// Quorums of a group, counting this member (vsr-behaviour.md §1.2).
type Quorums struct {
	Replication int // acks that commit an op
	ViewChange  int // votes that start a view
	Nack        int // nacks that cut an op
}

// QuorumsOf returns the quorums of a group of n members. Replication+ViewChange and
// Replication+Nack exceed n for every n: safety rests on that.
func QuorumsOf(n int) Quorums {
	if n == 2 {
		return Quorums{Replication: 2, ViewChange: 2, Nack: 1}
	}
	replication := min((n+1)/2, 3)
	return Quorums{Replication: replication, ViewChange: n - replication + 1, Nack: n - replication + 1}
}

// LogState says what a restart knows of its own log.
type LogState uint8

const (
	Whole   LogState = iota // everything ever acknowledged is there
	Born                    // a new group: nothing was ever there
	Suspect                 // the tail may be missing
	Empty                   // a member that lost everything, its votes too
)

// Boot is what durable state says when a replica starts. Everything up to Head must be as durable as the
// policy asks before New is called: with Synced, ops that the last life had only written are synced
// first, for they count as held from now on.
type Boot struct {
	View, LogView uint32
	Commit, Head  uint64
	Tail          []wire.PrepareHeader // head down to commit; empty when even the head's header is lost
	// Adopted is what the log of AdoptView has above Head, newest first: the durable Output.Adopt with
	// the highest AdoptView, which may be below or above LogView. Below its oldest op everything is
	// committed, unless the log has lost its end since. Entries of the log that can not be read any more belong here too, then with
	// AdoptView = LogView, a blank for each unknown header, and the highest of them in Lost: this member
	// may have acknowledged them.
	Adopted     []wire.PrepareHeader
	Lost        uint64
	AdoptView   uint32
	TimeFloor   uint64    // µs; prepares get later timestamps. Birth time of a new group
	Incarnation wire.U128 // random for each start, when the policy tells boots apart
	Started     Tick      // when the process started
	State       LogState
}
