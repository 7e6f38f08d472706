package simulator

import "fmt"

// Fault is one kind of trouble. Each can be switched off alone.
type Fault uint8

// Faults that strike single frames come first; their rate is a probability. The rates of the others
// are occurrences per second of the whole cluster.
const (
	Loss      Fault = iota // the frame is gone
	Duplicate              // it arrives twice
	Reorder                // it overtakes or is overtaken
	Replay                 // a copy arrives much later
	Corrupt                // one bit is flipped
	Misroute               // it reaches another group of the node

	Reset       // a link loses what is on its way
	Cut         // a link carries nothing in one direction
	Partition   // groups of nodes are cut from each other
	Kill        // kill -9 of a node
	KillAll     // of all nodes
	PowerCut    // a node loses what it had not synced
	PowerCutAll // all nodes at once
	CrashLoop   // a node is killed again while it recovers
	Pause       // a process stops for a while
	SlowDisk    // every disk operation of a node takes long
	WriteError  // one round of writes fails
	FullDisk    // all writes fail for a while
	SyncError   // a sync fails: the process ends
	Damage      // an entry on disk is unreadable at the next start
	Wipe        // a node comes back without its disk
	ClockJump   // the wall clock of a node moves
	ClockSkew   // clocks run at different speeds
	HandOver    // a node is asked to lead no longer
	Trim        // old ops leave a log: peers need a state transfer
	Relocate    // a partition moves to other nodes

	faultCount
)

const frameFaults = Reset // faults below it strike frames

// faultKind is how a fault is drawn: the odds that a seed has it at all, and its rate then.
type faultKind struct {
	name      string
	odds      float64
	low, high float64
	profiles  string // letters of the profiles that have it: s, l, p
}

var faultKinds = [faultCount]faultKind{
	Loss:        {"loss", 0.6, 0.001, 0.15, "slp"},
	Duplicate:   {"duplicate", 0.5, 0.001, 0.1, "slp"},
	Reorder:     {"reorder", 0.5, 0.01, 0.3, "slp"},
	Replay:      {"replay", 0.5, 0.001, 0.05, "slp"},
	Corrupt:     {"corrupt", 0.4, 0.0005, 0.02, "slp"},
	Misroute:    {"misroute", 0.3, 0.0005, 0.01, "sl"},
	Reset:       {"reset", 0.5, 0.2, 4, "slp"},
	Cut:         {"cut", 0.5, 0.1, 1.5, "slp"},
	Partition:   {"partition", 0.5, 0.05, 0.6, "slp"},
	Kill:        {"kill", 0.7, 0.1, 1.5, "slp"},
	KillAll:     {"kill-all", 0.2, 0.02, 0.2, "slp"},
	PowerCut:    {"power-cut", 0.5, 0.05, 0.6, "sp"},
	PowerCutAll: {"power-cut-all", 0.5, 0.05, 0.3, "p"},
	CrashLoop:   {"crash-loop", 0.3, 0.05, 0.4, "slp"},
	Pause:       {"pause", 0.4, 0.05, 0.6, "slp"},
	SlowDisk:    {"slow-disk", 0.4, 0.05, 0.6, "slp"},
	WriteError:  {"write-error", 0.3, 0.05, 0.5, "sl"},
	FullDisk:    {"full-disk", 0.2, 0.05, 0.3, "sl"},
	SyncError:   {"sync-error", 0.3, 0.05, 0.6, "sl"},
	Damage:      {"damage", 0.3, 0.1, 1.5, "sl"},
	Wipe:        {"wipe", 0.2, 0.1, 0.5, "sl"},
	ClockJump:   {"clock-jump", 0.4, 0.05, 0.5, "slp"},
	ClockSkew:   {"clock-skew", 0.4, 0.01, 0.01, "slp"},
	HandOver:    {"hand-over", 0.3, 0.1, 2, "sl"},
	Trim:        {"trim", 0.7, 0.2, 3, "slp"},
	Relocate:    {"move", 0.6, 0.2, 3, "slp"},
}

// String is the name that the command line takes.
func (f Fault) String() string {
	if f < faultCount {
		return faultKinds[f].name
	}
	return "unknown"
}

// ParseFault finds a fault by its name.
func ParseFault(name string) (Fault, error) {
	for f := range faultCount {
		if faultKinds[f].name == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("no fault is named %q", name)
}
