package node

import "testing"

func TestMemoryIsReturnedByTheIdle(t *testing.T) {
	const mib = 1 << 20
	var s spare
	for i, look := range []struct {
		allocated, live uint64
		want            bool
	}{
		{100 * mib, 40 * mib, false}, // it has just started
		{100*mib + 1000, 40 * mib, true},
		{100*mib + 2000, 40 * mib, false}, // there is nothing new
		{139 * mib, 40 * mib, false},      // busy
		{139*mib + 1000, 40 * mib, false}, // idle, and not worth it
		{141 * mib, 40 * mib, false},
		{141*mib + 1000, 40 * mib, true},
		{150 * mib, mib, false},
		{150*mib + 1000, mib, false}, // a small heap is not collected for every burst
		{158 * mib, mib, false},
		{158*mib + 1000, mib, true},
	} {
		if got := s.look(look.allocated, look.live); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}
