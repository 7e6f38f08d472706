package segment

// State is what a checkpoint keeps of a log. It counts committed bytes only.
type State struct {
	Generation  uint64
	Start, Next uint64
	Time        uint64
	Segments    []SegmentState
}

type SegmentState struct {
	Base, Next          uint64
	Length, Last        int64 // bytes; position of the last batch
	FirstTime, LastTime uint64
	Hash                uint64 // XXH3 of the file, 0 while unknown
}

func (s *State) Append(dst []byte) []byte { return dst }
func DecodeState(b []byte) (State, error) { return State{}, nil }

// Checkpoint captures the log at its commit point. Run (any goroutine) writes and syncs every byte
// State counts; only after it returned nil may State enter a checkpoint. Then Checkpointed on the loop.
func (l *Log) Checkpoint() *Checkpoint { return nil }

type Checkpoint struct{ State State }

func (c *Checkpoint) Run() error { return nil }

func (l *Log) Checkpointed(c *Checkpoint, err error) {}
