package vfs

import (
	"path"
	"slices"
)

// Op names a kind of call for fault injection.
type Op uint8

const (
	OpOpen Op = iota + 1
	OpRead
	OpCreate
	OpWrite
	OpTruncate
	OpAllocate
	OpSync
	OpRename
	OpRemove
	OpSyncDir
)

// Call describes one call to a fault function.
type Call struct {
	Op   Op
	Name string // as given when the file was opened
	To   string // of a rename
	Off  int64
	Len  int64 // bytes read or written, or the new size
}

// Fault is what goes wrong with a call; the zero Fault is none.
type Fault struct {
	Err   error // returned by the call; a write still writes its first Keep bytes
	Short bool  // a write writes its first Keep bytes only and reports success (torn)
	Keep  int
	Lost  bool  // a write reports success and does nothing
	Shift int64 // a write lands this many bytes further on (misdirected)
}

// SetFault makes f decide about every call; nil ends that. f runs under the file system's lock and
// must not call it. A failed sync marks the pages clean without storing them, as Linux does.
func (m *Mem) SetFault(f func(Call) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

func (m *Mem) injected(c Call) Fault {
	if m.fault == nil {
		return Fault{}
	}
	return m.fault(c)
}

// mutating counts a mutating call. m.mu is held.
func (m *Mem) mutating(c Call) (crash bool, f Fault) {
	m.calls++
	if m.calls == m.crash.at {
		return true, Fault{}
	}
	return false, m.injected(c)
}

// Corrupt changes a file behind everybody's back, on disk and in the page cache; change may return
// a slice of another length. It reports whether the file exists.
func (m *Mem) Corrupt(name string, change func([]byte) []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	if err != nil || n.dir {
		return false
	}
	n.data = change(slices.Clone(n.data))
	n.disk = slices.Clone(n.data)
	for len(n.states)*blockSize < len(n.data) {
		n.states = append(n.states, blockState{})
	}
	for b := range n.states {
		n.states[b].dirty = false
	}
	return true
}

// Drop removes a file behind everybody's back.
func (m *Mem) Drop(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil || dir.entries[base] == nil {
		return false
	}
	delete(dir.entries, base)
	delete(dir.stored, base)
	return true
}

// Files lists the names of all files in ascending order.
func (m *Mem) Files() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	var walk func(dir *node, at string)
	walk = func(dir *node, at string) {
		for _, name := range names(dir.entries) {
			if n := dir.entries[name]; n.dir {
				walk(n, path.Join(at, name))
			} else {
				list = append(list, path.Join(at, name))
			}
		}
	}
	walk(m.root, "")
	return list
}

// Read returns a copy of a file as processes see it, nil if there is none.
func (m *Mem) Read(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	if err != nil || n.dir {
		return nil
	}
	return slices.Clone(n.data)
}

// Clone returns an independent copy with the same content and its own seed, as a fresh process of
// the same machine run sees it; everything in it is stored.
func (m *Mem) Clone(seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(seed)
	c.boot, c.seed, c.capacity = m.boot, m.seed, m.capacity
	var walk func(from, to *node)
	walk = func(from, to *node) {
		for _, name := range names(from.entries) {
			n := from.entries[name]
			copied := &node{id: n.id, birth: n.birth, links: 1, dir: n.dir}
			if n.dir {
				copied.entries, copied.stored = map[string]*node{}, map[string]*node{}
				walk(n, copied)
			} else {
				copied.data, copied.disk = slices.Clone(n.data), slices.Clone(n.data)
				copied.states = slices.Clone(n.states)
				for b := range copied.states {
					copied.states[b].dirty = false
					if copied.states[b].allocated {
						c.used += blockSize
					}
				}
			}
			to.entries[name], to.stored[name] = copied, copied
		}
	}
	walk(m.root, c.root)
	c.nextNode = m.nextNode
	return c
}
