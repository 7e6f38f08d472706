package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// Report is what one member says of its log in a DoViewChange.
type Report struct {
	Member        uint8
	LogView       uint32
	Head, Commit  uint64
	Suspect       bool                 // the sender cannot vouch for its log (rule D7)
	Nack, Present wire.U128            // bit i speaks of Suffix[i]
	Suffix        []wire.PrepareHeader // Head, Head-1, …; blank where nothing is known
}

// at returns the header the report shows at op, nil when it is blank or outside the window, and the
// position of op in the window, -1 outside.
func (r *Report) at(op uint64) (*wire.PrepareHeader, int) {
	if op > r.Head || r.Head-op >= uint64(len(r.Suffix)) {
		return nil, -1
	}
	i := int(r.Head - op)
	if h := &r.Suffix[i]; h.Op == op && !h.Blank() {
		return h, i
	}
	return nil, i
}

// holds reports whether the member can serve the op with this identity.
func (r *Report) holds(op uint64, id wire.U128) bool {
	h, i := r.at(op)
	return h != nil && h.Checksum == id && r.Present.Bit(i)
}

// MergeRules are the numbers a merge depends on.
type MergeRules struct {
	Members int
	Quorums Quorums
	// Lossy lets all members together give up what none of them holds, when too few logs are whole
	// (rule D8). Without it only a group that never committed anything starts that way (rule D11).
	Lossy bool
}

// Decision is how a merge ended.
type Decision uint8

const (
	// Waiting: a further report may decide.
	Waiting Decision = iota
	// Decided: Headers is the log of the view.
	Decided
	// Deadlocked: all reports together do not prove what the log is; nothing may be discarded.
	Deadlocked
)

// Outcome is the log of a view. Headers goes from Head down at least to max(Commit, 1), and further as
// far as reports and the hash chain name the entries.
type Outcome struct {
	Decision     Decision
	Head, Commit uint64
	Headers      []wire.PrepareHeader // newest first
	Op           uint64               // where it stopped, unless Decided
	Lost         uint64               // ops above Head that were known and are given up
	Salvaged     bool                 // too few logs were whole: what none of the members held may be lost
}

// Merge chooses the log of a view from the reports of its members (vsr-behaviour.md §4.5, with the
// flagged reports of rule D8). The outcome depends on the set of reports, not on their order. Reports
// carry verified suffixes (wire.DecodeSuffix), at most one of each member.
//
// Reports of whole members decide alone when there are enough of them; those of suspect members then
// only say who can serve a body. Fewer whole reports than a view-change quorum decide nothing until all
// members have reported.
func Merge(reports []Report, rules MergeRules) Outcome {
	m := merge{rules: rules, all: reports}
	for i := range reports {
		if !reports[i].Suspect {
			m.voters = append(m.voters, &reports[i])
		}
	}
	switch complete := len(reports) >= rules.Members; {
	case len(m.voters) >= rules.Quorums.ViewChange:
		return m.vote()
	case !complete:
		return Outcome{Decision: Waiting}
	case m.nothing():
		return Outcome{Decision: Decided, Salvaged: rules.Lossy}
	case !rules.Lossy && !m.unstarted():
		return Outcome{Decision: Deadlocked}
	}
	return m.salvage()
}

type merge struct {
	rules     MergeRules
	all       []Report
	voters    []*Report // not flagged
	canonical []*Report // those of them with the newest log view
	logView   uint32
}

func (m *merge) nothing() bool {
	for i := range m.all {
		if m.all[i].Head > 0 {
			return false
		}
	}
	return true
}

// unstarted reports whether the first start was cut short: nobody knows of anything committed. Members
// that are empty then have nothing to vouch for, and what anyone holds is kept.
func (m *merge) unstarted() bool {
	for i := range m.all {
		r := &m.all[i]
		if r.Commit > 0 {
			return false
		}
		for j := range r.Suffix {
			if r.Suffix[j].Commit > 0 {
				return false
			}
		}
	}
	return true
}

