package journal

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// Open reads the log in o.Dir, which it makes if need be (not its parents), and starts a new file behind it. Damage is
// reported, never an error; errors are those of the file system. The caller holds the lock of the
// data directory and opens its journals before it replaces the session record that o.Suspect
// comes from.
func Open(o Options) (*Journal, *Recovered, error) {
	o.defaults()
	if o.FileSize < fileHeaderSize+headerSize+footerSize {
		return nil, nil, fmt.Errorf("journal: file size %d is too small", o.FileSize)
	}
	j := &Journal{opt: o, fs: o.FS}
	if err := j.fs.MkdirAll(o.Dir); err != nil {
		return nil, nil, err
	}
	if err := j.fs.SyncDir(path.Dir(o.Dir)); err != nil {
		return nil, nil, err
	}
	d, err := j.list()
	if err != nil {
		return nil, nil, err
	}
	out := &Recovered{}
	r := &recovery{opt: o, out: out, groups: map[uint64]*groupState{}}
	j.readImages(r, d.checkpoints)
	r.files = chain(d.logs)
	r.read()
	for i := range out.Groups {
		if len(out.Groups[i].Faults) > 0 {
			j.faulty = append(j.faulty, out.Groups[i].Group)
		}
	}
	if err := j.adopt(r, d); err != nil {
		return nil, nil, errors.Join(err, j.abandon(d))
	}
	return j, out, nil
}

// directory is what stands in the journal's directory.
type directory struct {
	logs        []*logFile // ascending
	checkpoints []LSN      // ascending
}

func (j *Journal) list() (*directory, error) {
	entries, err := j.fs.ReadDir(j.opt.Dir)
	if err != nil {
		return nil, err
	}
	d := &directory{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name, tempSuffix) {
			if err := j.fs.Remove(j.path(e.Name)); err != nil && !vfs.IsNotExist(err) {
				return nil, err
			}
		} else if n, ok := numbered(e.Name, walPrefix); ok {
			d.logs = append(d.logs, &logFile{first: LSN(n), name: e.Name, size: e.Size, end: fileHeaderSize})
		} else if n, ok := numbered(e.Name, sparePrefix); ok {
			j.spares = append(j.spares, spare{name: e.Name, size: e.Size})
			j.nspare = max(j.nspare, n+1)
		} else if n, ok := numbered(e.Name, checkpointPrefix); ok {
			d.checkpoints = append(d.checkpoints, LSN(n))
		} else if n, ok := numbered(e.Name, copyPrefix); ok {
			d.checkpoints = append(d.checkpoints, LSN(n))
		}
	}
	// Names sort by number as text because numbers have a fixed width; order is kept explicit.
	slices.SortFunc(d.logs, func(a, b *logFile) int { return cmp.Compare(a.first, b.first) })
	slices.Sort(d.checkpoints)
	d.checkpoints = slices.Compact(d.checkpoints)
	return d, j.openLogs(d)
}

// openLogs opens the log files and reads their headers.
func (j *Journal) openLogs(d *directory) error {
	for _, f := range d.logs {
		file, err := j.fs.Open(j.path(f.name))
		if err != nil {
			return err
		}
		f.file = file
		var b [fileHeaderSize]byte
		n, _ := file.ReadAt(b[:], 0)
		f.readHeader(b[:n], j.opt.Owner)
	}
	return nil
}

// chain returns the files that make up the log. The newest file with a good header says where the
// log before it ended, which leads to its predecessor; files in between were cut off by an earlier
// open. Files behind it, or before one whose header is bad, are taken in order.
func chain(logs []*logFile) []*logFile {
	logs = slices.DeleteFunc(slices.Clone(logs), func(f *logFile) bool { return f.foreign })
	var out []*logFile
	i := len(logs) - 1
	for i >= 0 {
		f := logs[i]
		out = append(out, f)
		i--
		if f.headerOK {
			for i >= 0 && logs[i].first >= f.prevEnd {
				i--
			}
		}
	}
	slices.Reverse(out)
	return out
}

// readImages reads the newest checkpoint.
func (j *Journal) readImages(r *recovery, checkpoints []LSN) {
	if n := len(checkpoints); n > 0 {
		set, faults, missing := j.readCheckpoint(checkpoints[n-1])
		r.images = set
		r.out.Corrupt = append(r.out.Corrupt, faults...)
		if missing || len(faults) > 0 {
			j.mendCheckpoint(&set)
		}
	}
	r.out.Checkpoint = r.images.at
	for i := range r.images.images {
		m := &r.images.images[i]
		r.groups[m.Group] = &groupState{log: GroupLog{Group: m.Group, Image: m, Adopted: m.Adopted, AdoptView: m.AdoptView}, base: m.Op}
		r.order = append(r.order, m.Group)
	}
	for _, id := range r.images.damaged {
		if r.groups[id] != nil {
			continue
		}
		g := &groupState{log: GroupLog{Group: id}, lost: true}
		g.fault(FaultImage, 0, 0, r.images.at)
		r.groups[id] = g
		r.order = append(r.order, id)
	}
}

