package coverage

import "strings"

// known reports whether no campaign has to reach a block: it refuses what correct members and callers
// never say, or an exception names it.
func known(b *Block) bool {
	if strings.Contains(b.Text, "out.fault(") || strings.Contains(b.Text, "out.Fault =") {
		return true
	}
	for _, e := range exceptions {
		if b.Text == e.text || len(e.text) > shortText && strings.Contains(b.Text, e.text) {
			return true
		}
	}
	return false
}

// shortText is the length up to which an exception is the whole text and not a part.
const shortText = 12

// exception is a block that no campaign has to reach, by a part of its first two lines.
type exception struct{ text, why string }

const (
	mixed    = "groups with reference nodes are not simulated"
	small    = "bodies are small here, and no backup falls four windows behind its disk"
	honest   = "correct members never send it"
	caller   = "this caller never does it"
	guard    = "a second look at what the caller of the function has looked at"
	disaster = "more disks were lost than the rules allow for: only an operator goes on"
	scenario = "rare: a scenario of libs/vsr takes it"
)

var exceptions = []exception{
	// Reference nodes, sizes, callers.
	{"for op := max(r.acked, r.tail.low) + 1; op < r.held; op++ {", mixed},
	{"lowest = h.Op - 1", mixed},
	{"r.tail.head-r.committed >= maxUnapplied", small},
	{"w.bytes+uint64(h.Size) > windowBytes", small},
	{"CodeTransientNotAccepted, WhySize", caller},
	{"func (r *Replica) Rollback", caller},
	{"op <= r.committed || r.group.Members > 1 && op < r.tail.head", caller},
	{"r.cutTail(op)", caller},
	{"r.lossy = true", scenario},
	// Guards.
	{"r.known == r.tail.head { return", guard},
	{"if p == nil { return", guard},
	{"if !r.settled() { return", guard},
	{"if r.halted { return", guard},
	{"case r.halted || in.Op > r.tail.head:", guard},
	{"if r.status != statusViewChange ||", guard},
	{"case r.status != statusViewChange:", guard},
	{"case r.status != statusNormal:", guard},
	{"case r.status == statusRecovering || r.leader() == r.group.Self:", guard},
	{"if e, ok := r.early.take(h.Op); ok {", guard},
	{"return 0", guard},
	{"if above <= r.tail.head && !r.plan.active {", guard},
	{"case h.Command == wire.CommandRangeEvicted:", guard},
	{"m = (m + 1) % r.group.Members", "all other members are dead, and so is whoever would answer"},
	{"return m", "the same"},
	{"return false", "the end of a function that found something before"},
	{"case r.leader() == r.group.Self: return false", "nobody sends a primary the prepares of its own view"},
	// What correct members never say, and what no member may decide.
	{"uint64(len(suffix)) > head", honest},
	{"if suffix[i].Op != head-uint64(i) {", honest},
	{"if !r.tail.precedes(&e.header) {", honest},
	{"conflict = true", honest},
	{"out.Headers[n-1].Parent != h.Checksum", honest},
	{"return unclear // it would discard a committed op", disaster},
	{"return Outcome{Decision: Deadlocked", disaster},
	{"return nil, 0, false", disaster},
	// Rare.
	{"case r.rejoin.unanswered >= newsBeforeElection:", scenario},
	{"r.arm(timerRelease, releaseDelay)", scenario},
	{"if canonical == nil { return !m.abstains(op)", scenario},
	{"func (m *merge) abstains", scenario},
	{"for _, r := range m.canonical { if h, i := r.at(op); op <= r.Head", scenario},
	{"if h, i := r.at(op); op <= r.Head && h == nil", scenario},
	{"if view > 0 { return true", scenario},
	{"if r.Commit > 0 { return false", scenario},
	{"if r.Suffix[j].Commit > 0 { return false", scenario},
	{"if h == nil || !m.heldBySomebody(op, h.Checksum) { break", scenario},
	{"if first && (h.Flags&wire.DVCSuspect == 0", scenario},
}
