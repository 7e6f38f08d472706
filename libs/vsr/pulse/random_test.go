package pulse

import "testing"

// TestRandom runs clusters through random cuts, pauses, hung loops and restarts. At every millisecond no
// primary serves that enough members may vote out; every death rests on what its witnesses lived
// through; and when all is well again, everybody is alive to everybody within 700 ms.
func TestRandom(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 10
	}
	deaths := 0
	for seed := range seeds {
		w := newWorld(t, seed, []int{3, 5}[seed%2])
		checked := make([]int, len(w.nodes))
		check := func() {
			w.promise()
			for i := range w.nodes {
				deaths += w.justified(seed, i, checked[i])
				checked[i] = len(w.nodes[i].log)
			}
		}
		w.run(1000*ms, check)
		for range 40 {
			w.disturb()
			w.run(Tick(w.rng.Uint64N(900))*ms, check)
		}
		for i, m := range w.nodes {
			w.isolate(i, true)
			m.hung = 0
			if m.pulse == nil {
				m.start()
			} else if m.paused {
				m.resume()
			}
		}
		w.run(700*ms, check)
		for i, m := range w.nodes {
			for _, q := range m.pulse.peers {
				if q.dead || q.silent || q.down != 0 {
					t.Fatalf("seed %d: node %d still misses %d: %+v", seed, i, q.node, q)
				}
			}
			if !m.pulse.Serving(w.ids(), len(w.nodes), m.clock()) {
				t.Fatalf("seed %d: node %d is not reached by all", seed, i)
			}
		}
	}
	if deaths < 100 {
		t.Errorf("%d deaths in all: the runs are too quiet", deaths)
	}
}

// disturb does one random thing to the cluster.
func (w *world) disturb() {
	a, b := w.rng.IntN(len(w.nodes)), w.rng.IntN(len(w.nodes))
	m := w.nodes[a]
	switch w.rng.IntN(9) {
	case 0, 1:
		w.link(a, b, false)
	case 2:
		w.link(a, b, true)
	case 3:
		w.isolate(a, w.rng.IntN(3) > 0)
	case 4:
		if m.pulse != nil && !m.paused {
			m.paused = true
		}
	case 5:
		if m.paused {
			m.resume()
		}
	case 6:
		m.kill()
		m.paused = false
		if w.rng.IntN(2) == 0 {
			m.start()
		}
	case 7:
		if m.pulse == nil {
			m.start()
		}
	case 8:
		m.hung = w.rng.Uint64N(15) // not all loops: that would be a dead node
	}
}

// justified checks the deaths machine i has seen since the entry from on: it and those it names have
// missed the node for as long as it takes, except for what a report may be late by.
func (w *world) justified(seed uint64, i, from int) (deaths int) {
	log := w.nodes[i].log
	for at := from; at < len(log); at++ {
		s := log[at]
		if s.Kind != EventDead || said(log[:at], s.Node) {
			continue
		}
		deaths++
		j := w.index(s.Node)
		if n := 1 + s.By.Len(); n < len(w.nodes)/2+1 {
			w.t.Fatalf("seed %d: node %d: %v with %d witnesses", seed, i, s, n)
		}
		if since := max(s.last.at, w.nodes[i].since); w.now+ms < since+DeadAfter {
			w.t.Fatalf("seed %d: at %d node %d called %d dead, heard at %d", seed, w.now/ms, i, j, since/ms)
		}
		for k, x := range w.nodes {
			last := x.arrived[j]
			if !s.By.Has(x.id) || x.pulse == nil || x.paused || last.epoch > s.Epoch && s.Epoch > 0 {
				continue
			}
			missed := w.now+ms >= max(last.at, x.since)+DeadAfter
			// It may have ended its silence, or its life, since it reported, and the report may have waited.
			if late := w.now <= max(last.gap, x.since, w.nodes[i].resumed)+reportFor+5*ms; !missed && !late {
				w.t.Fatalf("seed %d: at %d node %d called %d dead by node %d, which heard it at %d", seed, w.now/ms, i, j, k, last.at/ms)
			}
		}
	}
	return deaths
}

// said reports whether the node is dead by the last word on it.
func said(log []seen, node uint8) bool {
	for i := len(log) - 1; i >= 0; i-- {
		if s := &log[i]; s.Node == node && (s.Kind == EventDead || s.Kind == EventAlive || s.Kind == EventNewEpoch) {
			return s.Kind == EventDead
		}
	}
	return false
}
