package floor

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"golang.org/x/sys/unix"
)

// Sync says when a write counts as done.
type Sync string

const (
	SyncNone  Sync = "none"  // once the operating system has it
	SyncGroup Sync = "group" // once synced, one sync for all writes that wait
	SyncEach  Sync = "each"  // once synced, one sync per write, at the end of a log that grows

	// SyncWritten is SyncEach in a log whose blocks were written before: a sync changes no metadata.
	SyncWritten Sync = "written"
)

// file is an append-only file shared by writers.
type file struct {
	f *os.File

	mu  sync.Mutex
	end int64 // bytes reserved for writers

	syncing sync.Mutex
	rounds  struct {
		sync.Mutex
		*sync.Cond
		asked, done uint64 // sync rounds asked for and finished
		busy        bool
	}
}

func createFile(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	out := &file{f: f}
	out.rounds.Cond = sync.NewCond(&out.rounds.Mutex)
	return out, nil
}

// logSize is how many bytes of a synced log are written before the first record.
const logSize = 64 << 20

// createLog makes the file of a synced log. But for SyncEach it is as those of the server's journal: its
// blocks are written.
func createLog(path string, mode Sync) (*file, error) {
	out, err := createFile(path)
	if err != nil || mode == SyncEach {
		return out, err
	}
	if err := unix.Fallocate(int(out.f.Fd()), 0, 0, logSize); err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < logSize; at += int64(len(zeros)) {
		if _, err := out.f.WriteAt(zeros, at); err != nil {
			return nil, err
		}
	}
	return out, out.f.Sync()
}

// append writes b at the end and returns its position once b is as safe as mode asks.
func (f *file) append(b []byte, mode Sync) (int64, error) {
	if mode == SyncEach || mode == SyncWritten {
		f.syncing.Lock()
		defer f.syncing.Unlock()
	}
	f.mu.Lock()
	at := f.end
	f.end += int64(len(b))
	f.mu.Unlock()
	if _, err := f.f.WriteAt(b, at); err != nil {
		return 0, err
	}
	switch mode {
	case SyncEach, SyncWritten:
		return at, unix.Fdatasync(int(f.f.Fd()))
	case SyncGroup:
		return at, f.groupSync()
	}
	return at, nil
}

// groupSync returns after a sync that began after the call. The first waiter syncs for all.
func (f *file) groupSync() error {
	r := &f.rounds
	r.Lock()
	defer r.Unlock()
	r.asked++
	mine := r.asked
	for r.done < mine {
		if r.busy {
			r.Wait()
			continue
		}
		r.busy = true
		covers := r.asked
		r.Unlock()
		err := unix.Fdatasync(int(f.f.Fd()))
		r.Lock()
		r.busy = false
		if err != nil {
			return err
		}
		r.done = covers
		r.Broadcast()
	}
	return nil
}

// partition knows where its batches are.
type partition struct {
	file *file

	mu      sync.Mutex
	next    uint64
	batches []batch // written ones, by base offset
}

type batch struct {
	base, count uint64
	at, size    int64
}

// store holds the partitions, each in a file of its own, or all in one log when writes are synced. The
// log is made with the store.
type store struct {
	dir    string
	sync   Sync
	quorum *quorum // nil: one process

	mu         sync.Mutex
	log        *file // of synced writes
	partitions map[string]*partition
}

func newStore(dir string, mode Sync) (*store, error) {
	s := &store{dir: dir, sync: mode, partitions: map[string]*partition{}}
	if mode == SyncNone {
		return s, nil
	}
	var err error
	s.log, err = createLog(filepath.Join(dir, "synced.log"), mode)
	return s, err
}

// clear forgets all partitions; their files are overwritten, a synced log goes on.
func (s *store) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.partitions)
}

// partition returns the partition with this routing key, creating it.
func (s *store) partition(key []byte) (*partition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.partitions[string(key)]; p != nil {
		return p, nil
	}
	f := s.log
	if f == nil {
		var err error
		if f, err = createFile(filepath.Join(s.dir, fmt.Sprintf("%d.log", len(s.partitions)))); err != nil {
			return nil, err
		}
	}
	p := &partition{file: f}
	s.partitions[string(key)] = p
	return p, nil
}

// append stores the batch of count messages at frame[start:] and returns its base offset. A synced log
// takes the whole frame: what stands in front of the batch is about as long as the headers and sums
// of a record of the server's journal.
func (p *partition) append(frame []byte, start int, count uint32, mode Sync) (uint64, error) {
	b := frame[start:]
	p.mu.Lock()
	base := p.next
	p.next += uint64(count)
	p.mu.Unlock()
	putU64(b[8:], base)
	lead := 0
	if mode != SyncNone {
		lead = start
	}
	at, err := p.file.append(frame[start-lead:], mode)
	if err != nil {
		return 0, err
	}
	at += int64(lead)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batches = append(p.batches, batch{base, uint64(count), at, int64(len(b))})
	for i := len(p.batches) - 1; i > 0 && p.batches[i-1].base > base; i-- {
		p.batches[i], p.batches[i-1] = p.batches[i-1], p.batches[i]
	}
	return base, nil
}

// find returns the range of whole batches that holds up to count messages from offset on, and how
// many messages it holds. It ends where a batch is still being written: a reader would take those
// behind it for what it asked for.
func (p *partition) find(offset, count uint64) (at, size int64, messages uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := sort.Search(len(p.batches), func(i int) bool { return p.batches[i].base+p.batches[i].count > offset })
	for next := offset; i < len(p.batches) && uint64(messages) < count; i++ {
		b := p.batches[i]
		if b.base > next || size > 0 && (b.at != at+size || uint64(messages)+b.count > count) {
			break
		}
		next = b.base + b.count
		if size == 0 {
			at = b.at
		}
		size += b.size
		messages += uint32(b.count)
	}
	return at, size, messages
}
