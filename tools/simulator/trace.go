package simulator

import (
	"fmt"
	"io"
)

// trace chains a hash over everything that happens and, with a writer, says it in words. The hash is
// the same with and without the words.
type trace struct {
	hash uint64
	out  io.Writer
	now  *uint64
}

// mark adds numbers to the chain.
func (t *trace) mark(numbers ...uint64) {
	for _, n := range numbers {
		t.hash = scramble(t.hash*0x9e3779b97f4a7c15 ^ n)
	}
}

// loud reports whether words are wanted; callers format only then.
func (t *trace) loud() bool { return t.out != nil }

func (t *trace) say(format string, args ...any) {
	if t.out != nil {
		fmt.Fprintf(t.out, "%9.3f  %s\n", float64(*t.now)/millisecond, fmt.Sprintf(format, args...))
	}
}
