package segment

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// Removal renames what a trim, a purge or a delete took out of a log into the trash. Readers of
// older views finish with the old bytes or with ErrTrimmed. A Removal that never ran, or ran in part,
// is made up for by the next Settle, or by Discard if the partition is gone.
type Removal struct {
	fs       vfs.FS
	trash    string
	segments []*segment // renamed one by one
	closed   []*segment // in one of names
	life     *life      // likewise, nil: none
	names    []string   // files and directories taken whole
	then     *Removal
}

func (l *Log) removal() *Removal { return &Removal{fs: l.fs, trash: l.opt.Trash} }

// Run moves the files. Any goroutine; now is wall clock in seconds, kept in the names in the trash.
func (r *Removal) Run(now int64) error {
	for ; r != nil; r = r.then {
		if err := r.run(now); err != nil {
			return err
		}
	}
	return nil
}

func (r *Removal) run(now int64) error {
	var touched []string
	move := func(from string) error {
		err := moveToTrash(r.fs, from, r.trash, now)
		if vfs.IsNotExist(err) {
			return nil
		}
		if dir := path.Dir(from); err == nil && !slices.Contains(touched, dir) {
			touched = append(touched, dir)
		}
		return err
	}
	for _, s := range r.segments {
		if err := s.remove(move); err != nil {
			return err
		}
	}
	if r.life != nil {
		r.life.end()
	}
	for _, s := range r.closed {
		s.life.files.forget(s)
	}
	for _, name := range r.names {
		if err := move(name); err != nil {
			return err
		}
	}
	if len(touched) == 0 {
		return nil
	}
	// The new name first: between the two syncs a power cut leaves both, or the old one.
	for _, dir := range append([]string{r.trash}, touched...) {
		if err := r.fs.SyncDir(dir); err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// Discard moves the directory of a partition without an open Log into the trash.
func Discard(fs vfs.FS, dir, trash string, now int64) error {
	r := Removal{fs: fs, trash: trash, names: []string{dir}}
	return r.Run(now)
}

// moveToTrash renames from to a fresh name in trash: the second, the old name flattened, a number.
func moveToTrash(fs vfs.FS, from, trash string, now int64) error {
	if _, err := fs.Stat(from); err != nil {
		return err
	}
	if err := fs.MkdirAll(trash); err != nil {
		return err
	}
	flat := strings.NewReplacer("/", "_").Replace(from)
	for n := 0; ; n++ {
		to := path.Join(trash, fmt.Sprintf("%d-%s.%d", now, flat, n))
		if _, err := fs.Stat(to); vfs.IsNotExist(err) {
			return fs.Rename(from, to)
		} else if err != nil {
			return err
		}
	}
}

// EmptyTrash deletes what was moved into trash before the given second. Names of another form stay.
func EmptyTrash(fs vfs.FS, trash string, before int64) error {
	es, err := fs.ReadDir(trash)
	if vfs.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	for _, e := range es {
		second, _, ok := strings.Cut(e.Name, "-")
		if at, err := strconv.ParseInt(second, 10, 64); !ok || err != nil || at >= before {
			continue
		}
		if err := fs.RemoveAll(path.Join(trash, e.Name)); err != nil {
			return err
		}
	}
	return fs.SyncDir(trash)
}
