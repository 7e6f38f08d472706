package journal

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// recovery turns log files into groups. It reads each file once, in order; only when it meets
// damage does it look ahead, because the tear rule depends on what follows.
type recovery struct {
	opt   Options
	scan  scanner
	out   *Recovered
	files []*logFile // the log, ascending
	ended bool       // the log ends before the last file

	images   imageSet
	groups   map[uint64]*groupState
	order    []uint64
	synced   LSN      // highest position a synced record claims, as far as read
	settled  LSN      // position that was synced, large bodies aside, when the newest file was made
	windows  []window // unreadable ranges that may have held records of any group
	resolved int      // windows that a later digest explained

	undo  []undo // for the journal
	index index  // for the journal

	looked    bool
	aheadSync LSN // highest synced claim in the rest of the log
	aheadLast LSN // last complete record in the rest of the log
}

type window struct{ from, to LSN }

// groupState is one group while the log is read.
type groupState struct {
	log    GroupLog
	base   uint64 // op of the image
	lost   bool   // the image is damaged: base is not known
	known  uint64 // head that the log claims
	proven int    // windows known not to have hit this group

	life  LSN // last born or gone record
	named int // windows known not to have hit an adopt record that counts
}

func (g *groupState) head() uint64 { return max(g.base, g.log.Head()) }

func (g *groupState) fault(kind FaultKind, from, to uint64, lsn LSN) {
	g.log.Faults = append(g.log.Faults, Fault{kind, from, to, lsn})
}

// group returns the state of a group for a record at lsn; nil if a checkpoint says that it was gone.
func (r *recovery) group(id uint64, lsn LSN) *groupState {
	if g := r.groups[id]; g != nil {
		return g
	}
	if lsn < r.images.at && r.images.complete {
		return nil
	}
	g := &groupState{log: GroupLog{Group: id}}
	r.groups[id] = g
	r.order = append(r.order, id)
	return g
}

// read goes through the whole log. It sets the end of each file and of the log.
func (r *recovery) read() {
	r.begin()
	for i, f := range r.files {
		if r.ended {
			break
		}
		r.out.End = f.first + fileHeaderSize
		limit := f.size
		var next *logFile
		if i+1 < len(r.files) {
			next = r.files[i+1]
			if next.headerOK {
				limit = min(limit, max(int64(next.prevEnd-f.first), fileHeaderSize))
			}
		}
		b, err := r.scan.load(f.file, limit)
		if err != nil {
			r.damage(f, 0, limit, "unreadable: "+err.Error())
		}
		f.end = scan(f, b, fileHeaderSize, func(e *event) bool { return r.event(i, b, e) })
		if r.ended {
			r.cut(i)
			break
		}
		r.out.End = f.endLSN()
		r.join(i, b, next)
	}
	r.finish()
}

// begin checks that the first file starts no later than the checkpoint.
func (r *recovery) begin() {
	for _, f := range r.files {
		r.settled = max(r.settled, f.settled)
	}
	if len(r.files) == 0 {
		if r.images.at > 0 || r.opt.Durable > 0 {
			r.out.Corrupt = append(r.out.Corrupt, Damage{File: walPrefix + "*", Reason: "no log file follows the checkpoint"})
			r.windows = append(r.windows, window{r.images.at, max(r.images.at, r.opt.Durable)})
			r.out.End = max(r.images.at, r.opt.Durable)
		}
		return
	}
	if first := r.files[0]; first.headerOK && first.prevEnd > r.images.at || !first.headerOK && first.first > max(r.images.at, firstLSN) {
		r.out.Corrupt = append(r.out.Corrupt, Damage{File: first.name, Reason: "files before it, above the checkpoint, are missing"})
		r.windows = append(r.windows, window{r.images.at, first.first})
	}
}

// join checks that the file after f begins where f's records end.
func (r *recovery) join(i int, b []byte, next *logFile) {
	f := r.files[i]
	if next == nil || !next.headerOK || next.prevEnd <= f.endLSN() {
		return
	}
	e := event{file: f, pos: f.end, size: int64(next.prevEnd - f.endLSN()), what: unknown}
	e.lsn = f.endLSN()
	if !r.event(i, b, &e) {
		r.cut(i)
	}
}

// cut ends the log in file i.
func (r *recovery) cut(i int) {
	r.out.End = r.files[i].endLSN()
	for _, f := range r.files[i+1:] {
		r.out.Torn += max(f.end-fileHeaderSize, 0)
	}
}

// event takes one finding of the scan; false ends the log in front of it.
func (r *recovery) event(i int, b []byte, e *event) bool {
	e.lsn = e.file.first + LSN(e.pos)
	switch e.what {
	case intact:
		r.apply(e)
		return true
	case scuffed:
		// Whole but for its footer, which a killed write may not have reached.
		if !r.tears(i, b, e) {
			r.damage(e.file, e.pos, e.size, "record footer")
		}
		r.mend(e)
		r.apply(e)
		return true
	}
	if r.tears(i, b, e) {
		r.ended = true
		r.out.Torn += e.size
		r.countTorn(i, b, e.pos)
		return false
	}
	if e.what == unknown {
		r.damage(e.file, e.pos, e.size, "unreadable records")
		r.windows = append(r.windows, window{e.lsn, e.lsn + LSN(e.size)})
		return true
	}
	r.damage(e.file, e.pos, e.size, "record fails its checksum")
	r.spoiled(e)
	return true
}

