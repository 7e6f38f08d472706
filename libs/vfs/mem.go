package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
)

// ErrDead is the error of every call of a process that a Mem killed.
var ErrDead = errors.New("the process is dead")

// blockSize is the unit that reaches the disk of a Mem at once, as far as sectors are not torn.
const (
	blockSize  = 4096
	sectorSize = 512
)

// Mem is a file system in memory that can be killed and cut from power. It keeps two states of
// everything: what processes see (the page cache) and what the disk holds. Everything that happens
// by chance is drawn from the seed, so a run repeats with its seed.
//
// Mem's own FS methods belong to whichever process is current; Mount gives a handle that dies with
// its process. A Mem is safe for concurrent use.
type Mem struct {
	mu       sync.Mutex
	rng      *rand.Rand
	root     *node
	nextNode uint64
	pending  []change // directory changes not on disk yet, oldest first
	life     uint64   // number of the current process; files and mounts of others are dead
	boot     uint64
	seed     uint64
	capacity int64 // 0 = unlimited
	used     int64 // bytes in allocated blocks
	locks    map[*node]*memFile

	fault func(Call) Fault
	calls int // mutating calls since CrashAt
	crash crashPoint
}

// NewMem returns an empty file system.
func NewMem(seed uint64) *Mem {
	m := &Mem{rng: rand.New(rand.NewPCG(seed, 0x5eed)), seed: seed, boot: 1, life: 1, locks: map[*node]*memFile{}}
	m.root = m.newNode(true)
	return m
}

// Mount returns the file system as the current process sees it; it fails with ErrDead once that
// process is killed.
func (m *Mem) Mount() FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &mount{m, m.life}
}

func (m *Mem) current() *mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &mount{m, m.life}
}

func (m *Mem) Open(name string) (File, error)       { return m.current().Open(name) }
func (m *Mem) Create(name string) (File, error)     { return m.current().Create(name) }
func (m *Mem) Rename(from, to string) error         { return m.current().Rename(from, to) }
func (m *Mem) Remove(name string) error             { return m.current().Remove(name) }
func (m *Mem) RemoveAll(name string) error          { return m.current().RemoveAll(name) }
func (m *Mem) MkdirAll(name string) error           { return m.current().MkdirAll(name) }
func (m *Mem) ReadDir(name string) ([]Entry, error) { return m.current().ReadDir(name) }
func (m *Mem) Stat(name string) (Entry, error)      { return m.current().Stat(name) }
func (m *Mem) SyncDir(name string) error            { return m.current().SyncDir(name) }
func (m *Mem) Lock(name string) (File, error)       { return m.current().Lock(name) }
func (m *Mem) Space() (total, free uint64, e error) { return m.current().Space() }

// BootID changes with every power cut.
func (m *Mem) BootID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("mem-%d-%d", m.seed, m.boot)
}

// SetCapacity limits the bytes of allocated blocks; 0 lifts the limit.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// Allocated is the number of bytes in allocated blocks.
func (m *Mem) Allocated() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// node is a file or a directory.
type node struct {
	id    uint64
	birth int64
	links int // names in the page cache
	opens int

	// directories
	dir     bool
	entries map[string]*node // as processes see it
	stored  map[string]*node // as the disk holds it

	// files: data is the page cache, disk what is stored; states has one element per block.
	data, disk []byte
	states     []blockState
}

type blockState struct{ allocated, dirty bool }

func (m *Mem) newNode(dir bool) *node {
	m.nextNode++
	n := &node{id: m.nextNode, birth: int64(1e18 + m.nextNode), dir: dir}
	if dir {
		n.entries, n.stored = map[string]*node{}, map[string]*node{}
	}
	return n
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
