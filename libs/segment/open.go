package segment

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Report says what Open found.
type Report struct {
	Segments int       // files the state counts
	Bytes    int64     // bytes the state counts
	Damage   []*Damage // what is wrong with them; see Settle
}

// Open starts the log of a partition in dir from its checkpoint state; the zero State is a new
// partition, which costs no system call. It trusts only the bytes st counts: a stat per file and the last
// batch are checked, nothing else is read, nothing on disk is changed.
//
// The caller then replays the journal above the checkpoint in order: Append for batches it holds,
// Restore for large ones, Publish, Trim and Purge as they were applied; and ends with Settle. Damage
// waits until then, because a trim or purge in the journal may explain a missing file.
func Open(fs vfs.FS, dir string, opt Options, st State) (*Log, Report, error) {
	if st.SegmentSize > 0 {
		opt.SegmentSize = st.SegmentSize // replayed batches must roll where they did
	}
	opt = opt.withDefaults()
	l := &Log{fs: fs, dir: dir, opt: opt, generation: st.Generation, start: st.Start, commit: st.Next, next: st.Next, time: st.Time, timeFrom: st.Time}
	l.life = &life{fs: fs, files: opt.Files, parent: dir, number: st.Generation}
	l.origin.generation, l.origin.start = st.Generation, st.Start
	for i := range st.Segments {
		s := &st.Segments[i]
		x := extent{
			seg: newSegment(l.life, s.Base), at: l.end, next: s.Next, length: s.Length, last: s.Last,
			firstTime: s.FirstTime, lastTime: s.LastTime, hash: s.Hash, coldLen: s.Length,
		}
		x.seg.named.Store(true)
		l.life.rooted.Store(true)
		d, err := x.check(i == len(st.Segments)-1)
		if err != nil {
			return nil, Report{}, err
		}
		if d != nil {
			l.damage = append(l.damage, d)
		}
		if l.active.seg != nil {
			l.sealed = append(l.sealed, l.active)
		}
		l.active = x
		l.end += s.Length
	}
	l.last, l.lastLen = l.active.seg, l.active.length
	l.committed, l.flushed, l.bytes = l.end, l.end, l.end
	l.publish()
	return l, Report{Segments: len(st.Segments), Bytes: l.bytes, Damage: l.damage}, nil
}

// check compares the file with what the state counts; newest: its last batch too. The error is one
// that says nothing about the data.
func (x *extent) check(newest bool) (*Damage, error) {
	fs := x.seg.life.fs
	e, err := fs.Stat(x.seg.path())
	switch {
	case vfs.IsNotExist(err):
		return x.damage(0, "file is missing", err), nil
	case err != nil:
		return nil, err
	case e.Size < x.length:
		return x.damage(e.Size, fmt.Sprintf("file is too short, %d bytes are counted", x.length), nil), nil
	case !newest:
		return nil, nil
	}
	b := make([]byte, x.length-x.last)
	if _, err := x.seg.ReadAt(b, x.last); err != nil {
		return x.damage(x.last, "last batch cannot be read", err), nil
	}
	h := parseHeader(b)
	if h.length != int64(len(b)) || h.base+uint64(h.count) != x.next || h.time != x.lastTime {
		return x.damage(x.last, fmt.Sprintf("last batch does not end at offset %d", x.next), nil), nil
	}
	if err := wire.VerifyBatch(b); err != nil {
		return x.damage(x.last, "last batch does not verify", err), nil
	}
	return nil, nil
}

