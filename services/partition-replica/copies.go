package partitionreplica

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/vfs"
)

// copiesDir holds what this node copies of groups it is no member of. It does not outlive the process: a copy that was
// interrupted begins anew.
const copiesDir = "copies"

// copyStore takes the segments of a state, again and again: what it has of a file is not fetched twice, for files
// only grow. Used by one goroutine.
type copyStore struct {
	fs    vfs.FS
	dir   string
	made  bool
	files map[uint64]*copiedFile
	bytes atomic.Uint64 // written since the last reset
}

// copiedFile is the front of a segment with its running hash.
type copiedFile struct {
	length uint64
	hash   *xxh3.Hasher
	dirty  bool
}

func newCopyStore(fs vfs.FS, dir string) *copyStore {
	return &copyStore{fs: fs, dir: dir, files: map[uint64]*copiedFile{}}
}

func (s *copyStore) path(base uint64) string { return s.dir + "/" + segment.FileName(base) }

// Create implements transfer.Store; a Resumer is not asked for it.
func (s *copyStore) Create(base uint64) (transfer.Writer, error) {
	w, _, _, err := s.Resume(base, 0)
	return w, err
}

// Resume implements transfer.Resumer. A file that is longer than it should be is not the front of what is to come.
func (s *copyStore) Resume(base, length uint64) (transfer.Writer, uint64, *xxh3.Hasher, error) {
	if !s.made {
		if err := s.reset(); err != nil {
			return nil, 0, nil, err
		}
	}
	known := s.files[base]
	if known != nil && known.length == length {
		return settled{}, known.length, known.hash, nil
	}
	open := s.fs.Open
	if known == nil || known.length > length {
		known = &copiedFile{hash: xxh3.New()}
		s.files[base] = known
		if err := s.fs.RemoveAll(s.path(base)); err != nil {
			return nil, 0, nil, err
		}
		open = s.fs.Create
	}
	f, err := open(s.path(base))
	if err != nil {
		return nil, 0, nil, err
	}
	return &copyWriter{store: s, copied: known, file: f}, known.length, known.hash, nil
}

// reset drops everything.
func (s *copyStore) reset() error {
	s.files, s.made = map[uint64]*copiedFile{}, false
	s.bytes.Store(0)
	if err := s.fs.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	s.made = true
	return nil
}

// sync makes durable what was written since the last time.
func (s *copyStore) sync() error {
	for base, c := range s.files {
		if !c.dirty {
			continue
		}
		f, err := s.fs.Open(s.path(base))
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return err
		}
		c.dirty = false
	}
	return nil
}

// keep drops the files that a state does not count, and lets go of the rest, which is durable: they go where the state
// goes.
func (s *copyStore) keep(st *segment.State) error {
	counted := map[uint64]bool{}
	for i := range st.Segments {
		counted[st.Segments[i].Base] = true
	}
	for base := range s.files {
		if !counted[base] {
			if err := s.fs.RemoveAll(s.path(base)); err != nil {
				return err
			}
			delete(s.files, base)
		}
	}
	if err := s.sync(); err != nil {
		return err
	}
	s.files, s.made = map[uint64]*copiedFile{}, false
	return nil
}

// drop gives the room back.
func (s *copyStore) drop() { _ = s.fs.RemoveAll(s.dir) }

// settled is a file of which nothing is missing.
type settled struct{}

func (settled) Write([]byte) (int, error) {
	return 0, errors.New("partition: a piece behind the end of a file")
}
func (settled) Close() error { return nil }

// copyWriter appends to a copied file.
type copyWriter struct {
	store  *copyStore
	copied *copiedFile
	file   vfs.File
}

// Write implements transfer.Writer. The hash is fed by who fetches.
func (w *copyWriter) Write(b []byte) (int, error) {
	n, err := w.file.WriteAt(b, int64(w.copied.length))
	if err == nil {
		w.copied.length += uint64(n)
		w.copied.dirty = true
		w.store.bytes.Add(uint64(n))
	}
	return n, err
}

// Close implements transfer.Writer. What was written is durable after the next sync of the store.
func (w *copyWriter) Close() error { return w.file.Close() }

// pacer spreads bytes over time. Used by any number of goroutines that share a rate.
type pacer struct {
	rate int64 // bytes a second, 0: as fast as it goes
	turn chan time.Time
}

func newPacer(rate int64) *pacer {
	p := &pacer{rate: rate, turn: make(chan time.Time, 1)}
	p.turn <- time.Time{}
	return p
}

// wait returns when bytes may be moved.
func (p *pacer) wait(ctx context.Context, bytes int) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	var next time.Time
	select {
	case next = <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	now := time.Now()
	if next.Before(now) {
		next = now
	}
	p.turn <- next.Add(time.Duration(int64(bytes) * int64(time.Second) / p.rate))
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errCopy = errors.New("partition: the copy does not end in the seal")

// copyDir is where a group is copied to.
func copyDir(group uint64) string { return fmt.Sprintf("%s/%016x", copiesDir, group) }
