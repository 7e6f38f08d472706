package segment

// Kind is a polling strategy, numbered as on the wire; next (5) is resolved to Offset by the caller.
type Kind uint8

const (
	Offset    Kind = 1
	Timestamp Kind = 2
	First     Kind = 3
	Last      Kind = 4
)

type Query struct {
	Kind  Kind
	Value uint64 // offset, or timestamp in microseconds
	Count uint32 // messages
}

// Outcome of Plan.
type Outcome uint8

const (
	Empty Outcome = iota // nothing to read
	Ready
	Cold // Plan.Resolve should run on the read pool before Size is asked
)

// View is an immutable committed prefix of the log. Any goroutine.
type View struct{}

func (v *View) Generation() uint64 { return 0 }
func (v *View) Start() uint64      { return 0 } // first retained offset
func (v *View) Next() uint64       { return 0 } // offset behind the last committed message
func (v *View) Current() uint64    { return 0 } // highest committed offset, 0 when empty

// Plan finds the range q selects: no I/O, no allocation. maxBytes caps the reply (0: 8 MiB), at least one batch.
func (v *View) Plan(q Query, maxBytes int) (Plan, Outcome) { return Plan{}, Empty }

type Plan struct{}

// Resolve loads the indexes a Cold plan needs so that Size is tight. Read does it itself otherwise.
func (p *Plan) Resolve() error { return nil }

// Size is how many bytes Read needs at dst.
func (p *Plan) Size() int { return 0 }

// Read fills dst with whole batches, edge batches sliced and re-sealed, and returns the bytes used. dst must have Size bytes.
// Errors: *Damage (fence the partition), ErrTrimmed (plan again on the current view), I/O.
func (p *Plan) Read(dst []byte) (int, error) { return 0, nil }

// Messages, FirstOffset and LastOffset describe what Read returned; offsets are meaningful if Messages > 0.
func (p *Plan) Messages() uint32    { return 0 }
func (p *Plan) FirstOffset() uint64 { return 0 }
func (p *Plan) LastOffset() uint64  { return 0 }
