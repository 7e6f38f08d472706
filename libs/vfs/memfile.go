package vfs

import (
	"io"
	"io/fs"
	"syscall"
)

// memFile is an open file of one process.
type memFile struct {
	t      *mount
	n      *node
	name   string
	closed bool
}

func (f *memFile) enter() error {
	if err := f.t.enter(); err != nil {
		return err
	}
	if f.closed {
		f.t.leave()
		return pathError("use", f.name, fs.ErrClosed)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.enter(); err != nil {
		return 0, err
	}
	defer f.t.leave()
	if fault := f.t.m.injected(Call{Op: OpRead, Name: f.name, Off: off, Len: int64(len(p))}); fault.Err != nil {
		return 0, pathError("read", f.name, fault.Err)
	}
	if off < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	n := 0
	if off < int64(len(f.n.data)) {
		n = copy(p, f.n.data[off:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.WriteVec([][]byte{p}, off)
	return int(n), err
}

func (f *memFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	if err := f.enter(); err != nil {
		return 0, err
	}
	defer f.t.leave()
	var p []byte
	if len(bufs) == 1 {
		p = bufs[0]
	} else {
		for _, b := range bufs {
			p = append(p, b...)
		}
	}
	m := f.t.m
	crash, fault := m.mutating(Call{Op: OpWrite, Name: f.name, Off: off, Len: int64(len(p))})
	switch {
	case crash:
		p = p[:m.rng.IntN(len(p)+1)]
	case fault.Err != nil || fault.Short:
		p = p[:min(fault.Keep, len(p))]
	}
	if fault.Lost {
		return int64(len(p)), nil
	}
	n, err := m.writeNode(f.n, p, off+fault.Shift)
	if crash {
		m.die()
		return 0, ErrDead
	}
	if fault.Err != nil {
		err = fault.Err
	}
	if err != nil {
		return n, pathError("write", f.name, err)
	}
	if fault.Short {
		n = totalLen(bufs) // a torn write that nobody reported
	}
	return n, nil
}

func totalLen(bufs [][]byte) (n int64) {
	for _, b := range bufs {
		n += int64(len(b))
	}
	return n
}

// writeNode puts p into the page cache; on a full disk it writes what fits. m.mu is held.
func (m *Mem) writeNode(n *node, p []byte, off int64) (int64, error) {
	if len(p) == 0 {
		return 0, nil
	}
	end := off + int64(len(p))
	fits := m.allocate(n, off, end)
	p = p[:max(fits-off, 0)]
	if len(p) > 0 {
		n.resize(max(int64(len(n.data)), off+int64(len(p))))
		copy(n.data[off:], p)
		n.markDirty(off, off+int64(len(p)))
	}
	if fits < end {
		return int64(len(p)), syscall.ENOSPC
	}
	m.writeBack(n)
	return int64(len(p)), nil
}

// allocate gives the blocks of [from, to) space and returns the position up to which there was room.
func (m *Mem) allocate(n *node, from, to int64) int64 {
	for b := from / blockSize; b*blockSize < to; b++ {
		for int64(len(n.states)) <= b {
			n.states = append(n.states, blockState{})
		}
		if n.states[b].allocated {
			continue
		}
		if m.capacity > 0 && m.used+blockSize > m.capacity {
			return max(b*blockSize, from)
		}
		n.states[b].allocated = true
		m.used += blockSize
	}
	return to
}

func (n *node) markDirty(from, to int64) {
	for b := from / blockSize; b*blockSize < to; b++ {
		n.states[b].dirty = true
	}
}

// resize changes the size processes see; added bytes are zero.
func (n *node) resize(size int64) {
	if size <= int64(len(n.data)) {
		n.data = n.data[:size]
		return
	}
	old := int64(len(n.data))
	if size <= int64(cap(n.data)) {
		n.data = n.data[:size]
		clear(n.data[old:])
	} else {
		grown := make([]byte, size, size+size/2)
		copy(grown, n.data)
		n.data = grown
	}
	for int64(len(n.states))*blockSize < size {
		n.states = append(n.states, blockState{})
	}
}

func (f *memFile) Size() (int64, error) {
	if err := f.enter(); err != nil {
		return 0, err
	}
	defer f.t.leave()
	return int64(len(f.n.data)), nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.t.leave()
	m := f.t.m
	crash, fault := m.mutating(Call{Op: OpTruncate, Name: f.name, Len: size})
	if fault.Err != nil {
		return pathError("truncate", f.name, fault.Err)
	}
	if !crash || m.rng.IntN(2) == 0 {
		m.truncateNode(f.n, size)
	}
	if crash {
		m.die()
		return ErrDead
	}
	return nil
}

func (m *Mem) truncateNode(n *node, size int64) {
	shrunk := size < int64(len(n.data))
	n.resize(size)
	if !shrunk {
		return
	}
	for b := range n.states {
		if int64(b)*blockSize >= size && n.states[b].allocated {
			n.states[b].allocated = false
			m.used -= blockSize
		}
		if int64(b+1)*blockSize > size {
			n.states[b].dirty = true
		}
	}
}

func (f *memFile) Allocate(size int64) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.t.leave()
	m := f.t.m
	crash, fault := m.mutating(Call{Op: OpAllocate, Name: f.name, Len: size})
	if fault.Err != nil {
		return pathError("allocate", f.name, fault.Err)
	}
	if m.allocate(f.n, 0, size) < size {
		return pathError("allocate", f.name, syscall.ENOSPC)
	}
	if size > int64(len(f.n.data)) {
		f.n.resize(size)
	}
	if crash {
		m.die()
		return ErrDead
	}
	return nil
}

func (f *memFile) Sync() error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.t.leave()
	m := f.t.m
	crash, fault := m.mutating(Call{Op: OpSync, Name: f.name})
	switch {
	case crash:
		m.storeSome(f.n)
		m.die()
		return ErrDead
	case fault.Err != nil:
		// As Linux does: the pages count as clean, what processes read is not what is stored.
		for b := range f.n.states {
			f.n.states[b].dirty = false
		}
		return pathError("sync", f.name, fault.Err)
	}
	f.n.store()
	return nil
}

// store makes the disk hold what processes see.
func (n *node) store() {
	n.storeSize(len(n.data))
	for b := range n.states {
		if n.states[b].dirty {
			n.storeBlock(b)
		}
	}
}

func (n *node) storeSize(size int) {
	old := len(n.disk)
	if size <= old {
		n.disk = n.disk[:size]
		return
	}
	if size <= cap(n.disk) {
		n.disk = n.disk[:size]
		clear(n.disk[old:])
		return
	}
	grown := make([]byte, size, cap(n.data))
	copy(grown, n.disk)
	n.disk = grown
}

// storeBlock stores one block, growing the stored size if need be.
func (n *node) storeBlock(b int) {
	from, to := b*blockSize, min((b+1)*blockSize, len(n.data))
	if from < to {
		n.storeSize(max(to, len(n.disk)))
		copy(n.disk[from:to], n.data[from:to])
	}
	n.states[b].dirty = false
}

func (f *memFile) Close() error {
	if err := f.enter(); err != nil {
		return nil
	}
	defer f.t.leave()
	f.closed = true
	f.n.opens--
	if f.t.m.locks[f.n] == f {
		delete(f.t.m.locks, f.n)
	}
	f.t.m.freeUnused(f.n)
	return nil
}
