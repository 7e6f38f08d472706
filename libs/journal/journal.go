package journal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// Defaults of Options.
const (
	DefaultFileSize = 64 << 20
	DefaultBudget   = 2 << 30
	DefaultReserve  = 128 << 20
)

// Options configures Open; zero sizes mean the defaults.
type Options struct {
	FS    vfs.FS
	Dir   string
	Owner Owner
	// Suspect: page cache may have been lost since the log was last written (power cut): the log
	// ends at the first damage above the last position known durable.
	Suspect bool
	// Durable is a position known durable from elsewhere, e.g. the session record of a graceful stop.
	Durable  LSN
	FileSize int64 // bytes of a log file
	Budget   int64 // bytes of records the log may hold between checkpoints
	Reserve  int64 // bytes kept allocated for reserved rounds on a full disk
	Timing   Timing
}

func (o *Options) defaults() {
	if o.FileSize == 0 {
		o.FileSize = DefaultFileSize
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
}

// Journal is the log of one loop. Its methods are safe for concurrent use: a sync and a checkpoint
// run beside writes. Writes are in the order of their calls.
type Journal struct {
	opt Options
	fs  vfs.FS

	mu     sync.Mutex
	files  []*logFile // ascending; the last one is written
	spares []spare
	nspare uint64 // number of the next spare
	failed error
	closed bool
	dirty  bool // names changed since the last SyncDir

	durable    LSN // everything below is synced
	marked     LSN // position of the last synced record's claim
	touched    headList
	turns      []groupHead // positions of the records that are no prepares, from there on
	digestFrom LSN         // touched covers the records from here on

	arena  []byte
	vec    [][]byte
	digest []byte
	single [1]*Round

	index  index
	undo   []undo   // what records took back from files still there
	faulty []uint64 // groups with faults, by recovery
	bodies fileSet  // large bodies written since the last SyncAll

	syncing    sync.Mutex // one sync at a time
	toSync     []vfs.File
	checkpoint checkpointFile
	checking   sync.Mutex // one checkpoint at a time

	used atomic.Int64
	pos  atomic.Uint64
}

// Position is the LSN behind the last record.
func (j *Journal) Position() LSN { return LSN(j.pos.Load()) }

// Durable is the LSN below which everything is synced.
func (j *Journal) Durable() LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.durable
}

// Used is the number of bytes of records the log holds; Checkpoint lowers it.
func (j *Journal) Used() int64 { return j.used.Load() }

// Limit is the budget Used should stay below: loops start a checkpoint at 50 % and refuse sends at 90 %.
func (j *Journal) Limit() int64 { return j.opt.Budget }

func (j *Journal) path(name string) string { return j.opt.Dir + "/" + name }

func (j *Journal) active() *logFile {
	if len(j.files) == 0 {
		return nil
	}
	return j.files[len(j.files)-1]
}

// usable is the error of a journal that takes no more calls. j.mu is held.
func (j *Journal) usable() error {
	if j.failed != nil {
		return j.failed
	}
	if j.closed {
		return ErrClosed
	}
	return nil
}

// fail makes err sticky. j.mu is held.
func (j *Journal) fail(err error) error {
	if j.failed == nil {
		j.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return j.failed
}

// Sync makes all records written before the call durable. Any error is final.
func (j *Journal) Sync() error { return j.sync(false) }

// SyncAll is Sync including the large bodies that were written without a sync.
func (j *Journal) SyncAll() error { return j.sync(true) }

// sync syncs bodies before the records that name them. The position becomes known durable only if
// no body below it is left unsynced.
func (j *Journal) sync(bodies bool) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	upTo, names := j.Position(), j.dirty
	var large []vfs.File
	if bodies {
		large, j.bodies = j.bodies.list, fileSet{}
	}
	claim := len(j.bodies.list) == 0
	j.toSync = j.toSync[:0]
	for _, f := range j.files {
		if f.dirty {
			f.dirty = false
			j.toSync = append(j.toSync, f.file)
		}
	}
	j.dirty = false
	j.mu.Unlock()
	err := syncBodies(large)
	if err == nil {
		err = j.syncFiles(j.toSync, names)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		return j.fail(err)
	}
	if claim {
		j.durable = max(j.durable, upTo)
	}
	return nil
}

// syncBodies syncs segment files. One that is gone had its group purged or trimmed.
func syncBodies(files []vfs.File) error {
	for _, f := range files {
		if err := f.Sync(); err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// syncFiles syncs names and then contents, oldest file first, so that a later file is never durable
// before an earlier one has been tried.
func (j *Journal) syncFiles(files []vfs.File, names bool) error {
	if names {
		if err := j.fs.SyncDir(j.opt.Dir); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// Close syncs the log, says so in it and closes all files. The caller has ended all other calls.
func (j *Journal) Close() error {
	err := j.SyncAll()
	j.mu.Lock()
	covered := j.checkpoint.name != "" && j.checkpoint.at == j.Position() // the log ends with its checkpoint
	j.mu.Unlock()
	if err == nil && !covered {
		err = j.MarkSynced()
	}
	if err == nil {
		err = j.Sync()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	for _, f := range j.files {
		err = errors.Join(err, f.file.Close())
	}
	return err
}
