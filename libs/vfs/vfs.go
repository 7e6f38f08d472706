package vfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// FS is the file system every durable byte goes through. Names are slash-separated paths below
// the FS root; implementations are safe for concurrent use.
//
// Nothing is durable before a sync: file contents need File.Sync, and a created, renamed or removed
// name needs SyncDir of its directory.
type FS interface {
	// Open opens an existing file for reading and writing; fs.ErrNotExist if there is none.
	Open(name string) (File, error)
	// Create makes a new empty file, open for reading and writing; fs.ErrExist if the name is taken.
	Create(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// RemoveAll removes name and everything below it; no error if it does not exist.
	RemoveAll(name string) error
	MkdirAll(name string) error
	// ReadDir lists the entries of a directory in ascending name order.
	ReadDir(name string) ([]Entry, error)
	Stat(name string) (Entry, error)
	// SyncDir makes the directory's entries (created, renamed, removed names) durable.
	SyncDir(name string) error
	// Lock takes the exclusive lock of the named file, creating it; ErrLocked if another holds it.
	// Closing the returned File gives it back, as does the death of the process.
	Lock(name string) (File, error)
	// Space reports bytes of the file system that holds the root: total, and free to this process.
	Space() (total, free uint64, err error)
	// BootID names one run of the machine: it changes when page cache may have been lost
	// (design-arguments "whole, suspect, empty").
	BootID() string
}

// Entry describes one name. Inode and BirthTime are 0 where the system does not tell.
type Entry struct {
	Name      string
	Dir       bool
	Size      int64
	Inode     uint64
	BirthTime int64 // nanoseconds since the Unix epoch
}

// File is an open file. ReadAt and WriteAt follow io.ReaderAt and io.WriterAt.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// WriteVec writes the buffers one after another from off on, in as few system calls as
	// possible. It may reslice the elements of bufs but not their bytes.
	WriteVec(bufs [][]byte, off int64) (int64, error)
	Size() (int64, error)
	Truncate(size int64) error
	// Allocate reserves disk space for [0, size) without changing what a reader sees of written
	// bytes; the file size becomes at least size. Unwritten bytes read as zero.
	Allocate(size int64) error
	// Sync makes the contents and size durable (fdatasync). After an error nothing written since
	// the last good Sync may be trusted.
	Sync() error
	Close() error
}

// Prewriter is a File that can write its blocks before they are needed.
type Prewriter interface {
	// Prewrite fills [0, size) with zeros and makes them durable. Writes over them change no metadata, so
	// that a Sync is one write of the data and one flush of the disk. It goes in steps that let the
	// syncs of other files in between, and may take as long as the disk takes for size bytes.
	Prewrite(size int64) error
}

// PacedSyncer is a File with a Sync for a lot of bytes that nobody waits for.
type PacedSyncer interface {
	// SyncPaced is Sync in steps: the sync of another file waits for one step at most, where a Sync of as much
	// would hold it up until all is written.
	SyncPaced() error
}

// SyncPaced syncs f in steps where it can.
func SyncPaced(f File) error {
	if p, can := f.(PacedSyncer); can {
		return p.SyncPaced()
	}
	return f.Sync()
}

// ErrLocked is the error of [FS.Lock] for a lock that another holder has.
var ErrLocked = errors.New("locked by another process")

// IsFull reports whether err says that the disk (or the quota) has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsNotExist reports whether err says that a name does not exist.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
