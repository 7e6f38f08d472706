package simulator

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// Result is what a run found.
type Result struct {
	Options   Options
	Violation *Violation // nil when every rule held
	Hash      uint64     // chain of all events: the same for the same options
	Counts    map[string]uint64
	Steps     uint64 // of all cores
	Frames    uint64
	Answered  uint64 // requests
	Time      uint64 // µs of virtual time
	Leader    uint64 // µs from the healing to a primary in every group; 0 in safety runs
	Settled   uint64 // µs from the healing to rest
}

// Passed reports whether every rule held.
func (r *Result) Passed() bool { return r.Violation == nil }

// String is one line; a failure says how to repeat it.
func (r *Result) String() string {
	if r.Passed() {
		return fmt.Sprintf("seed %d %s: passed, hash %016x, %d steps, %d frames, %d answers in %.1f s, primaries after %.2f s, rest after %.2f s", r.Options.Seed,
			r.Options.Profile, r.Hash, r.Steps, r.Frames, r.Answered, float64(r.Time)/second, float64(r.Leader)/second, float64(r.Settled)/second)
	}
	return fmt.Sprintf("seed %d %s: FAILED %v\n  repeat with: whippet-simulator %v", r.Options.Seed, r.Options.Profile, r.Violation, r.Options)
}

// Run runs one seed. What happens is said on out, which may be nil.
func Run(o Options, out io.Writer) (result Result) {
	w := newWorld(Draw(o), out)
	result = Result{Options: o}
	defer func() {
		switch broken := recover().(type) {
		case nil:
		case *Violation:
			result.Violation = broken
		default:
			result.Violation = &Violation{Rule: "panic", Detail: fmt.Sprintf("%v%s", broken, origin(debug.Stack())), At: w.now}
		}
		if out != nil && result.Violation != nil {
			w.trace.say("%v", result.Violation)
		}
		result.Hash, result.Counts, result.Steps, result.Frames = w.trace.hash, w.counts, w.steps, w.frames
		result.Answered, result.Time, result.Leader, result.Settled = w.answered, w.now, w.leaderTime, w.settleTime
	}()
	w.inject()
	w.runUntil(w.config.Length, nil)
	if o.Profile != Safety {
		w.converge()
	}
	return result
}

// origin picks the frames of a stack that belong to the core or the simulator.
func origin(stack []byte) string {
	var text strings.Builder
	lines := strings.Split(string(stack), "\n")
	for i := 1; i < len(lines); i++ {
		file, line, ok := strings.Cut(strings.TrimSpace(lines[i]), ".go:")
		if ok && (strings.Contains(file, "/libs/") || strings.Contains(file, "/simulator/")) && !strings.HasSuffix(file, "/run") {
			at, _, _ := strings.Cut(line, " ")
			fmt.Fprintf(&text, " < %s.go:%s", file[strings.LastIndexByte(file, '/')+1:], at)
		}
	}
	return text.String()
}
