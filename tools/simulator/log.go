package simulator

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// entry is one op with its body.
type entry struct {
	header   wire.PrepareHeader
	body     []byte
	position uint64 // of its record in the node's log
}

// adoption is the durable part of taking on a view's log without its bodies.
type adoption struct {
	view    uint32
	headers []wire.PrepareHeader // newest first
}

// groupLog is what one member has of one group: in the process, on disk, or as a start finds it.
type groupLog struct {
	base    wire.PrepareHeader // newest op that left the log; Op 0 when none did
	digest  uint64             // of the state at base
	table   map[wire.U128]uint64
	entries []entry // base+1 and up, without a hole
	adopted []adoption
	lost    uint64 // highest entry that was here and can not be read any more
	floor   uint64 // newest timestamp ever logged
}

func (l *groupLog) head() uint64 { return l.base.Op + uint64(len(l.entries)) }

// at returns the entry of op, nil when it is not in the log.
func (l *groupLog) at(op uint64) *entry {
	if op <= l.base.Op || op > l.head() {
		return nil
	}
	return &l.entries[op-l.base.Op-1]
}

// header returns the header of op; that of base is known too.
func (l *groupLog) header(op uint64) (h wire.PrepareHeader, ok bool) {
	if op != 0 && op == l.base.Op {
		return l.base, true
	}
	if e := l.at(op); e != nil {
		return e.header, true
	}
	return h, false
}

// has reports whether the log holds op with this identity. What left it was applied, and counts.
func (l *groupLog) has(op uint64, identity wire.U128) bool {
	if op < l.base.Op {
		return true
	}
	h, ok := l.header(op)
	return ok && h.Checksum == identity
}

func (l *groupLog) parent() wire.U128 {
	h, _ := l.header(l.head())
	return h.Checksum
}

func (l *groupLog) cut(op uint64) {
	if op <= l.head() {
		l.entries = l.entries[:op-l.base.Op-1]
	}
}

func (l *groupLog) push(e entry) {
	l.entries = append(l.entries, e)
	l.floor = max(l.floor, e.header.Timestamp)
}

// adopt keeps one adoption for each view; those of older views than the durable one are dropped by settle.
func (l *groupLog) adopt(a adoption) {
	l.adopted = slices.DeleteFunc(l.adopted, func(b adoption) bool { return b.view == a.view })
	l.adopted = append(l.adopted, a)
}

// above returns the headers that the log of view has above the own head, newest first.
func (l *groupLog) above(view uint32) []wire.PrepareHeader {
	for _, a := range l.adopted {
		if a.view != view {
			continue
		}
		for i := range a.headers {
			if a.headers[i].Op <= l.head() {
				return a.headers[:i]
			}
		}
		return a.headers
	}
	return nil
}

// newestAdoption is what a start says of adoptions: that of the highest view.
func (l *groupLog) newestAdoption() (headers []wire.PrepareHeader, view uint32) {
	for _, a := range l.adopted {
		view = max(view, a.view)
	}
	return slices.Clone(l.above(view)), view
}

// commit is the highest commit point that the log itself proves.
func (l *groupLog) commit() uint64 {
	commit := l.base.Op
	for i := range l.entries {
		commit = max(commit, l.entries[i].header.Commit)
	}
	return min(commit, l.head())
}

func (l *groupLog) clone() groupLog {
	c := *l
	c.entries = slices.Clone(l.entries)
	c.adopted = slices.Clone(l.adopted)
	return c
}

// trim makes op the base. The table that came with the old base moves with it.
func (l *groupLog) trim(op uint64) {
	s := state{op: l.base.Op, digest: l.digest, table: copied(l.table)}
	for s.op < op {
		s.apply(l.at(s.op + 1))
	}
	e := l.at(op)
	l.entries = slices.Clone(l.entries[op-l.base.Op:])
	l.base, l.digest, l.table = e.header, s.digest, s.table
}

// recordKind is what a record of the node's log says.
type recordKind uint8

const (
	recordPrepare recordKind = iota
	recordTruncate
	recordAdopt
)

// record is one record of a node's log, which all groups of the node share.
type record struct {
	kind     recordKind
	position uint64
	group    int
	entry    entry    // recordPrepare
	op       uint64   // recordTruncate
	adoption adoption // recordAdopt
	view     uint32   // not 0: say when this is synced
	urgent   bool     // somebody waits for the sync
}

// replay applies a record that became part of the log.
func (l *groupLog) replay(r *record) {
	switch r.kind {
	case recordPrepare:
		if r.entry.header.Op != l.head()+1 {
			panic("simulator: the log of a node has a hole")
		}
		l.push(r.entry)
	case recordTruncate:
		l.cut(r.op)
	case recordAdopt:
		l.adopt(r.adoption)
	}
}
