package vfs

import (
	"io/fs"
	"syscall"
)

// mount is a Mem as one process sees it.
type mount struct {
	m    *Mem
	life uint64
}

// enter takes the lock if the process lives.
func (t *mount) enter() error {
	t.m.mu.Lock()
	if t.life != t.m.life || t.m.crash.happened {
		t.m.mu.Unlock()
		return ErrDead
	}
	return nil
}

func (t *mount) leave() { t.m.mu.Unlock() }

func (t *mount) Open(name string) (File, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	if f := t.m.injected(Call{Op: OpOpen, Name: name}); f.Err != nil {
		return nil, pathError("open", name, f.Err)
	}
	n, err := t.m.lookup(name)
	if err == nil && n.dir {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return t.handle(n, name), nil
}

func (t *mount) handle(n *node, name string) *memFile {
	n.opens++
	return &memFile{t: t, n: n, name: name}
}

func (t *mount) Create(name string) (File, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	dir, base, err := t.m.parent(name)
	if err == nil && dir.entries[base] != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return nil, pathError("create", name, err)
	}
	n := t.m.newNode(false)
	if err := t.mutate(Call{Op: OpCreate, Name: name}, step{dir, base, n}); err != nil {
		return nil, pathError("create", name, err)
	}
	return t.handle(n, name), nil
}

// mutate applies a change of names unless a fault or a crash prevents it. m.mu is held.
func (t *mount) mutate(c Call, steps ...step) error {
	crash, fault := t.m.mutating(c)
	if fault.Err != nil {
		return fault.Err
	}
	if crash {
		if t.m.rng.IntN(2) == 0 {
			t.m.apply(steps...)
		}
		t.m.die()
		return ErrDead
	}
	t.m.apply(steps...)
	return nil
}

func (t *mount) Rename(from, to string) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	a, nameA, err := t.m.parent(from)
	if err == nil && a.entries[nameA] == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return pathError("rename", from, err)
	}
	b, nameB, err := t.m.parent(to)
	if err != nil {
		return pathError("rename", to, err)
	}
	n, old := a.entries[nameA], b.entries[nameB]
	if old == n {
		return nil
	}
	if old != nil && (old.dir != n.dir || len(old.entries) > 0) {
		return pathError("rename", to, fs.ErrExist)
	}
	n.links++ // keeps it alive between the steps
	err = t.mutate(Call{Op: OpRename, Name: from, To: to}, step{a, nameA, nil}, step{b, nameB, n})
	n.links--
	if err != nil {
		return pathError("rename", from, err)
	}
	return nil
}

func (t *mount) Remove(name string) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	dir, base, err := t.m.parent(name)
	if err == nil {
		if n := dir.entries[base]; n == nil {
			err = fs.ErrNotExist
		} else if len(n.entries) > 0 {
			err = syscall.ENOTEMPTY
		}
	}
	if err == nil {
		err = t.mutate(Call{Op: OpRemove, Name: name}, step{dir, base, nil})
	}
	if err != nil {
		return pathError("remove", name, err)
	}
	return nil
}

func (t *mount) RemoveAll(name string) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	dir, base, err := t.m.parent(name)
	if err != nil || dir.entries[base] == nil {
		if err == nil || IsNotExist(err) {
			return nil
		}
		return pathError("remove", name, err)
	}
	crash, fault := t.m.mutating(Call{Op: OpRemove, Name: name})
	if fault.Err != nil {
		return pathError("remove", name, fault.Err)
	}
	t.m.removeTree(dir, base)
	if crash {
		t.m.die()
		return ErrDead
	}
	return nil
}

func (t *mount) MkdirAll(name string) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	n := t.m.root
	for _, part := range split(name) {
		next := n.entries[part]
		if next == nil {
			next = t.m.newNode(true)
			if err := t.mutate(Call{Op: OpCreate, Name: name}, step{n, part, next}); err != nil {
				return pathError("mkdir", name, err)
			}
		} else if !next.dir {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

func (t *mount) ReadDir(name string) ([]Entry, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	n, err := t.m.lookup(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	list := make([]Entry, 0, len(n.entries))
	for _, base := range names(n.entries) {
		c := n.entries[base]
		list = append(list, Entry{Name: base, Dir: c.dir, Size: int64(len(c.data))})
	}
	return list, nil
}

func (t *mount) Stat(name string) (Entry, error) {
	if err := t.enter(); err != nil {
		return Entry{}, err
	}
	defer t.leave()
	n, err := t.m.lookup(name)
	if err != nil {
		return Entry{}, pathError("stat", name, err)
	}
	e := Entry{Dir: n.dir, Size: int64(len(n.data)), Inode: n.id, BirthTime: n.birth}
	if parts := split(name); len(parts) > 0 {
		e.Name = parts[len(parts)-1]
	}
	return e, nil
}

func (t *mount) SyncDir(name string) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	n, err := t.m.lookup(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("syncdir", name, err)
	}
	crash, fault := t.m.mutating(Call{Op: OpSyncDir, Name: name})
	if fault.Err != nil {
		return pathError("syncdir", name, fault.Err)
	}
	if !crash || t.m.rng.IntN(2) == 0 {
		t.m.storeDir(n)
	}
	if crash {
		t.m.die()
		return ErrDead
	}
	return nil
}

func (t *mount) Lock(name string) (File, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	dir, base, err := t.m.parent(name)
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	n := dir.entries[base]
	if n == nil {
		n = t.m.newNode(false)
		if err := t.mutate(Call{Op: OpCreate, Name: name}, step{dir, base, n}); err != nil {
			return nil, pathError("lock", name, err)
		}
	}
	if t.m.locks[n] != nil {
		return nil, pathError("lock", name, ErrLocked)
	}
	f := t.handle(n, name)
	t.m.locks[n] = f
	return f, nil
}

func (t *mount) Space() (total, free uint64, err error) {
	if err := t.enter(); err != nil {
		return 0, 0, err
	}
	defer t.leave()
	capacity := t.m.capacity
	if capacity == 0 {
		capacity = 1 << 50
	}
	return uint64(capacity), uint64(max(capacity-t.m.used, 0)), nil
}

func (t *mount) BootID() string { return t.m.BootID() }