// vote decides by the reports of whole members.
func (m *merge) vote() Outcome {
	for _, r := range m.voters {
		m.logView = max(m.logView, r.LogView)
	}
	head := uint64(0)
	for _, r := range m.voters {
		if r.LogView == m.logView {
			m.canonical = append(m.canonical, r)
			head = max(head, r.Head)
		}
	}
	commit, floor := commitOf(m.voters)
	head = max(head, floor)
	for op := max(floor, 1); op <= head; op++ {
		switch m.judge(op, floor) {
		case keep:
			continue
		case cut:
			head = op - 1
		default:
			return m.undecided(op)
		}
		break
	}
	out := Outcome{Decision: Decided, Head: head, Commit: min(commit, head)}
	for op := head; op >= max(floor, 1); op-- {
		h, _ := m.header(op)
		if n := len(out.Headers); n > 0 && out.Headers[n-1].Parent != h.Checksum {
			return m.undecided(op)
		}
		out.Headers = append(out.Headers, *h)
	}
	m.extend(&out)
	return out
}

// commitOf returns the highest op that a report proves committed, and the op below which nobody can
// have an uncommitted one: at most one pipeline is in flight.
func commitOf(reports []*Report) (commit, floor uint64) {
	for _, r := range reports {
		commit = max(commit, r.Commit)
		if h, _ := r.at(r.Head); h != nil {
			commit = max(commit, h.Commit)
		}
		if r.Head > MaxPipeline {
			floor = max(floor, r.Head-MaxPipeline)
		}
	}
	return commit, max(commit, floor)
}

type verdict uint8

const (
	keep verdict = iota
	cut
	unclear
)

// judge decides one op by nacks and copies.
func (m *merge) judge(op, floor uint64) verdict {
	canonical, conflict := m.header(op)
	nacks, copies := 0, 0
	for _, r := range m.voters {
		if m.nacks(r, op, canonical, conflict) {
			nacks++
		}
	}
	if canonical != nil {
		for i := range m.all {
			if m.all[i].holds(op, canonical.Checksum) {
				copies++
			}
		}
	}
	switch {
	case nacks >= m.rules.Quorums.Nack:
		if op <= floor {
			return unclear // it would discard a committed op
		}
		return cut
	case conflict || copies == 0:
		return unclear
	}
	return keep
}

// header returns what the canonical members show at op; conflict says that they do not agree.
func (m *merge) header(op uint64) (h *wire.PrepareHeader, conflict bool) {
	for _, r := range m.canonical {
		shown, _ := r.at(op)
		switch {
		case shown == nil:
		case h == nil:
			h = shown
		case h.Checksum != shown.Checksum:
			conflict = true
		}
	}
	return h, conflict
}

// nacks reports whether r never acknowledged the canonical entry at op: its log ends below, it says so,
// or it is an older log that has another entry there. An older log says nothing about an op of which
// the canonical members lost the header, or on which they disagree.
func (m *merge) nacks(r *Report, op uint64, canonical *wire.PrepareHeader, conflict bool) bool {
	if r.Head < op {
		return true
	}
	h, i := r.at(op)
	if i >= 0 && r.Nack.Bit(i) {
		return true
	}
	if h == nil || r.LogView == m.logView || conflict {
		return false
	}
	if canonical == nil {
		return !m.abstains(op)
	}
	return canonical.Checksum != h.Checksum
}

// abstains reports whether a canonical member's log covers op without a word about it.
func (m *merge) abstains(op uint64) bool {
	for _, r := range m.canonical {
		if h, i := r.at(op); op <= r.Head && h == nil && (i < 0 || !r.Nack.Bit(i)) {
			return true
		}
	}
	return false
}

func (m *merge) undecided(op uint64) Outcome {
	if len(m.all) < m.rules.Members {
		return Outcome{Decision: Waiting, Op: op}
	}
	return Outcome{Decision: Deadlocked, Op: op}
}

// extend names entries below the window: an entry whose identity is the parent of the one above is that
// entry, whoever shows it.
func (m *merge) extend(out *Outcome) {
	for n := len(out.Headers); n > 0 && n < wire.MaxSuffix; n++ {
		above := &out.Headers[n-1]
		h := m.find(above.Op-1, above.Parent)
		if h == nil {
			return
		}
		out.Headers = append(out.Headers, *h)
	}
}

func (m *merge) find(op uint64, id wire.U128) *wire.PrepareHeader {
	for i := range m.all {
		if h, _ := m.all[i].at(op); h != nil && h.Checksum == id {
			return h
		}
	}
	return nil
}
