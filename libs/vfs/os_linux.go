package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File systems whose pages live on another machine or in another process: a boot id of this kernel
// says nothing about them.
var foreign = map[int64]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true,
	unix.FUSE_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.AFS_SUPER_MAGIC: true, unix.CEPH_SUPER_MAGIC: true,
}

// bootID is the kernel's boot id, or a fresh one where that would not tell of lost pages.
func bootID(root string) string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(b))
	if err != nil || id == "" || isForeign(root) {
		return fmt.Sprintf("unknown-%d-%d", os.Getpid(), time.Now().UnixNano())
	}
	return id
}

// isForeign looks at the nearest existing directory at or above root.
func isForeign(root string) bool {
	dir, err := filepath.Abs(root)
	if err != nil {
		return true
	}
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if err == nil {
			return foreign[int64(st.Type)]
		}
		if parent := filepath.Dir(dir); errors.Is(err, unix.ENOENT) && parent != dir {
			dir = parent
			continue
		}
		return true
	}
}

func (o *osFS) Space() (total, free uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(o.root, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: o.root, Err: err}
	}
	return st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize), nil
}

func statEntry(path string) (Entry, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return Entry{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	e := Entry{Name: filepath.Base(path), Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, Size: int64(st.Size), Inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		e.BirthTime = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return e, nil
}

func (f *osFile) Sync() error { return f.control("fdatasync", unix.Fdatasync) }

// pacedStep is one step of SyncPaced in bytes: a millisecond or two of a disk's time.
const pacedStep = 2 << 20

// SyncPaced ends at the first error: a step that reports a failed write takes that report from the sync after it.
func (f *osFile) SyncPaced() error {
	size, err := f.Size()
	for at := int64(0); at < size && err == nil; at += pacedStep {
		err = f.control("sync_file_range", func(fd int) error {
			return unix.SyncFileRange(fd, at, pacedStep, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		})
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		err = nil // not on this file system
	}
	if err != nil {
		return err
	}
	return f.Sync()
}

func (f *osFile) Allocate(size int64) error {
	err := f.control("fallocate", func(fd int) error { return unix.Fallocate(fd, 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.grow(size)
	}
	return err
}

const maxVec = 1024 // IOV_MAX

// vecCall is one pwritev and its arguments; pooled, so that a vectored write allocates nothing.
type vecCall struct {
	iov   [maxVec]unix.Iovec
	n     int
	off   int64
	wrote int
	err   error
	call  func(fd uintptr)
}

var vecCalls = sync.Pool{New: func() any {
	v := new(vecCall)
	v.call = v.pwritev
	return v
}}

func (v *vecCall) pwritev(fd uintptr) {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_PWRITEV, fd, uintptr(unsafe.Pointer(&v.iov[0])), uintptr(v.n), uintptr(v.off), uintptr(v.off>>32), 0)
		if errno == unix.EINTR {
			continue
		}
		v.wrote, v.err = int(n), nil
		if errno != 0 {
			v.wrote, v.err = 0, errno
		}
		return
	}
}

// load fills the vector from the head of bufs.
func (v *vecCall) load(bufs [][]byte) {
	v.n = 0
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		if v.n == maxVec {
			break
		}
		v.iov[v.n].Base = &b[0]
		v.iov[v.n].SetLen(len(b))
		v.n++
	}
}

func (f *osFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	v := vecCalls.Get().(*vecCall)
	defer func() {
		clear(v.iov[:v.n])
		vecCalls.Put(v)
	}()
	var total int64
	for {
		for len(bufs) > 0 && len(bufs[0]) == 0 {
			bufs = bufs[1:]
		}
		if len(bufs) == 0 {
			return total, nil
		}
		v.load(bufs)
		v.off = off + total
		if err := f.raw.Control(v.call); err != nil {
			return total, err
		}
		if v.err != nil {
			return total, &fs.PathError{Op: "pwritev", Path: f.Name(), Err: v.err}
		}
		if v.wrote == 0 {
			return total, &fs.PathError{Op: "pwritev", Path: f.Name(), Err: io.ErrShortWrite}
		}
		total += int64(v.wrote)
		bufs = advance(bufs, v.wrote)
	}
}
