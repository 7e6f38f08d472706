package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// life is one directory of segment files: a partition between two purges. A purge starts a new
// life in a new directory, so no name ever stands for two files.
type life struct {
	fs     vfs.FS
	files  *Files
	parent string      // of the partition
	number uint64      // generation
	rooted atomic.Bool // the directory's own name and those above it are durable

	ending sync.RWMutex // held for writing to end the life, for reading while a name in it is used
	ended  atomic.Bool
}

// dir is the directory. Names are made when they are needed: ten thousand idle partitions need none.
func (l *life) dir() string { return lifeDir(l.parent, l.number) }

// end makes every segment of the life gone; its directory can be moved away afterwards.
func (l *life) end() {
	l.ending.Lock()
	defer l.ending.Unlock()
	l.ended.Store(true)
}

// Dir is the directory of the segments of one generation, between two purges, below that of a partition.
func Dir(dir string, generation uint64) string { return lifeDir(dir, generation) }

// FileName is the name of the segment that begins with the message at base.
func FileName(base uint64) string { return fmt.Sprintf("%020d.log", base) }

// Path is the file of a segment.
func Path(dir string, generation, base uint64) string {
	return path.Join(lifeDir(dir, generation), FileName(base))
}

func lifeDir(dir string, generation uint64) string {
	return path.Join(dir, fmt.Sprintf("%010d", generation))
}

// segment is one file of a log. As a vfs.File it opens itself through the cache and is created by
// its first write. Once removed it reads as ErrTrimmed, and writes and syncs succeed without effect:
// they belong to a partition that is going, and must not fail the journal round they travel in.
// What the log knows about the contents is in extent.
type segment struct {
	life *life
	base uint64 // offset of its first message

	opening sync.Mutex // serializes open, create and rename of the name
	gone    atomic.Bool
	dirty   atomic.Bool // written since the last sync
	named   atomic.Bool // the name is durable
	broken  atomic.Bool // a sync failed: nothing written may be trusted any more

	cold   atomic.Pointer[index] // index read from disk, nil while nobody asked
	hinted atomic.Int64          // bytes the .index file on disk covers
	lying  atomic.Bool           // the .index file has misled a reader
	tuning sync.Mutex            // one reader loads or rebuilds the index

	// Guarded by life.files.mu.
	handle       vfs.File
	pins         int
	older, newer *segment
}

func newSegment(l *life, base uint64) *segment {
	return &segment{life: l, base: base}
}

// path is the .log file.
func (s *segment) path() string { return path.Join(s.life.dir(), FileName(s.base)) }

func (s *segment) indexPath() string {
	return strings.TrimSuffix(s.path(), ".log") + ".index"
}

func (s *segment) isGone() bool { return s.gone.Load() || s.life.ended.Load() }

// ErrSyncFailed says that a sync of a segment file failed: what was written to it before may be lost,
// whatever a later sync says.
var ErrSyncFailed = errors.New("segment: a sync failed")

// use opens the file if need be and pins it until s.life.files.unpin.
func (s *segment) use(create bool) (vfs.File, error) {
	c := s.life.files
	if f := c.pinned(s); f != nil {
		return f, nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if f := c.pinned(s); f != nil {
		return f, nil
	}
	s.life.ending.RLock()
	defer s.life.ending.RUnlock()
	if s.isGone() {
		return nil, ErrTrimmed
	}
	f, err := s.life.fs.Open(s.path())
	if create && vfs.IsNotExist(err) {
		f, err = s.create()
	}
	if err != nil {
		return nil, err
	}
	c.opened(s, f)
	return f, nil
}

func (s *segment) create() (vfs.File, error) {
	c := s.life.fs
	if err := c.MkdirAll(s.life.dir()); err != nil {
		return nil, err
	}
	s.named.Store(false)
	f, err := c.Create(s.path())
	if errors.Is(err, fs.ErrExist) {
		return c.Open(s.path()) // an append that was cut had begun the same file
	}
	return f, err
}

func (s *segment) ReadAt(p []byte, off int64) (int, error) {
	f, err := s.use(false)
	if err != nil {
		return 0, err
	}
	defer s.life.files.unpin(s)
	return f.ReadAt(p, off)
}

func (s *segment) WriteAt(p []byte, off int64) (int, error) {
	f, err := s.use(true)
	if err == ErrTrimmed {
		return len(p), nil
	} else if err != nil {
		return 0, err
	}
	defer s.life.files.unpin(s)
	defer s.dirty.Store(true) // after the write: a sync in between must not clear it
	return f.WriteAt(p, off)
}

func (s *segment) WriteVec(bufs [][]byte, off int64) (n int64, err error) {
	f, err := s.use(true)
	if err == ErrTrimmed {
		for _, b := range bufs {
			n += int64(len(b))
		}
		return n, nil
	} else if err != nil {
		return 0, err
	}
	defer s.life.files.unpin(s)
	defer s.dirty.Store(true) // after the write: a sync in between must not clear it
	return f.WriteVec(bufs, off)
}

func (s *segment) Size() (int64, error) {
	f, err := s.use(false)
	if err != nil {
		return 0, err
	}
	defer s.life.files.unpin(s)
	return f.Size()
}

func (s *segment) Truncate(size int64) error {
	f, err := s.use(false)
	if err == ErrTrimmed {
		return nil
	} else if err != nil {
		return err
	}
	defer s.life.files.unpin(s)
	defer s.dirty.Store(true) // after the write: a sync in between must not clear it
	return f.Truncate(size)
}

func (s *segment) Allocate(size int64) error {
	f, err := s.use(true)
	if err == ErrTrimmed {
		return nil
	} else if err != nil {
		return err
	}
	defer s.life.files.unpin(s)
	defer s.dirty.Store(true) // after the write: a sync in between must not clear it
	return f.Allocate(size)
}

// Sync makes the bytes written so far and the file's name durable. A failure is for ever: the
// kernel may have dropped the pages, so a later success would prove nothing. The bytes of a removed
// segment nobody misses: its directory may go while it is synced, which is no failure.
func (s *segment) Sync() error { return s.sync(vfs.File.Sync) }

func (s *segment) sync(with func(vfs.File) error) error {
	if s.isGone() {
		return nil
	}
	if s.broken.Load() {
		return ErrSyncFailed
	}
	f, err := s.use(false)
	if err == ErrTrimmed {
		return nil
	} else if err != nil {
		return err
	}
	defer s.life.files.unpin(s)
	s.dirty.Store(false)
	if err = with(f); err == nil {
		err = s.syncName()
	}
	if err != nil && s.isGone() {
		return nil
	}
	if err != nil {
		s.broken.Store(true)
		s.dirty.Store(true)
		err = fmt.Errorf("%w: %w", ErrSyncFailed, err)
	}
	return err
}

func (s *segment) syncName() error {
	if s.named.Load() {
		return nil
	}
	fs, dir := s.life.fs, s.life.dir()
	if err := fs.SyncDir(dir); err != nil {
		return err
	}
	if !s.life.rooted.Load() {
		for dir != "." && dir != "/" {
			dir = path.Dir(dir)
			if err := fs.SyncDir(dir); err != nil {
				return err
			}
		}
		s.life.rooted.Store(true)
	}
	s.named.Store(true)
	return nil
}

// Close does nothing: the cache owns the open file.
func (s *segment) Close() error { return nil }

// remove takes the file away from the directory. Readers that hold it open finish with the old bytes.
func (s *segment) remove(rename func(from string) error) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.gone.Store(true)
	s.life.files.forget(s)
	for _, p := range [...]string{s.path(), s.indexPath()} {
		if err := rename(p); err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	return nil
}
