package journal

import "github.com/whippet-mq/whippet/libs/vfs"

// prewriteFrom is how many bytes of records a file whose blocks were never written takes before a
// better one is made: a log that hardly writes does not pay for it.
const prewriteFrom = 256 << 10

// PrepareDue reports whether Prepare has something to do.
func (j *Journal) PrepareDue() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.prepareDue()
}

// prepareDue: the active file is nearly full or was never written before, and no better one waits.
// j.mu is held.
func (j *Journal) prepareDue() bool {
	f := j.active()
	if j.usable() != nil || f == nil || f.reserve {
		return false
	}
	if f.size-f.end <= j.opt.FileSize/4 && len(j.spares) <= j.reserveFiles() {
		return true
	}
	return !f.written && !f.plain && f.end > prewriteFrom && !j.writtenSpare()
}

// writtenSpare reports whether the next file would be one with written blocks. j.mu is held.
func (j *Journal) writtenSpare() bool {
	if len(j.spares) <= j.reserveFiles() {
		return false
	}
	for _, s := range j.spares {
		if s.written {
			return true
		}
	}
	return false
}

// Prepare makes the next log file ahead of its need, and writes its blocks where the file system can do
// that: a sync of records in blocks that are written for the first time has to change the file's
// metadata too, which takes another write and a wait for other users of the file system. The log
// moves to such a file as soon as there is one. It may run beside writes and syncs, once at a time.
func (j *Journal) Prepare() {
	s, ok := j.beginPrepare()
	if !ok {
		return
	}
	err := j.prewrite(&s)
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.active(); f != nil && (err != nil || !s.written) {
		f.plain = true // not worth another attempt before the next file
	}
	j.spares = append(j.spares, s)
}

// beginPrepare takes a spare beyond the reserve out of the list, or makes one.
func (j *Journal) beginPrepare() (s spare, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.prepareDue() || !j.refill() {
		return spare{}, false
	}
	if len(j.spares) > j.reserveFiles() {
		return j.takeSpare(j.opt.FileSize)
	}
	s, err := j.newSpare(j.opt.FileSize)
	return s, err == nil
}

// prewrite writes the blocks of a file nobody else knows.
func (j *Journal) prewrite(s *spare) error {
	f, err := j.fs.Open(j.path(s.name))
	if err != nil {
		return err
	}
	if p, can := f.(vfs.Prewriter); can {
		err = p.Prewrite(s.size)
		s.written = err == nil
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
