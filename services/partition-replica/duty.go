package partitionreplica

import (
	"maps"
	"slices"
	"sync"
)

// duty holds the partitions a periodic task has to come back to, so that it never walks those it has nothing to
// do for. Any goroutine.
type duty struct {
	mu   sync.Mutex
	owed map[*Partition]struct{}
}

// set says whether the task has something to do for p.
func (d *duty) set(p *Partition, owed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !owed:
		delete(d.owed, p)
	case d.owed == nil:
		d.owed = map[*Partition]struct{}{p: {}}
	default:
		d.owed[p] = struct{}{}
	}
}

// list returns the partitions in group id order.
func (d *duty) list() []*Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Collect(maps.Keys(d.owed))
	sortByID(all)
	return all
}