func (j *Journal) readFile(name string) ([]byte, error) {
	f, err := j.fs.Open(j.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if int64(n) < size && err == nil {
		err = fmt.Errorf("read %d of %d bytes", n, size)
	}
	if int64(n) == size {
		err = nil
	}
	return b[:n], err
}

// adopt makes the recovered log the journal's and starts a new file behind it, whose header says
// where the log ended: what an earlier life left behind that point never comes back.
func (j *Journal) adopt(r *recovery, d *directory) error {
	first := max(firstLSN, r.images.at, r.opt.Durable, r.out.End)
	for _, f := range d.logs {
		first = max(first, f.first+LSN(max(f.size, f.end)))
	}
	first = (first + 4095) &^ 4095
	in := map[*logFile]bool{}
	for i, f := range r.files {
		if f.first >= r.out.End || r.empty(i) {
			continue
		}
		in[f] = true
		f.dirty = true // read from the page cache, perhaps never synced
		j.files = append(j.files, f)
		j.used.Add(f.end)
	}
	for _, f := range d.logs {
		if f.foreign || f.reason != "" && (in[f] || f.end > fileHeaderSize) {
			r.out.Corrupt = append(r.out.Corrupt, Damage{File: f.name, Len: fileHeaderSize, Reason: f.reason, Kept: f.name + damagedSuffix})
			f.damaged = true
		}
	}
	j.durable, j.marked, j.undo, j.index = r.synced, r.synced, r.undo, r.index
	if len(j.files) > 0 {
		j.index.forget(j.files[0].first)
	}
	if err := j.seal(r, d, in, first); err != nil {
		if !errors.Is(err, ErrFull) || r.opt.Suspect || len(j.files) == 0 {
			return err
		}
		j.pos.Store(uint64(j.active().endLSN()))
	}
	j.digestFrom = j.Position()
	return nil
}

// empty reports whether nothing stands in file i and in those behind it. An empty file between others
// stays: the one behind it says that the log before ended there.
func (r *recovery) empty(i int) bool {
	for _, f := range r.files[i:] {
		if f.first < r.out.End && (f.end > fileHeaderSize || f.damaged) {
			return false
		}
	}
	return true
}

// seal makes what was recovered durable, starts the new file and then lets go of what is no part of
// the log. Everything below the new file counts as settled from here on: damage there is corruption.
func (j *Journal) seal(r *recovery, d *directory, in map[*logFile]bool, first LSN) error {
	last := j.active()
	for _, f := range j.files {
		if err := f.file.Sync(); err != nil {
			return err
		}
		f.dirty = false
	}
	j.durable, j.marked = first, first
	if _, err := j.roll(first, r.sealEnd(last), fileHeaderSize, true, true); err != nil {
		return err
	}
	for _, f := range d.logs {
		if !in[f] {
			if err := j.release(f); err != nil {
				return err
			}
		}
	}
	if last != nil && !last.damaged && last.size > last.end {
		if err := last.file.Truncate(last.end); err != nil {
			return err
		}
		last.size = last.end
	}
	if err := j.dropOlder(d.checkpoints); err != nil {
		return err
	}
	j.refill()
	return nil
}

// sealEnd is where the new file says the log before it ended. Lost files stay missing for the next
// recovery too. last is the last file that is kept.
func (r *recovery) sealEnd(last *logFile) LSN {
	switch {
	case last != nil && r.out.End < r.opt.Durable:
		return r.opt.Durable
	case last != nil:
		end := last.endLSN()
		for _, f := range r.files { // an empty one that goes may be all that tells of a lost one
			if f.headerOK && f.first < r.out.End {
				end = max(end, f.prevEnd)
			}
		}
		return end
	case len(r.files) > 0 && r.files[0].headerOK:
		return r.files[0].prevEnd
	case len(r.out.Corrupt) > 0:
		return max(r.out.End, r.images.at+1)
	}
	return 0
}

// abandon closes what a failed Open opened.
func (j *Journal) abandon(d *directory) error {
	var err error
	for _, f := range d.logs {
		if f.file != nil {
			f.file.Close()
		}
	}
	if f := j.active(); f != nil && f.headerOK && f.file != nil {
		f.file.Close()
	}
	return err
}
