//go:build !linux

package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// bootID is fresh for every process where the system's is not known: each start counts as one after
// a power cut.
func bootID(string) string { return fmt.Sprintf("unknown-%d-%d", os.Getpid(), time.Now().UnixNano()) }

func (o *osFS) Space() (total, free uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(o.root, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: o.root, Err: err}
	}
	return st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize), nil
}

func statEntry(path string) (Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: info.Name(), Dir: info.IsDir(), Size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Inode = st.Ino
	}
	return e, nil
}

func (f *osFile) Sync() error { return f.File.Sync() }

func (f *osFile) Allocate(size int64) error { return f.grow(size) }

func (f *osFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	var total int64
	for _, b := range bufs {
		n, err := f.WriteAt(b, off+total)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
