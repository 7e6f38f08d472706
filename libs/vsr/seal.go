package vsr

import (
	"math/bits"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The members of a group never change: a group that has to go elsewhere ends with a seal, an op like any other, and a
// successor with an id and members of its own goes on from there. README.md has the argument.

// closed reports whether the log ends in a seal: nothing follows it.
func (r *Replica) closed() bool { return r.tail.closed() }

func (p *pipeline) closed() bool {
	return p.head > 0 && p.at(p.head).header.Operation == wire.OpSealPartition
}

// Closed reports whether the log here ends in a seal, committed or not: no request gets an op.
func (r *Replica) Closed() bool { return r.closed() }

// Sealed returns the seal of the group once it is committed: a quorum of the group holds it, and from then on a
// successor may begin. An uncommitted seal may still be cut, and then the group goes on.
func (r *Replica) Sealed() (seal wire.LogSeal, ok bool) {
	if !r.closed() || r.committed < r.tail.head {
		return seal, false
	}
	h := &r.tail.at(r.tail.head).header
	return wire.LogSeal{Op: h.Op, Identity: h.Checksum, Timestamp: h.Timestamp}, true
}

// Genesis is the header a successor's log begins behind: it stands in the place of the seal, so ops go on being
// counted, and names it as its parent. It is a function of the group and the seal alone, the same at every member.
func Genesis(cluster wire.U128, group uint64, seal wire.LogSeal) wire.PrepareHeader {
	h := wire.PrepareHeader{
		Cluster: cluster, Size: wire.HeaderSize, Command: wire.CommandPrepare, Operation: wire.OpSucceedPartition,
		Op: seal.Op, Commit: seal.Op, Parent: seal.Identity, Timestamp: seal.Timestamp, Group: group,
	}
	h.Checksum = h.Identity()
	return h
}

// Succeeds reports whether a log that ends at last may be the beginning of a successor that goes on from seal:
// it ends in exactly that op. A shorter one lacks what was acknowledged.
func Succeeds(last *wire.PrepareHeader, seal wire.LogSeal) bool {
	return last.Op == seal.Op && last.Checksum == seal.Identity
}

// Replaced reports whether what a sealed group left may go: so many members of its successor have its log, begun
// and durable, that whatever quorum the successor works with one of them is in it.
func Replaced(begun uint32, members int) bool {
	q := QuorumsOf(members)
	return bits.OnesCount32(begun) >= max(q.Replication, q.ViewChange)
}
