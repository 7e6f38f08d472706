package journal

import (
	"errors"
	"slices"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Payloads up to this size are copied next to their headers; longer ones are written from where
// they are.
const copyLimit = 4 << 10

// digestLimit is the largest number of groups a synced record lists.
const digestLimit = 4096

// digestGone is the head of a group that ended, in a synced record.
const digestGone = ^uint64(0)

// turnMark tells, in a synced record, a position from a head.
const turnMark = 1 << 63

// Write appends the round's records after writing its large bodies; with r.Sync everything is
// durable when it returns. ErrFull leaves the log as it was; any other error is final.
func (j *Journal) Write(r *Round) error {
	if len(r.Large) > 0 {
		files, err := j.WriteBodies([]*Round{r}, nil)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := f.Sync(); err != nil {
				return j.Fail(err)
			}
		}
	}
	j.mu.Lock()
	j.single[0] = r
	err := j.append(j.single[:])
	j.single[0] = nil
	j.mu.Unlock()
	if err == nil && r.Sync {
		err = j.Sync()
	}
	return err
}

// AppendRounds appends the records of all rounds with one write, without their large bodies and
// without a sync, and returns the position behind them. Errors are those of Write.
func (j *Journal) AppendRounds(rounds []*Round) (LSN, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.append(rounds); err != nil {
		return 0, err
	}
	return j.Position(), nil
}

// MarkSynced appends a synced record if the log became durable beyond the last one.
func (j *Journal) MarkSynced() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.durable <= j.marked {
		return j.usable()
	}
	return j.append(nil)
}

// WriteBodies writes the large bodies of rounds to their segments; it comes before AppendRounds. The
// files in need of it must be synced in between: they are appended to sync, each once. ErrFull is the
// only error after which nothing is lost: the bytes are above all that any record names. Any other
// error is final.
func (j *Journal) WriteBodies(rounds []*Round, sync []vfs.File) ([]vfs.File, error) {
	for _, r := range rounds {
		for i := range r.Large {
			l := &r.Large[i]
			if err := j.writeBody(l, r.Sync); err != nil {
				return sync, err
			}
			if (r.Sync || l.Sync) && !slices.Contains(sync, l.File) {
				sync = append(sync, l.File)
			}
		}
	}
	return sync, nil
}

// writeBody writes one large body. A file whose sync no round waits for is noted for SyncAll.
func (j *Journal) writeBody(l *LargeBody, synced bool) error {
	if _, err := l.File.WriteAt(l.Data, l.Pos); err != nil {
		if vfs.IsFull(err) {
			return spaceError(err)
		}
		return j.Fail(err)
	}
	if !synced && !l.Sync {
		j.mu.Lock()
		j.bodies.add(l.File)
		j.mu.Unlock()
	}
	return nil
}

// Owe makes the next background sync include f: it holds large bodies that recovery found in the page
// cache, which an earlier life wrote and perhaps never synced.
func (j *Journal) Owe(f vfs.File) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bodies.add(f)
}

// Fail makes err the journal's final error: a write or sync its records rest on has failed.
func (j *Journal) Fail(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fail(err)
}

// fileSet is a set of files in order of insertion.
type fileSet struct {
	list []vfs.File
	has  map[vfs.File]bool
}

func (s *fileSet) add(f vfs.File) {
	if s.has[f] {
		return
	}
	if s.has == nil {
		s.has = map[vfs.File]bool{}
	}
	s.has[f] = true
	s.list = append(s.list, f)
}

func spaceError(err error) error {
	if vfs.IsFull(err) {
		return errors.Join(ErrFull, err)
	}
	return err
}

// append writes all records of rounds with one vectored write into one file, preceded by a synced
// record when one is due. j.mu is held.
func (j *Journal) append(rounds []*Round) error {
	if err := j.usable(); err != nil {
		return err
	}
	mark := j.syncedRecord()
	need, small, reserved := mark.diskSize(), int64(0), true
	if mark.Kind == 0 {
		need = 0
	}
	small = need
	for _, r := range rounds {
		reserved = reserved && r.Reserved
		for i := range r.Records {
			n := r.Records[i].diskSize()
			need += n
			if len(r.Records[i].Frame) > copyLimit {
				n -= int64(len(r.Records[i].Frame))
			}
			small += n
		}
	}
	if need == 0 {
		return nil
	}
	f, err := j.room(need, reserved)
	if err != nil {
		return err
	}
	n, err := j.writeTo(f, mark, rounds, small)
	if err != nil {
		return j.writeFailed(f, err)
	}
	f.dirty = true
	lsn := f.endLSN()
	j.used.Add(n - f.end)
	f.end = n
	j.pos.Store(uint64(f.endLSN()))
	j.written(f, lsn, mark, rounds)
	return nil
}

// writeTo encodes the records and writes them at f.end; it returns the position behind them.
func (j *Journal) writeTo(f *logFile, mark Record, rounds []*Round, small int64) (int64, error) {
	start, pos := f.end, f.end
	if f.end == fileHeaderSize && !f.headerOK {
		start, small = 0, small+fileHeaderSize
	}
	if int64(cap(j.arena)) < small {
		j.arena = make([]byte, 0, max(small, 64<<10))
	}
	e := encoder{arena: j.arena[:0], vec: j.vec[:0], first: f.first, pos: pos}
	if start == 0 {
		e.arena = e.arena[:fileHeaderSize]
		f.putHeader(e.arena, j.opt.Owner)
	}
	if mark.Kind != 0 {
		e.record(&mark)
	}
	for _, r := range rounds {
		for i := range r.Records {
			e.record(&r.Records[i])
		}
	}
	e.flush()
	j.arena, j.vec = e.arena[:0], e.vec
	_, err := f.file.WriteVec(e.vec, start)
	clear(j.vec[:cap(j.vec)])
	if cap(j.arena) > 4<<20 {
		j.arena = nil
	}
	return e.pos, err
}

