package journal

import (
	"errors"
	"fmt"
)

// spare is an allocated file without records: the reserve, a recycled log file or one made ahead.
type spare struct {
	name    string
	size    int64
	written bool // every block was written before: records overwrite it
}

// reserveFiles is how many spares are kept for reserved rounds.
func (j *Journal) reserveFiles() int {
	return int((j.opt.Reserve + j.opt.FileSize - 1) / j.opt.FileSize)
}

// recycledFiles is how many spares are kept beyond the reserve: what fills up until the next
// checkpoint. Writing into blocks a file already has is much faster than into new ones.
func (j *Journal) recycledFiles() int { return max(1, int(j.opt.Budget/2/j.opt.FileSize)) }

// FreeSpares gives the recycled files beyond the reserve back to the file system, for a disk that
// runs full.
func (j *Journal) FreeSpares() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.spares) > j.reserveFiles() {
		last := len(j.spares) - 1
		if err := j.fs.Remove(j.path(j.spares[last].name)); err != nil {
			return err
		}
		j.spares = j.spares[:last]
		j.dirty = true
	}
	return nil
}

// LendReserve gives all spares back to the file system, the reserve too, for a checkpoint that finds no
// room and will free some. What is lent comes back with the next checkpoint that has room.
func (j *Journal) LendReserve() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.spares) > 0 {
		last := len(j.spares) - 1
		if err := j.fs.Remove(j.path(j.spares[last].name)); err != nil {
			return err
		}
		j.spares = j.spares[:last]
		j.dirty = true
	}
	return nil
}

// room returns the active file with space for need more bytes, rolling to a new one when they do
// not fit. Rounds that are not reserved get nothing while the reserve is in use. j.mu is held.
func (j *Journal) room(need int64, reserved bool) (*logFile, error) {
	f := j.active()
	if f != nil && f.reserve && !reserved {
		if !j.refill() {
			return nil, fmt.Errorf("%w: the reserve is in use", ErrFull)
		}
		f.reserve = false
	}
	if f != nil && f.end+need <= f.size && (f.written || !j.writtenSpare()) {
		return f, nil
	}
	prevEnd, first := LSN(0), firstLSN
	if f != nil {
		prevEnd, first = f.endLSN(), f.endLSN()
	}
	return j.roll(first, prevEnd, fileHeaderSize+need, reserved, false)
}

// roll makes a new active file of at least size bytes. With seal its header is durable before the
// file gets its name. j.mu is held.
func (j *Journal) roll(first, prevEnd LSN, size int64, reserved, seal bool) (*logFile, error) {
	s, fromReserve, err := j.acquire(size, reserved)
	if err != nil {
		return nil, err
	}
	f := &logFile{
		first: first, prevEnd: prevEnd, settled: j.durable, name: walName(first), size: s.size, written: s.written,
		end: fileHeaderSize, reserve: fromReserve,
	}
	if f.file, err = j.fs.Open(j.path(s.name)); err != nil {
		return nil, j.fail(err)
	}
	if seal {
		var b [fileHeaderSize]byte
		f.putHeader(b[:], j.opt.Owner)
		if _, err = f.file.WriteAt(b[:], 0); err == nil {
			err = f.file.Sync()
		}
		f.headerOK = true
	}
	if err == nil {
		err = j.fs.Rename(j.path(s.name), j.path(f.name))
	}
	if err == nil && seal {
		err = j.fs.SyncDir(j.opt.Dir)
	}
	if err != nil {
		return nil, j.fail(errors.Join(err, f.file.Close()))
	}
	j.dirty = true
	j.files = append(j.files, f)
	j.used.Add(fileHeaderSize)
	j.pos.Store(uint64(f.endLSN()))
	return f, nil
}

// acquire takes a spare of at least size bytes: one beyond the reserve, else a new file, else, for
// reserved rounds, one of the reserve. j.mu is held.
func (j *Journal) acquire(size int64, reserved bool) (s spare, fromReserve bool, err error) {
	if len(j.spares) > j.reserveFiles() {
		if s, ok := j.takeSpare(size); ok {
			return s, false, nil
		}
	}
	s, err = j.newSpare(max(size, j.opt.FileSize))
	if err == nil || !reserved {
		return s, false, err
	}
	if s, ok := j.takeSpare(size); ok {
		return s, true, nil
	}
	return spare{}, false, err
}

// takeSpare takes a spare of at least size bytes out of the list, one with written blocks if there is any.
func (j *Journal) takeSpare(size int64) (s spare, ok bool) {
	best := -1
	for i, s := range j.spares {
		if s.size >= size && (best < 0 || s.written && !j.spares[best].written) {
			best = i
		}
	}
	if best < 0 {
		return spare{}, false
	}
	s = j.spares[best]
	j.spares = append(j.spares[:best], j.spares[best+1:]...)
	return s, true
}

// newSpare makes and allocates a file that is not in the list of spares yet. j.mu is held.
func (j *Journal) newSpare(size int64) (spare, error) {
	s := spare{name: fmt.Sprintf("%s%020d", sparePrefix, j.nspare), size: size}
	f, err := j.fs.Create(j.path(s.name))
	if err != nil {
		return spare{}, spaceError(err)
	}
	j.nspare++
	err = f.Allocate(size)
	err = errors.Join(err, f.Close())
	if err != nil {
		return spare{}, spaceError(errors.Join(err, j.fs.Remove(j.path(s.name))))
	}
	return s, nil
}

// refill completes the reserve; false if the disk has no room for it. j.mu is held.
func (j *Journal) refill() bool {
	for len(j.spares) < j.reserveFiles() {
		s, err := j.newSpare(j.opt.FileSize)
		if err != nil {
			return false
		}
		j.spares = append(j.spares, s)
	}
	return true
}

// Full reports whether the log lives on its reserve: only reserved rounds are taken.
func (j *Journal) Full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.active()
	return f != nil && f.reserve
}

// release takes a file out of use: recycled as a spare, kept aside if damaged, else removed.
// j.mu is held; the file is no longer in j.files.
func (j *Journal) release(f *logFile) error {
	if f.file != nil {
		if err := f.file.Close(); err != nil {
			return err
		}
	}
	j.dirty = true
	if f.damaged {
		return j.fs.Rename(j.path(f.name), j.path(f.name)+damagedSuffix)
	}
	if len(j.spares) >= j.reserveFiles()+j.recycledFiles() || f.size < j.opt.FileSize {
		return j.fs.Remove(j.path(f.name))
	}
	s := spare{name: fmt.Sprintf("%s%020d", sparePrefix, j.nspare), size: f.size, written: f.written}
	j.nspare++
	if err := j.fs.Rename(j.path(f.name), j.path(s.name)); err != nil {
		return err
	}
	j.spares = append(j.spares, s)
	return nil
}