// mend writes the footer of a record that lacks it. Failing to is no harm: the record is known.
func (r *recovery) mend(e *event) {
	var b [footerSize]byte
	e.putFooter(b[:])
	_, _ = e.file.file.WriteAt(b[:], e.pos+e.size-footerSize)
}

// tears is the tear rule: whether the log ends at the damage e.
func (r *recovery) tears(i int, b []byte, e *event) bool {
	r.lookAhead(i, b, e.pos)
	known := max(r.opt.Durable, r.settled, r.synced, r.aheadSync)
	if e.lsn < known {
		return false
	}
	if r.opt.Suspect {
		return true
	}
	return e.what != spoiled && r.aheadLast <= e.lsn
}

// countTorn counts the prepares from pos in file i on.
func (r *recovery) countTorn(i int, b []byte, pos int64) {
	count := func(e *event) bool {
		if e.what != unknown && e.kind == KindPrepare {
			r.out.TornOps++
		}
		return true
	}
	scan(r.files[i], b, pos, count)
	var s scanner
	for _, f := range r.files[i+1:] {
		if rest, err := s.load(f.file, f.size); err == nil || len(rest) > 0 {
			scan(f, rest, fileHeaderSize, count)
		}
	}
}

// lookAhead reads the rest of the log for what tears needs, once.
func (r *recovery) lookAhead(i int, b []byte, pos int64) {
	if r.looked {
		return
	}
	r.looked = true
	note := func(e *event) bool {
		if e.what != intact && e.what != scuffed && e.what != spoiled {
			return true
		}
		r.aheadLast = max(r.aheadLast, e.file.first+LSN(e.pos))
		if e.kind == kindSynced {
			r.aheadSync = max(r.aheadSync, LSN(e.op))
		}
		return true
	}
	scan(r.files[i], b, pos, note)
	var s scanner
	for _, f := range r.files[i+1:] {
		rest, err := s.load(f.file, f.size)
		if err == nil || len(rest) > 0 {
			f.end = scan(f, rest, fileHeaderSize, note)
		}
	}
}

func (r *recovery) damage(f *logFile, pos, size int64, reason string) {
	f.damaged = true
	r.out.Corrupt = append(r.out.Corrupt, Damage{File: f.name, Pos: pos, Len: size, Reason: reason, Kept: f.name + damagedSuffix})
}

// finish draws the conclusions that need the whole log.
func (r *recovery) finish() {
	if r.opt.Durable > r.out.End && len(r.files) > 0 {
		last := r.files[len(r.files)-1]
		r.damage(last, last.end, int64(r.opt.Durable-r.out.End), "the log is shorter than it was when the node stopped")
		r.windows = append(r.windows, window{r.out.End, r.opt.Durable})
	}
	r.out.Durable = max(r.synced, min(r.opt.Durable, r.out.End))
	explained := r.resolved
	if r.images.complete { // what is not in it was gone
		explained = max(explained, r.covered())
	}
	r.out.Unsure = explained < len(r.windows)
	slices.Sort(r.order)
	r.out.Groups = make([]GroupLog, 0, len(r.order))
	for _, id := range r.order {
		g := r.groups[id]
		r.conclude(g)
		r.out.Groups = append(r.out.Groups, g.log)
	}
}

// conclude lists what is missing from g's entries.
func (r *recovery) conclude(g *groupState) {
	if g.log.Gone {
		return
	}
	g.log.Commit = g.committed()
	if g.log.Image != nil && g.log.Image.Fenced {
		g.fault(FaultFenced, g.base+1, 0, r.images.at)
	}
	next := g.base + 1
	for i := 0; i < len(g.log.Entries); i++ {
		e := &g.log.Entries[i]
		if op := e.Header.Op; op > next && !(g.lost && i == 0) {
			g.fault(FaultMissing, next, op-1, e.LSN)
		}
		next = e.Header.Op + 1
		if !e.Damaged {
			continue
		}
		from := e.Header.Op
		for i+1 < len(g.log.Entries) && g.log.Entries[i+1].Damaged && g.log.Entries[i+1].Header.Op == next {
			i, next = i+1, next+1
		}
		g.fault(FaultDamaged, from, next-1, e.LSN)
	}
	if g.known >= next && !g.lost {
		g.fault(FaultMissing, next, g.known, r.out.End)
		next = g.known + 1
	}
	explained := max(g.proven, r.resolved)
	if g.log.Image != nil && g.log.Image.Settled {
		explained = max(explained, r.covered())
	}
	named := max(g.named, r.resolved)
	if g.log.Image != nil {
		named = max(named, r.covered())
	}
	g.log.AdoptUnsure = named < len(r.windows)
	if explained < len(r.windows) {
		g.fault(FaultUnsure, next, 0, r.windows[explained].from)
	}
}

// committed is the highest commit point that the image and the good entries know.
func (g *groupState) committed() uint64 {
	op := g.base
	if g.log.Image != nil {
		op = max(op, g.log.Image.Commit)
	}
	for i := range g.log.Entries {
		if e := &g.log.Entries[i]; !e.Damaged {
			op = max(op, e.Header.Commit)
		}
	}
	return op
}

// covered is the number of windows that lie below the checkpoint.
func (r *recovery) covered() int {
	n := 0
	for n < len(r.windows) && r.windows[n].to <= r.images.at {
		n++
	}
	return n
}

// header decodes the prepare header in e's payload. It fails if it is not the one the record names.
func (e *event) header(h *wire.PrepareHeader) bool {
	if len(e.raw) < wire.HeaderSize {
		return false
	}
	err := h.Decode(e.raw)
	return err == nil && h.Group == e.group && h.Op == e.op
}
