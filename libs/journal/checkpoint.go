package journal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// checkpointFile is the checkpoint in force.
type checkpointFile struct {
	name    string // empty = none
	at      LSN
	damaged [2]bool // the file, its copy
}

func checkpointName(at LSN) string { return fmt.Sprintf("%s%020d", checkpointPrefix, uint64(at)) }

// Checkpoint writes the images, twice, and lets go of the log files nobody needs any more. It may run
// beside writes.
//
// Groups that recovery found faulty stay so: they are fenced in the images, and added to them if the
// caller left them out, until Heal or a record that ends their life.
//
// at is a position whose records the caller has all taken into account (Done.LSN of the last round
// it has processed): the images hold every group that exists at that point, fenced ones included,
// each at an op that is committed and whose effects outside the journal are durable. A group that
// is not among the images was gone by then; its older records are dropped. Records above an image's
// op stay in the log.
//
// ErrFull leaves the checkpoint before in force; other errors are final.
func (j *Journal) Checkpoint(at LSN, images []Image) error {
	j.checking.Lock()
	defer j.checking.Unlock()
	j.mu.Lock()
	err := j.usable()
	old := j.checkpoint
	images = j.fence(images)
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if at == 0 || at > j.Position() || at < old.at {
		return fmt.Errorf("journal: checkpoint at %d, outside of %d to %d", at, old.at, j.Position())
	}
	// The log never ends below its checkpoint, not even after a power cut.
	if err := j.Sync(); err != nil {
		return err
	}
	if err := j.writeBoth(at, images); err != nil {
		if vfs.IsFull(err) {
			return errors.Join(ErrFull, err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.fail(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.checkpoint = checkpointFile{name: checkpointName(at), at: at}
	if err := j.dropBelow(at, images, old); err != nil {
		return j.fail(err)
	}
	j.refill()
	return nil
}

// writeCheckpoint makes the file durable under its name.
func (j *Journal) writeCheckpoint(name string, at LSN, images []Image) (err error) {
	temp := j.path(name + tempSuffix)
	if err := j.fs.Remove(temp); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	f, err := j.fs.Create(temp)
	if err != nil {
		return err
	}
	w := imageWriter{file: f, pos: checkpointHeader}
	err = w.write(at, images, j.opt.Owner)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, j.fs.Remove(temp))
	}
	if err := j.fs.Rename(temp, j.path(name)); err != nil {
		return err
	}
	return j.fs.SyncDir(j.opt.Dir)
}

// imageWriter writes a checkpoint through one buffer.
type imageWriter struct {
	file vfs.File
	buf  []byte
	pos  int64 // file position behind buf
	err  error
}

const imageBuffer = 1 << 20

func (w *imageWriter) write(at LSN, images []Image, o Owner) error {
	table := make([]byte, 0, len(images)*tableEntry)
	var head [imageHeader]byte
	for i := range images {
		m := &images[i]
		table = le.AppendUint64(table, m.Group)
		table = le.AppendUint64(table, uint64(w.pos))
		stored := m.stored()
		m.putHeader(head[:], stored)
		w.add(head[:])
		w.add(stored)
		w.add(make([]byte, -len(stored)&7))
	}
	h := checkpointHead{at: at, count: uint64(len(images)), table: w.pos, hash: wire.Hash64(table)}
	h.length = w.pos + int64(len(table)) + checkpointHeader
	w.add(table)
	h.put(head[:], o)
	w.add(head[:checkpointHeader])
	w.flush()
	if w.err == nil {
		_, w.err = w.file.WriteAt(head[:checkpointHeader], 0)
	}
	return w.err
}

func (w *imageWriter) add(b []byte) {
	w.pos += int64(len(b))
	if len(b) < imageBuffer {
		w.buf = append(w.buf, b...)
		if len(w.buf) >= imageBuffer {
			w.flush()
		}
		return
	}
	w.pos -= int64(len(b))
	w.flush()
	if w.err == nil {
		_, w.err = w.file.WriteAt(b, w.pos)
	}
	w.pos += int64(len(b))
}

func (w *imageWriter) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.file.WriteAt(w.buf, w.pos-int64(len(w.buf)))
	}
	w.buf = w.buf[:0]
}

// dropBelow lets go of the longest run of oldest files that hold nothing above the images, and of
// the checkpoint before. j.mu is held.
func (j *Journal) dropBelow(at LSN, images []Image, old checkpointFile) error {
	covered := make(map[uint64]*Image, len(images))
	for i := range images {
		covered[images[i].Group] = &images[i]
	}
	j.applyUndo(at)
	for len(j.files) > 1 && j.files[0].endLSN() <= at && j.files[0].within(covered) {
		f := j.files[0]
		j.files = j.files[1:]
		j.used.Add(-f.end)
		if err := j.release(f); err != nil {
			return err
		}
	}
	j.index.forget(j.files[0].first)
	if old.name == "" || old.name == j.checkpoint.name {
		return nil
	}
	j.dirty = true
	return j.removeCheckpoint(old)
}

// undo is a record that took earlier records of its group back: a truncate, born or gone record.
type undo struct {
	group, op uint64 // what counts no more: above op
	file      LSN    // first LSN of the file it stands in
	lsn       LSN
}

// applyUndo takes what was undone before at off the heads of older files: it must not keep them.
// j.mu is held.
func (j *Journal) applyUndo(at LSN) {
	later := j.undo[:0]
	for _, u := range j.undo {
		if u.lsn > at {
			later = append(later, u)
			continue
		}
		for _, f := range j.files {
			if f.endLSN() <= u.file {
				f.heads.lower(u.group, u.op)
			}
		}
	}
	j.undo = later
}

// within reports whether every prepare in f is covered by an image or belongs to a group that is
// gone. Entries of a fenced group above its image do not hold the log up: the file is kept aside.
func (f *logFile) within(covered map[uint64]*Image) bool {
	kept := false
	for _, h := range f.heads.list {
		m := covered[h.group]
		if m == nil || h.op <= m.Op {
			continue
		}
		if !m.Fenced {
			return false
		}
		kept = true
	}
	f.damaged = f.damaged || kept
	return true
}

// fence returns the images with the faulty groups fenced and complete. j.mu is held.
func (j *Journal) fence(images []Image) []Image {
	if len(j.faulty) == 0 {
		return images
	}
	images = slices.Clone(images)
	for _, group := range j.faulty {
		i := slices.IndexFunc(images, func(m Image) bool { return m.Group == group })
		if i < 0 {
			i = len(images)
			images = append(images, Image{Group: group})
		}
		images[i].Fenced = true
	}
	return images
}

// Fence says that a group lost records although recovery did not find it: it is fenced in every
// checkpoint until Heal.
func (j *Journal) Fence(group uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.faulty, group) {
		j.faulty = append(j.faulty, group)
	}
}

// Heal says that a group which recovery found faulty has all it should again.
func (j *Journal) Heal(group uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.heal(group)
}

func (j *Journal) heal(group uint64) {
	if i := slices.Index(j.faulty, group); i >= 0 {
		j.faulty = slices.Delete(j.faulty, i, i+1)
	}
}
