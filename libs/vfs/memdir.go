package vfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// change is one atomic change of names: in each directory it touches, a name gets a node or loses
// it (nil). The disk takes the changes of a directory in their order.
type change struct {
	steps []step
}

type step struct {
	dir  *node
	name string
	to   *node
}

func (c *change) touches(dirs map[*node]bool) bool {
	for _, s := range c.steps {
		if dirs[s.dir] {
			return true
		}
	}
	return false
}

func (c *change) store() {
	for _, s := range c.steps {
		if s.to == nil {
			delete(s.dir.stored, s.name)
		} else {
			s.dir.stored[s.name] = s.to
		}
	}
}

// apply makes the change visible and remembers it for the disk. m.mu is held.
func (m *Mem) apply(steps ...step) {
	for _, s := range steps {
		if old := s.dir.entries[s.name]; old != nil {
			old.links--
			delete(s.dir.entries, s.name)
			m.freeUnused(old)
		}
		if s.to != nil {
			s.to.links++
			s.dir.entries[s.name] = s.to
		}
	}
	m.pending = append(m.pending, change{steps})
}

// freeUnused gives back the space of a file that has no name and no handle. m.mu is held.
func (m *Mem) freeUnused(n *node) {
	if n.dir || n.links > 0 || n.opens > 0 {
		return
	}
	for i := range n.states {
		if n.states[i].allocated {
			n.states[i].allocated = false
			m.used -= blockSize
		}
	}
}

// storeDir puts the changes of dir, and those they rest on, on the disk. m.mu is held.
func (m *Mem) storeDir(dir *node) {
	dirs := map[*node]bool{dir: true}
	need := make([]bool, len(m.pending))
	for i := len(m.pending) - 1; i >= 0; i-- {
		if c := &m.pending[i]; c.touches(dirs) {
			need[i] = true
			for _, s := range c.steps {
				dirs[s.dir] = true
			}
		}
	}
	rest := m.pending[:0]
	for i, c := range m.pending {
		if need[i] {
			c.store()
		} else {
			rest = append(rest, c)
		}
	}
	m.pending = rest
}

// lookup finds a node by name. m.mu is held.
func (m *Mem) lookup(name string) (*node, error) {
	n := m.root
	for _, part := range split(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		if n = n.entries[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// parent finds the directory that holds, or would hold, name. m.mu is held.
func (m *Mem) parent(name string) (*node, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", fs.ErrInvalid
	}
	dir, err := m.lookup(path.Join(parts[:len(parts)-1]...))
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	return dir, parts[len(parts)-1], err
}

func split(name string) []string {
	name = path.Clean("/" + name)
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}

// names lists a directory's names in ascending order.
func names(entries map[string]*node) []string {
	list := make([]string, 0, len(entries))
	for name := range entries {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// removeTree removes name from dir with everything below it. m.mu is held.
func (m *Mem) removeTree(dir *node, name string) {
	n := dir.entries[name]
	if n.dir {
		for _, child := range names(n.entries) {
			m.removeTree(n, child)
		}
	}
	m.apply(step{dir, name, nil})
}