// Restore appends a large batch again whose bytes a journal record names. verify reads and checks all
// of it (the boot is suspect, or the record is above the last synced one); otherwise its header. On
// error, a *Damage or an I/O error, the log is unchanged: above the last synced record the batch was
// never acked and the journal ends before it, below the partition is fenced.
func (l *Log) Restore(at Location, op uint64, verify bool) error {
	seg, pos := l.last, l.lastLen
	if at.Pos == 0 && at.Segment == l.next {
		seg, pos = newSegment(l.life, l.next), 0
		defer l.life.files.forget(seg)
	}
	if seg == nil || at.Segment != seg.base || at.Pos != pos || at.Len <= InlineLimit || at.Len > maxBatch {
		return &Damage{Path: l.life.dir(), Segment: at.Segment, Pos: at.Pos,
			Reason: fmt.Sprintf("op %d, offset %d, is recorded there; the log does not lead to it", op, l.next)}
	}
	x := extent{seg: seg, length: at.Pos + at.Len, next: ^uint64(0)}
	size := int64(headerSize)
	if verify {
		size = at.Len
	}
	if int64(cap(l.scratch)) < size {
		l.scratch = make([]byte, size)
	}
	b := l.scratch[:size]
	if _, err := seg.ReadAt(b, pos); err != nil {
		return x.readError(pos, err)
	}
	h := parseHeader(b)
	if h.base != l.next || h.length != at.Len || h.count == 0 || wire.Hash64(b[:headerSize]) != at.Hash {
		return x.damage(pos, fmt.Sprintf("op %d: not the recorded batch", op), nil)
	}
	if verify {
		if err := wire.VerifyBatch(b); err != nil {
			return x.damage(pos, fmt.Sprintf("op %d does not verify", op), err)
		}
	} else if e, err := l.fs.Stat(seg.path()); err != nil || e.Size < at.Pos+at.Len {
		return x.damage(pos, fmt.Sprintf("op %d: file is too short", op), err)
	}
	if pos == 0 {
		l.last, l.lastLen = newSegment(l.life, l.next), 0 // the record is the truth about where files end
	}
	l.extend(h)
	l.last.dirty.Store(true)
	return nil
}

// Last is the file the last batch stands in, nil if there is none.
func (l *Log) Last() vfs.File {
	if l.last == nil {
		return nil
	}
	return l.last
}

// Settle ends recovery. The error is the first *Damage that no trim or purge has explained: the
// partition is fenced and its files stay as they are. What removals of an earlier run left behind
// comes out of the next Checkpointed.
func (l *Log) Settle() error {
	var standing []*Damage
	for _, d := range l.damage {
		if l.holds(d) {
			standing = append(standing, d)
		}
	}
	l.scratch = nil
	if l.damage = standing; len(standing) > 0 {
		return standing[0]
	}
	return l.leftovers()
}

// holds reports whether the damaged segment is still part of the log.
func (l *Log) holds(d *Damage) bool {
	if path.Dir(d.Path) != l.life.dir() {
		return false
	}
	return d.Segment >= l.start && d.Segment < l.commit
}

// leftovers lists names that a removal, cut short by a crash, should have taken: what the state Open
// was given knows to be gone. Other names nothing explains are left alone.
func (l *Log) leftovers() error {
	r := l.removal()
	lives, err := l.fs.ReadDir(l.dir)
	if vfs.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	for _, e := range lives {
		if g, err := strconv.ParseUint(e.Name, 10, 64); err == nil && e.Dir && g < l.origin.generation {
			r.names = append(r.names, path.Join(l.dir, e.Name))
		}
	}
	if l.generation == l.origin.generation {
		files, err := l.fs.ReadDir(l.life.dir())
		if err != nil && !vfs.IsNotExist(err) {
			return err
		}
		for _, e := range files {
			name := strings.TrimSuffix(strings.TrimSuffix(e.Name, ".log"), ".index")
			if base, err := strconv.ParseUint(name, 10, 64); err == nil && base < l.origin.start {
				r.names = append(r.names, path.Join(l.life.dir(), e.Name))
			}
		}
	}
	if len(r.names) > 0 {
		l.condemned = append(l.condemned, r)
	}
	return nil
}

// Close gives the open files back. It writes nothing: what only memory has, the journal has too.
func (l *Log) Close() error {
	for i := range l.sealed {
		l.life.files.forget(l.sealed[i].seg)
	}
	if l.active.seg != nil {
		l.life.files.forget(l.active.seg)
	}
	for i := l.head; i < len(l.pending); i++ {
		l.life.files.forget(l.pending[i].seg)
	}
	return nil
}
