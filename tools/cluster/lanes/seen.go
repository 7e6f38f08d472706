package lanes

import (
	"fmt"
	"slices"
	"time"
)

// Span is a window of time in which lanes are looked at.
type Span struct{ From, To time.Time }

// Seen is what the clients of one kind saw in a span.
type Seen struct {
	Count    int
	Gap      time.Duration // longest time in which a lane had no answer
	P50, P99 time.Duration // from when a request was due to its answer
	Errors   int           // answers nobody wants; over all the time, not in the span alone
	Word     string        // the last of them
	Breaks   int           // requests without an answer in the span, because their connection ended
}

// Look sums up the lanes of a kind. A gap that began before the span counts as far as it reaches into it.
func (l *Lanes) Look(kind string, s Span) (sum Seen) {
	var waits []time.Duration
	for _, one := range l.all {
		if one.kind != kind {
			continue
		}
		waits = append(waits, one.waits(s)...)
		sum.Gap = max(sum.Gap, one.gap(s))
		sum.Errors += len(one.errors)
		for _, f := range one.errors {
			sum.Word = f.err.Error()
		}
		for _, at := range one.breaks {
			if s.holds(at) {
				sum.Breaks++
			}
		}
	}
	sum.Count = len(waits)
	slices.Sort(waits)
	if n := len(waits); n > 0 {
		sum.P50, sum.P99 = waits[n/2], waits[min(n-1, n*99/100)]
	}
	return sum
}

func (s Span) holds(at time.Time) bool { return at.After(s.From) && at.Before(s.To) }

// waits are the times the answers to requests that were due in the span took.
func (l *lane) waits(s Span) (all []time.Duration) {
	for _, a := range l.acks {
		if s.holds(a.due) {
			all = append(all, a.done.Sub(a.due))
		}
	}
	return all
}

// gap is the longest time in the span without an answer.
func (l *lane) gap(s Span) (longest time.Duration) {
	last := s.From
	for _, a := range l.acks {
		if a.done.Before(s.From) {
			continue
		}
		end := earlier(a.done, s.To)
		longest = max(longest, end.Sub(last))
		last = end
	}
	return max(longest, s.To.Sub(last))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Kinds are those of the lanes, in the order in which they were made.
func (l *Lanes) Kinds() (all []string) {
	for _, one := range l.all {
		if !slices.Contains(all, one.kind) {
			all = append(all, one.kind)
		}
	}
	return all
}

// Row is a line of the table of a test: for each span the count, and the longest gap, p50 and p99 in
// milliseconds.
func Row(what, kind string, spans ...Seen) string {
	text := fmt.Sprintf("%-26s %-18s", what, kind)
	for _, s := range spans {
		text += fmt.Sprintf(" | %5d %6s %6s %6s", s.Count, millis(s.Gap), millis(s.P50), millis(s.P99))
	}
	return text
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
