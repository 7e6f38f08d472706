package segment

import (
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// hookedFS runs a hook before the next sync of a directory.
type hookedFS struct {
	vfs.FS
	hook func() error
}

func (h *hookedFS) SyncDir(name string) error {
	if hook := h.hook; hook != nil {
		h.hook = nil
		if err := hook(); err != nil {
			return err
		}
	}
	return h.FS.SyncDir(name)
}

// written appends a large batch to a new log and writes it where it belongs.
func written(t *testing.T, fs vfs.FS) (*Log, vfs.File) {
	t.Helper()
	l, _, err := Open(fs, "p/1", Options{SegmentSize: 1 << 20, Trash: "trash"}, State{})
	if err != nil {
		t.Fatal(err)
	}
	b := batchOf(0, 10, 0, []message{{payload: make([]byte, InlineLimit)}})
	at := l.Append(b, 1)
	if !at.Large {
		t.Fatal("the batch is not large")
	}
	if _, err := at.File.WriteAt(b, at.At.Pos); err != nil {
		t.Fatal(err)
	}
	return l, at.File
}

// TestSyncBesideADelete: a partition that is deleted while its file is synced takes the directory away under
// the sync. That is no failure, then or later; any other one is, for ever.
func TestSyncBesideADelete(t *testing.T) {
	fs := &hookedFS{FS: vfs.NewMem(1)}
	l, f := written(t, fs)
	fs.hook = func() error { return l.Drop().Run(1) }
	for range 2 {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	fs = &hookedFS{FS: vfs.NewMem(1)}
	_, f = written(t, fs)
	fs.hook = func() error { return errors.New("lost") }
	for range 2 {
		if err := f.Sync(); !errors.Is(err, ErrSyncFailed) {
			t.Fatal(err)
		}
	}
}
