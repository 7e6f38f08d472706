package journal

import (
	"cmp"
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// apply lets an intact record take effect.
func (r *recovery) apply(e *event) {
	if e.kind == kindSynced {
		r.applySynced(e)
		return
	}
	g := r.group(e.group, e.lsn)
	r.noteHead(e)
	if g == nil {
		return
	}
	switch e.kind {
	case KindPrepare:
		entry := Entry{LSN: e.lsn, length: e.length}
		if !e.header(&entry.Header) {
			r.damage(e.file, e.pos, e.size, "prepare header does not fit its record")
			entry.Header = wire.PrepareHeader{Group: e.group, Op: e.op}
			entry.Damaged = true
		} else if e.flags&flagLocated != 0 && len(e.raw) >= wire.HeaderSize+locationSize {
			entry.At.decode(e.raw[len(e.raw)-locationSize:])
		}
		if len(r.windows) > max(g.proven, r.resolved) && !g.continues(&entry) {
			// A truncate record, and what took the place of the entries it removed, is lost.
			g.fault(FaultOrder, e.op, e.op, e.lsn)
		}
		r.insert(g, entry)
		r.index.add(e.group, e.op, e.lsn, e.file.first)
		if !g.imaged(r, e.lsn) {
			g.appended(e.op)
		}
		if e.op <= g.base && (e.lsn >= r.images.at || len(g.log.Entries) > 0) {
			return // it may be of a later life, or behind a truncate record, of which nothing is left
		}
	case KindTruncate:
		g.truncate(e.op)
		r.index.cut(e.group, e.op)
		if !g.imaged(r, e.lsn) {
			g.disown(e.op)
		}
		return // what it removes shows only in what follows
	case KindAdopt:
		r.adopt(g, e)
		return
	case KindBorn, KindGone:
		r.index.drop(e.group)
		if e.lsn < r.images.at && (g.log.Image != nil || g.lost) {
			// The image is of a later life, the entries so far of an earlier one.
			g.log.Entries, g.known = nil, g.base
			if g.lost {
				g.log.Adopted, g.log.AdoptView = nil, 0
			}
			break
		}
		*g = groupState{log: GroupLog{Group: e.group, Born: e.kind == KindBorn, Gone: e.kind == KindGone}, life: e.lsn}
	default:
		r.damage(e.file, e.pos, e.size, "unknown record "+e.kind.String())
		g.fault(FaultRecord, e.op, e.op, e.lsn)
	}
	g.proven = len(r.windows)
	if e.kind == KindBorn || e.kind == KindGone {
		g.named = g.proven
	}
}

// continues reports whether e can stand at its place: the entry before, as far as it is known, is e's
// parent.
func (g *groupState) continues(e *Entry) bool {
	parent := wire.U128{}
	i, found := slices.BinarySearchFunc(g.log.Entries, e.Header.Op-1, entryOp)
	switch {
	case e.Damaged:
		return true
	case found:
		parent = g.log.Entries[i].Header.Checksum
	case g.log.Image != nil && e.Header.Op == g.base+1:
		parent = wire.DecodeU128(g.log.Image.Head[:])
	}
	return parent.IsZero() || parent == e.Header.Parent
}

func entryOp(e Entry, op uint64) int { return cmp.Compare(e.Header.Op, op) }

// noteHead keeps the heads by which a checkpoint decides what files may go.
func (r *recovery) noteHead(e *event) {
	op := uint64(0)
	switch e.kind {
	case KindPrepare:
		e.file.heads.raise(e.group, e.op)
		return
	case KindTruncate:
		op = e.op - 1
	case KindAdopt:
		return
	}
	e.file.heads.lower(e.group, op)
	r.undo = append(r.undo, undo{e.group, op, e.file.first, e.lsn + LSN(e.size)})
}

// spoiled notes a record that is known by group and op only.
func (r *recovery) spoiled(e *event) {
	if e.kind == kindSynced {
		return
	}
	g := r.group(e.group, e.lsn)
	r.noteHead(e)
	if g == nil {
		return
	}
	if e.kind != KindPrepare {
		if e.lsn >= r.images.at || e.kind == KindTruncate || g.lost {
			g.fault(FaultRecord, e.op, e.op, e.lsn)
		}
		return
	}
	entry := Entry{LSN: e.lsn, Damaged: true}
	if !e.header(&entry.Header) || entry.Header.Verify() != nil {
		entry.Header = wire.PrepareHeader{Group: e.group, Op: e.op}
	}
	proof := e.op > g.head()
	r.insert(g, entry)
	if !g.imaged(r, e.lsn) {
		g.appended(e.op)
	}
	if x := r.index.group(e.group); x == nil || e.op > x.head {
		r.index.add(e.group, e.op, e.lsn, e.file.first)
	}
	if proof { // else it may stand behind a truncate record that is lost
		g.proven = len(r.windows)
	}
}

// insert puts an entry into g: at the head, into a hole, or in the place of the same entry (a
// repair). Any other entry above it was replaced without a truncate record.
func (r *recovery) insert(g *groupState, e Entry) {
	op := e.Header.Op
	g.log.Gone = false
	if op <= g.base && !g.lost {
		return
	}
	list := g.log.Entries
	if n := len(list); n == 0 || list[n-1].Header.Op < op {
		g.log.Entries = append(list, e)
		g.known = max(g.known, op)
		return
	}
	i, found := slices.BinarySearchFunc(list, op, entryOp)
	switch {
	case !found:
		g.log.Entries = slices.Insert(list, i, e)
	case e.Damaged:
		// The earlier copy, if good, is worth more than the knowledge of a damaged one.
		if list[i].Damaged {
			list[i] = e
		}
	case list[i].Damaged, list[i].Header.Checksum == e.Header.Checksum && !e.Header.Checksum.IsZero():
		list[i] = e
	default:
		r.index.cut(g.log.Group, op)
		g.log.Entries = append(list[:i], e)
		g.known = op
		g.fault(FaultOrder, op, op, e.LSN)
	}
}

// truncate removes the entries from op on. Entries the image covers are committed and stay.
func (g *groupState) truncate(op uint64) {
	op = max(op, g.base+1)
	n := len(g.log.Entries)
	for n > 0 && g.log.Entries[n-1].Header.Op >= op {
		n--
	}
	g.log.Entries = g.log.Entries[:n]
	g.known = min(g.known, op-1)
}

// applySynced takes a synced record: a durable position, and the heads of the groups touched since
// the position in its group field. The heads, and the positions of records that were no prepares, show which groups the unreadable ranges hit.
func (r *recovery) applySynced(e *event) {
	r.synced = max(r.synced, LSN(e.op))
	if r.resolved == len(r.windows) || LSN(e.group) > r.windows[r.resolved].from {
		return
	}
	for b := e.raw; len(b) >= 16; b = b[16:] {
		group, head := le.Uint64(b), le.Uint64(b[8:])
		g := r.group(group, e.lsn)
		switch {
		case head != digestGone && head&turnMark != 0:
			at := LSN(head &^ turnMark)
			lost := func(w window) bool { return w.from <= at && at < w.to }
			if g != nil && at > g.life && slices.ContainsFunc(r.windows[r.resolved:], lost) {
				g.fault(FaultRecord, g.head(), g.head(), e.lsn)
			}
		case g == nil || g.log.Gone && head == digestGone || head <= g.base && !g.lost:
		case head == digestGone:
			g.fault(FaultRecord, g.head(), g.head(), e.lsn)
		case head > g.head():
			g.log.Gone = false
			g.known = max(g.known, head)
		case head < g.head():
			g.fault(FaultRecord, head+1, g.head(), e.lsn)
		}
	}
	r.resolved = len(r.windows)
}
