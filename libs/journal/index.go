package journal

import (
	"cmp"
	"slices"
)

// spacing bounds the index: a mark is at most ops entries of its group behind the one before it, and
// bytes of log. When there are more than limit marks the distance in bytes is doubled and marks that
// the new one does not ask for are dropped. Tests make it smaller.
var spacing = struct {
	ops   uint64
	bytes LSN
	limit int
}{64, 1 << 20, 256 << 10}

// index finds the entries of groups in the log without holding something for each of them: it has a
// mark for some, and from there the log is read forward. Two rules make that right:
//
//   - The first entry of a group in each file has a mark. What is read forward never leaves its file,
//     and when files go the lowest mark left is the lowest entry left.
//   - The first entry behind a truncate record has a mark. So of several records for one op the first
//     one behind the highest mark at or below the op is the one in force.
//
// Marks of these two kinds are pinned.
type index struct {
	groups   map[uint64]*groupIndex
	repaired map[uint64][]mark // entries written again, out of order; ascending op
	count    int               // marks of all groups
	limit    int               // of count, for the next thinning
	step     LSN               // bytes between marks

	last  uint64 // group used last
	lastG *groupIndex
}

// groupIndex has at least one mark.
type groupIndex struct {
	marks []mark // ascending, by op and by position
	head  uint64 // highest op
	end   LSN    // no entry stands behind
	pin   bool   // the next entry gets a pinned mark
}

// mark is the position of one entry; the top bit of at says that it is pinned.
type mark struct {
	op uint64
	at LSN
}

const pinned LSN = 1 << 63

func (m mark) lsn() LSN { return m.at &^ pinned }

func (x *index) group(id uint64) *groupIndex {
	if x.lastG == nil || x.last != id {
		x.last, x.lastG = id, x.groups[id]
	}
	return x.lastG
}

// add notes the entry op at lsn, in the file that begins at file.
func (x *index) add(id, op uint64, lsn, file LSN) {
	g := x.group(id)
	switch {
	case g == nil:
		if x.groups == nil {
			x.groups, x.limit, x.step = map[uint64]*groupIndex{}, spacing.limit, spacing.bytes
		}
		g = &groupIndex{pin: true}
		x.groups[id], x.lastG = g, g
	case op <= g.head:
		x.repair(id, mark{op, lsn})
		return
	}
	pin := g.pin || g.end < file
	if n := len(g.marks); pin || op-g.marks[n-1].op >= spacing.ops || lsn-g.marks[n-1].lsn() > x.step {
		m := mark{op, lsn}
		if pin {
			m.at |= pinned
		}
		g.marks = append(g.marks, m)
		x.count++
	}
	g.head, g.end, g.pin = op, lsn, false
	if x.count > x.limit {
		x.thin()
	}
}

// repair notes an entry that was written again below its group's head.
func (x *index) repair(id uint64, m mark) {
	if x.repaired == nil {
		x.repaired = map[uint64][]mark{}
	}
	list := x.repaired[id]
	i, found := slices.BinarySearchFunc(list, m.op, byOp)
	if found {
		list[i] = m
		return
	}
	x.repaired[id] = slices.Insert(list, i, m)
}

func byOp(m mark, op uint64) int { return cmp.Compare(m.op, op) }

// cut drops the entries of a group from op on.
func (x *index) cut(id, op uint64) {
	g := x.group(id)
	if g == nil || op > g.head {
		return
	}
	n, _ := slices.BinarySearchFunc(g.marks, op, byOp)
	if n == 0 {
		x.drop(id)
		return
	}
	x.count -= len(g.marks) - n
	g.marks, g.head, g.pin = g.marks[:n], op-1, true
	if list := x.repaired[id]; list != nil {
		n, _ := slices.BinarySearchFunc(list, op, byOp)
		x.repaired[id] = list[:n]
	}
}

// drop forgets a group.
func (x *index) drop(id uint64) {
	if g := x.group(id); g != nil {
		x.count -= len(g.marks)
		delete(x.groups, id)
		delete(x.repaired, id)
		x.lastG = nil
	}
}

// forget drops what stands below first: the files there are gone.
func (x *index) forget(first LSN) {
	for id, g := range x.groups {
		n, _ := slices.BinarySearchFunc(g.marks, first, func(m mark, at LSN) int { return cmp.Compare(m.lsn(), at) })
		if n == len(g.marks) {
			x.drop(id)
			continue
		}
		if n == 0 {
			continue
		}
		x.count -= n
		g.marks = slices.Clone(g.marks[n:])
		if list := x.repaired[id]; list != nil {
			low := g.marks[0].op
			x.repaired[id] = slices.DeleteFunc(list, func(m mark) bool { return m.lsn() < first || m.op < low })
		}
	}
}

// thin doubles the distance between marks.
func (x *index) thin() {
	x.step *= 2
	x.count = 0
	for _, g := range x.groups {
		kept := make([]mark, 0, len(g.marks))
		for _, m := range g.marks {
			n := len(kept)
			if m.at&pinned != 0 || n == 0 || m.op-kept[n-1].op >= spacing.ops || m.lsn()-kept[n-1].lsn() > x.step {
				kept = append(kept, m)
			}
		}
		g.marks = slices.Clip(kept)
		x.count += len(kept)
	}
	x.limit = max(spacing.limit, 2*x.count)
}

// span is a piece of one file. The entries op..next-1 of a group stand there in order, op at from and
// none behind to.
type span struct {
	file     *logFile
	from, to LSN
	op, next uint64
}

// span returns the piece of the log that has op; false if the log does not hold it.
func (x *index) span(id, op uint64) (s span, ok bool) {
	g := x.group(id)
	if g == nil || op < g.marks[0].op || op > g.head {
		return span{}, false
	}
	again := x.repaired[id]
	r, found := slices.BinarySearchFunc(again, op, byOp)
	if found {
		at := again[r].lsn()
		return span{from: at, to: at, op: op, next: op + 1}, true
	}
	i, found := slices.BinarySearchFunc(g.marks, op, byOp)
	if !found {
		i--
	}
	s = span{from: g.marks[i].lsn(), to: g.end, op: g.marks[i].op, next: g.head + 1}
	if i+1 < len(g.marks) {
		s.to, s.next = g.marks[i+1].lsn(), g.marks[i+1].op
	}
	if r < len(again) {
		s.next = min(s.next, again[r].op)
	}
	return s, true
}

// First is the lowest op of a group that the log still holds; false if it holds none.
func (j *Journal) First(group uint64) (uint64, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if g := j.index.group(group); g != nil {
		return g.marks[0].op, true
	}
	return 0, false
}
