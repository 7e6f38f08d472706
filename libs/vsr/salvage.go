package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// salvage decides when too few logs are whole and every member has reported: an op that some member
// still holds is kept, the first one that nobody holds is cut with all above it (rule D8).
func (m *merge) salvage() Outcome {
	known := m.reach()
	base, kept, ok := m.base()
	if !ok {
		return Outcome{Decision: Deadlocked}
	}
	var parent wire.U128
	if base != nil {
		parent = base.Checksum
	}
	head := kept
	log := make([]wire.PrepareHeader, 0, wire.MaxSuffix)
	if base != nil {
		log = append(log, *base)
	}
	for op := kept + 1; op <= known; op++ {
		h, conflict := m.newest(op, parent)
		if conflict {
			return Outcome{Decision: Deadlocked, Op: op}
		}
		if h == nil || !m.heldBySomebody(op, h.Checksum) {
			break
		}
		log = append(log, *h)
		head, parent = op, h.Checksum
	}
	everyone := make([]*Report, len(m.all))
	for i := range m.all {
		everyone[i] = &m.all[i]
	}
	commit, _ := commitOf(everyone)
	out := Outcome{Decision: Decided, Head: head, Commit: min(commit, head), Lost: max(known, head) - head, Salvaged: m.rules.Lossy}
	for i := len(log) - 1; i >= 0 && len(out.Headers) < wire.MaxSuffix; i-- {
		out.Headers = append(out.Headers, log[i])
	}
	m.extend(&out)
	return out
}

// reach is the highest op that the log may have. A whole member of the newest log view names every op
// that this view inherited, and holds every one it acknowledged: then older logs have nothing to add.
// If all of the newest log view are suspect, what they lost may be found in an older log.
func (m *merge) reach() uint64 {
	for i := range m.all {
		m.logView = max(m.logView, m.all[i].LogView)
	}
	whole := false
	newest, any := uint64(0), uint64(0)
	for i := range m.all {
		r := &m.all[i]
		any = max(any, r.Head)
		if r.LogView == m.logView {
			newest = max(newest, r.Head)
			whole = whole || !r.Suspect
		}
	}
	if whole {
		return newest
	}
	return any
}

// base returns the highest committed op that some member holds, with everything below it, and its
// header: nil for an empty log. ok is false when a member's window hides what it holds, or two of them
// hold different entries there.
func (m *merge) base() (h *wire.PrepareHeader, op uint64, ok bool) {
	for i := range m.all {
		r := &m.all[i]
		committed, held := r.held()
		if held == 0 && r.Head > uint64(len(r.Suffix)) {
			return nil, 0, false
		}
		op = max(op, committed)
	}
	for i := range m.all {
		r := &m.all[i]
		committed, _ := r.held()
		if shown, _ := r.at(op); committed == op && op > 0 {
			if h != nil && h.Checksum != shown.Checksum {
				return nil, 0, false
			}
			h = shown
		}
	}
	return h, op, true
}

// held returns the highest op that the report shows as held, and the highest such op at or below its
// commit point; 0 when it shows none.
func (r *Report) held() (committed, top uint64) {
	for i := range r.Suffix {
		op := r.Suffix[i].Op
		if !r.Present.Bit(i) || r.Suffix[i].Blank() {
			continue
		}
		top = max(top, op)
		if op <= r.Commit {
			return op, top
		}
	}
	return 0, top
}

// newest returns the entry at op that follows parent, by the newest log view that shows one. Members of
// one log view that show different ones contradict each other.
func (m *merge) newest(op uint64, parent wire.U128) (best *wire.PrepareHeader, conflict bool) {
	view := uint32(0)
	for i := range m.all {
		r := &m.all[i]
		h, _ := r.at(op)
		switch {
		case h == nil || h.Parent != parent:
		case best == nil || r.LogView > view:
			best, view, conflict = h, r.LogView, false
		case r.LogView == view && h.Checksum != best.Checksum:
			conflict = true
		}
	}
	return best, conflict
}

func (m *merge) heldBySomebody(op uint64, id wire.U128) bool {
	for i := range m.all {
		if m.all[i].holds(op, id) {
			return true
		}
	}
	return false
}
