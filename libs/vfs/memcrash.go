package vfs

// crashPoint is where a Mem kills its process by itself.
type crashPoint struct {
	at       int // number of the mutating call, from 1; 0 = never
	power    bool
	happened bool
}

// Calls is the number of mutating calls (create, write, truncate, allocate, sync, rename, remove,
// sync of a directory) since NewMem or CrashAt: the crash points of a workload.
func (m *Mem) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// CrashAt kills the process at its k-th mutating call from now on, counted from 1: the call takes
// effect in part, by the seed, and every call from there on fails with ErrDead until Restart. With
// power the machine goes down too. k = 0 takes the crash point back.
func (m *Mem) CrashAt(k int, power bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.crash = 0, crashPoint{at: k, power: power}
}

// Crashed reports whether the crash point was reached.
func (m *Mem) Crashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crash.happened
}

// Restart starts the next process after a crash point: as after Kill or PowerCut.
func (m *Mem) Restart() {
	if m.crash.power {
		m.PowerCut()
	} else {
		m.Kill()
	}
}

// Kill ends the current process: its files and mounts are dead, its locks are free. What it wrote
// stays, since the page cache does.
func (m *Mem) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
}

func (m *Mem) kill() {
	m.life++
	m.crash, m.calls = crashPoint{}, 0
	clear(m.locks)
	m.each(m.root, func(n *node) { n.opens = 0 })
}

// PowerCut ends the machine's run. Of every file each unsynced block is, by the seed, lost, stored
// or torn between two sectors, and so is the unsynced size; of every directory a random number of
// its last changes is lost. The boot id changes.
func (m *Mem) PowerCut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
	m.boot++
	m.loseNames()
	m.used = 0
	m.each(m.root, func(n *node) {
		m.loseData(n)
		for b := range n.states {
			if n.states[b].allocated {
				m.used += blockSize
			}
		}
	})
}

func (m *Mem) loseNames() {
	blocked := map[*node]bool{}
	for i := range m.pending {
		c := &m.pending[i]
		lost := c.touches(blocked) || m.rng.IntN(4) == 0
		for _, s := range c.steps {
			if lost {
				blocked[s.dir] = true
			}
		}
		if !lost {
			c.store()
		}
	}
	m.pending = nil
	m.restore(m.root)
}

// restore makes the visible names below dir those that are stored.
func (m *Mem) restore(dir *node) {
	clear(dir.entries)
	for _, name := range names(dir.stored) {
		n := dir.stored[name]
		n.links = 1
		dir.entries[name] = n
		if n.dir {
			m.restore(n)
		}
	}
}

func (m *Mem) loseData(n *node) {
	if len(n.disk) != len(n.data) {
		if m.rng.IntN(2) == 0 {
			n.storeSize(len(n.data))
		} else if size := len(n.disk); m.rng.IntN(2) == 0 && size < len(n.data) {
			n.data = n.data[:size] // the new size is lost with all that lies behind the old one
		}
	}
	m.storeSome(n)
	n.data = append(n.data[:0:0], n.disk...)
	for len(n.states)*blockSize < len(n.data) {
		n.states = append(n.states, blockState{})
	}
	for b := range n.states {
		n.states[b].dirty = false
		if b*blockSize >= len(n.data) {
			n.states[b].allocated = false
		}
	}
}

// storeSome stores a random part of the unsynced blocks.
func (m *Mem) storeSome(n *node) {
	keep := m.rng.IntN(4) // of one file most, or few, blocks are stored
	for b := range n.states {
		if !n.states[b].dirty {
			continue
		}
		switch r := m.rng.IntN(4); {
		case r < keep:
			n.storeBlock(b)
		case r == keep:
			m.tear(n, b)
		}
	}
}

// tear stores the sectors of a block up to a random one, or from it on.
func (m *Mem) tear(n *node, b int) {
	cut := m.rng.IntN(blockSize/sectorSize) * sectorSize
	from, to := b*blockSize, b*blockSize+cut
	if m.rng.IntN(2) == 0 {
		from, to = to, from+blockSize
	}
	to = min(to, len(n.disk), len(n.data))
	if from < to {
		copy(n.disk[from:to], n.data[from:to])
	}
}

// writeBack lets the kernel store a random unsynced block now and then, so that the disk may hold
// states between two syncs. m.mu is held.
func (m *Mem) writeBack(n *node) {
	if m.rng.IntN(8) != 0 {
		return
	}
	b := m.rng.IntN(len(n.states))
	if n.states[b].dirty {
		n.storeBlock(b)
	}
}

// each visits every file below dir in name order.
func (m *Mem) each(dir *node, visit func(*node)) {
	for _, name := range names(dir.entries) {
		if n := dir.entries[name]; n.dir {
			m.each(n, visit)
		} else {
			visit(n)
		}
	}
}

// die is what happens at a crash point. m.mu is held.
func (m *Mem) die() { m.crash.happened = true }