// written notes what the records did, which begin at lsn. j.mu is held.
func (j *Journal) written(f *logFile, lsn LSN, mark Record, rounds []*Round) {
	f.headerOK = true
	if mark.Kind != 0 {
		j.marked = LSN(mark.Op)
		j.touched.reset()
		j.turns = j.turns[:0]
		lsn += LSN(mark.diskSize())
		j.digestFrom = lsn // records of this write follow the mark
	}
	for _, r := range rounds {
		for i := range r.Records {
			rec := &r.Records[i]
			switch rec.Kind {
			case KindPrepare:
				f.heads.raise(rec.Group, rec.Op)
				j.index.add(rec.Group, rec.Op, lsn, f.first)
				j.touched.set(rec.Group, rec.Op)
			case KindTruncate:
				j.index.cut(rec.Group, rec.Op)
				j.undone(f, rec.Group, rec.Op-1)
				j.touched.set(rec.Group, rec.Op-1)
			case KindBorn:
				j.heal(rec.Group)
				j.index.drop(rec.Group)
				j.undone(f, rec.Group, 0)
				j.touched.set(rec.Group, 0)
			case KindGone:
				j.heal(rec.Group)
				j.index.drop(rec.Group)
				j.undone(f, rec.Group, 0)
				j.touched.set(rec.Group, digestGone)
			}
			if rec.Kind != KindPrepare {
				j.turns = append(j.turns, groupHead{rec.Group, uint64(lsn)})
			}
			lsn += LSN(rec.diskSize())
		}
	}
}

// undone notes that the group's records up to here count no further than to op: those in f at once,
// since f goes only as a whole, those in older files once a checkpoint is above f. j.mu is held.
func (j *Journal) undone(f *logFile, group, op uint64) {
	f.heads.lower(group, op)
	j.undo = append(j.undo, undo{group, op, f.first, f.endLSN()})
}

// writeFailed decides what a failed write leaves. A full disk is survived if the half-written bytes
// can be cut off again. j.mu is held.
func (j *Journal) writeFailed(f *logFile, err error) error {
	if !vfs.IsFull(err) {
		return j.fail(err)
	}
	if e := f.file.Truncate(f.end); e != nil {
		return j.fail(errors.Join(err, e))
	}
	f.size = f.end
	return errors.Join(ErrFull, err)
}

// syncedRecord is the synced record that is due; Kind 0 if none is. j.mu is held.
func (j *Journal) syncedRecord() Record {
	if j.durable <= j.marked {
		return Record{}
	}
	r := Record{Kind: kindSynced, Group: uint64(j.digestFrom), Op: uint64(j.durable)}
	if len(j.touched.list)+len(j.turns) > digestLimit {
		r.Group = uint64(j.Position())
		return r
	}
	j.digest = j.digest[:0]
	for _, h := range j.touched.list {
		j.digest = le.AppendUint64(j.digest, h.group)
		j.digest = le.AppendUint64(j.digest, h.op)
	}
	for _, h := range j.turns {
		j.digest = le.AppendUint64(j.digest, h.group)
		j.digest = le.AppendUint64(j.digest, h.op|turnMark)
	}
	r.Frame = j.digest
	return r
}

// encoder lays records out for one vectored write: small payloads are copied into the arena, whose
// capacity suffices; large ones stay where they are.
type encoder struct {
	arena []byte
	vec   [][]byte
	run   int // start of the arena bytes not in vec yet
	first LSN
	pos   int64
}

func (e *encoder) record(r *Record) {
	h := recordHeader{
		length: uint32(headerSize + r.payloadSize()), lsn: e.first + LSN(e.pos),
		group: r.Group, op: r.Op, kind: r.Kind,
	}
	head := len(e.arena)
	e.arena = e.arena[:head+headerSize]
	if len(r.Frame) > copyLimit && r.At.Len == 0 {
		h.payload = wire.Hash64(r.Frame)
		e.flush()
		e.vec = append(e.vec, r.Frame)
	} else {
		e.arena = append(e.arena, r.Frame...)
		if r.At.Len > 0 {
			h.flags |= flagLocated
			n := len(e.arena)
			e.arena = e.arena[:n+locationSize]
			r.At.put(e.arena[n:])
		}
		h.payload = wire.Hash64(e.arena[head+headerSize:])
	}
	h.put(e.arena[head:])
	size := paddedSize(int64(h.length))
	tail := len(e.arena)
	e.arena = e.arena[:tail+int(size-int64(h.length))]
	clear(e.arena[tail:])
	h.putFooter(e.arena[len(e.arena)-footerSize:])
	e.pos += size
}

// flush moves the arena bytes since the last flush into the vector.
func (e *encoder) flush() {
	if len(e.arena) > e.run {
		e.vec = append(e.vec, e.arena[e.run:len(e.arena):len(e.arena)])
		e.run = len(e.arena)
	}
}
