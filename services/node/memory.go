package node

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The collector runs when the heap has grown by as much as it holds, so a process that falls idle keeps what work,
// or recovery, left behind: with ten thousand partitions more than they need themselves. Such a process gives it back.
const (
	memoryLook  = 2 * time.Second
	memoryQuiet = 512 << 10 // bytes allocated between two looks by a process that does nothing
	memoryWorth = 16 << 20  // bytes allocated since the last time that are worth a collection, at least
)

// spare knows when there may be memory to give back.
type spare struct {
	allocated uint64 // bytes so far, at the last look
	returned  uint64 // at the last time it was worth it
}

// look reports whether the process has fallen idle and has allocated, since it last did, as much as lets the
// collector run anyhow: idle moments at most double its work.
func (s *spare) look(allocated, live uint64) bool {
	idle := allocated-s.allocated < memoryQuiet
	s.allocated = allocated
	if !idle || allocated-s.returned < max(live, memoryWorth) {
		return false
	}
	s.returned = allocated
	return true
}

// returnMemory gives memory back to the system whenever the process falls idle.
func returnMemory(ctx context.Context) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	for s := (spare{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if metrics.Read(samples); s.look(samples[0].Value.Uint64(), samples[1].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}
