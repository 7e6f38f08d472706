package coverage

import "strings"

// known reports whether no campaign has to reach a block: it refuses what correct members and callers
// never say, or an exception names it.
func known(b *Block) bool {
	if strings.Contains(b.Text, "out.fault(") || strings.Contains(b.Text, "out.Fault =") {
		return true
	}
	for _, e := range exceptions {
		if e.text == b.Text {
			return true
		}
	}
	return false
}

// exception is a block that no campaign has to reach, by the first line of it that says something.
type exception struct{ text, why string }

const (
	mixed    = "groups with reference nodes are not simulated"
	small    = "bodies are small here, and no backup falls four windows behind its disk"
	honest   = "correct members never send it"
	disaster = "more disks were lost than the rules allow for: only an operator goes on"
)

var exceptions = []exception{
	{"for op := max(r.acked, r.tail.low) + 1; op < r.held; op++ {", mixed},
	{"r.sendOk(op, out)", mixed},
	{"lowest = h.Op - 1", mixed},
	{"if p == nil {", "what is held and above the commit point has its header"},
	{"case r.tail.head-r.committed >= maxUnapplied:", small},
	{"return false", small},
	{"r.armIfNot(timerRepair, repairInterval)", small},
	{"return false", honest},
	{"return unclear // it would discard a committed op", disaster},
	{"return Outcome{Decision: Deadlocked}", disaster},
	{"return Outcome{Decision: Deadlocked, Op: op}", disaster},
	{"conflict = true", honest},
	{"return Outcome{Decision: Deadlocked}", disaster},
	{"return Outcome{Decision: Deadlocked, Op: op}", disaster},
	{"conflict = true", honest},
	{"return nil, 0, false", disaster},
	{"r.lossy = true", "the operator's word is a scenario of libs/vsr"},
}
