package coverage

import "strings"

// known reports whether no campaign has to reach a block: it refuses what correct members and callers
// never say, or an exception names it.
func known(b *Block) bool {
	if strings.Contains(b.Text, "out.fault(") || strings.Contains(b.Text, "out.Fault =") {
		return true
	}
	for _, e := range exceptions {
		if e.file == b.File && e.text == b.Text {
			return true
		}
	}
	return false
}

// exception is a block that no campaign has to reach, by the first line of it that says something.
type exception struct{ file, text, why string }

const (
	mixed    = "groups with reference nodes are not simulated"
	small    = "bodies are small here, and no backup falls four windows behind its disk"
	honest   = "correct members never send it"
	disaster = "more disks were lost than the rules allow for: only an operator goes on"
)

var exceptions = []exception{
	{"ack.go", "for op := max(r.acked, r.tail.low) + 1; op < r.held; op++ {", mixed},
	{"ack.go", "r.sendOk(op, out)", mixed},
	{"ack.go", "lowest = h.Op - 1", mixed},
	{"ack.go", "if p == nil {", "what is held and above the commit point has its header"},
	{"backup.go", "case r.tail.head-r.committed >= maxUnapplied:", small},
	{"window.go", "return false", small},
	{"repair.go", "r.armIfNot(timerRepair, repairInterval)", small},
	{"suffix.go", "return false", honest},
	{"merge.go", "return unclear // it would discard a committed op", disaster},
	{"merge.go", "return Outcome{Decision: Deadlocked}", disaster},
	{"merge.go", "return Outcome{Decision: Deadlocked, Op: op}", disaster},
	{"merge.go", "conflict = true", honest},
	{"salvage.go", "return Outcome{Decision: Deadlocked}", disaster},
	{"salvage.go", "return Outcome{Decision: Deadlocked, Op: op}", disaster},
	{"salvage.go", "conflict = true", honest},
	{"salvage.go", "return nil, 0, false", disaster},
	{"recovery.go", "r.lossy = true", "the operator's word is a scenario of libs/vsr"},
}
