package segment

import (
	"errors"
	"fmt"
)

// ErrTrimmed is a plan that went out of date: a trim or purge took its files, or its index turned out
// to be false and was rebuilt. Plan again on the current view.
var ErrTrimmed = errors.New("segment: trimmed while reading")

// Damage says that bytes which must be there are missing or do not verify. The partition is
// fenced: its caller answers an error, never an empty success, and its files stay as they are.
type Damage struct {
	Path    string // of the segment file
	Segment uint64 // base offset
	Pos     int64  // first byte position in doubt
	Reason  string
	Err     error // cause, may be nil
}

func (d *Damage) Error() string {
	s := fmt.Sprintf("segment %s damaged at byte %d: %s", d.Path, d.Pos, d.Reason)
	if d.Err != nil {
		s += ": " + d.Err.Error()
	}
	return s
}

func (d *Damage) Unwrap() error { return d.Err }
