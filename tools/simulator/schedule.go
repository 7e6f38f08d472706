package simulator

// Virtual time is in microseconds.
const (
	millisecond = 1000
	second      = 1000 * millisecond
)

// event is work at a point of virtual time. Equal times run in the order of their making.
type event struct {
	at, order uint64
	run       func()
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// schedule is a binary heap of events.
type schedule struct {
	heap  []event
	order uint64
}

func (s *schedule) add(at uint64, run func()) {
	s.order++
	s.heap = append(s.heap, event{at: at, order: s.order, run: run})
	for i := len(s.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.heap[i].before(&s.heap[parent]) {
			return
		}
		s.heap[i], s.heap[parent] = s.heap[parent], s.heap[i]
		i = parent
	}
}

// next removes the earliest event; ok is false when there is none.
func (s *schedule) next() (e event, ok bool) {
	n := len(s.heap) - 1
	if n < 0 {
		return e, false
	}
	e = s.heap[0]
	s.heap[0] = s.heap[n]
	s.heap[n] = event{}
	s.heap = s.heap[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return e, true
		}
		if child+1 < n && s.heap[child+1].before(&s.heap[child]) {
			child++
		}
		if !s.heap[child].before(&s.heap[i]) {
			return e, true
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}
