//go:build linux

package cluster

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// checkLog decides whether sends and polls are those of one append-only log. In general that question is
// exponential; here the offsets say in which order the sends took effect, and it is not. Message n was
// appended at a moment within the interval of its send, not before message n-1, not later than any poll
// ended that saw it, and not before a poll began that read to the end and did not see it. Such moments exist
// exactly when the latest of all lower bounds up to n is never above the upper bound of n.
func checkLog(events []*event, final []uint64, node int, calm string) *violation {
	low, high := make([]int64, len(final)+1), make([]int64, len(final)+1) // of the append of message n
	lowBy, highBy := make([]*event, len(final)+1), make([]*event, len(final)+1)
	for n := range high {
		low[n], high[n] = math.MinInt64, forever
	}
	after := func(n uint64, t int64, e *event) {
		if t > low[n] {
			low[n], lowBy[n] = t, e
		}
	}
	before := func(n uint64, t int64, e *event) {
		if t < high[n] {
			high[n], highBy[n] = t, e
		}
	}
	broken := func(format string, args ...any) *violation {
		return &violation{text: fmt.Sprintf(format, args...), model: logModel, history: drawn(events, final, node, calm)}
	}
	at, twice := places(final)
	if twice != 0 {
		return broken("message %d is in the log twice", twice)
	}
	for _, e := range events {
		if e.Kind == sendKind && e.Result == done && (e.Offset >= uint64(len(final)) || final[e.Offset] != e.Value) {
			return broken("acknowledged, then lost: %s", e)
		}
		from, to, ok := interval(e, node, calm)
		switch {
		case !ok:
		case e.Kind == sendKind:
			offset, is := at[e.Value]
			if is {
				after(offset, from, e)
				before(offset, to, e)
			}
			delete(at, e.Value)
		default:
			if err := prefix(e, final); err != nil {
				return broken("%v: %s", err, e)
			}
			end := min(e.Value+uint64(len(e.Found)), uint64(len(final)))
			if len(e.Found) > 0 {
				before(end-1, to, e)
			}
			if len(e.Found) < e.Count {
				after(end, from, e)
			}
		}
	}
	if len(at) > 0 {
		return broken("messages at offsets nobody sent, as message -> offset: %v", at)
	}
	latest, by := int64(math.MinInt64), (*event)(nil)
	for n := range final {
		if low[n] > latest {
			latest, by = low[n], lowBy[n]
		}
		if latest > high[n] {
			return broken("message %d at offset %d cannot be there both after the begin of\n\t%s\nand before the end of\n\t%s", final[n], n, by, highBy[n])
		}
	}
	return nil
}

// places are the offsets of messages; twice is one that has two.
func places(final []uint64) (at map[uint64]uint64, twice uint64) {
	at = map[uint64]uint64{}
	for offset, message := range final {
		if _, is := at[message]; is {
			return nil, message
		}
		at[message] = uint64(offset)
	}
	return at, 0
}

// prefix says whether a poll found what the log had in the end.
func prefix(e *event, final []uint64) error {
	switch {
	case len(e.Found) == 0:
		return nil
	case e.Offset != e.Value:
		return fmt.Errorf("begins elsewhere")
	case e.Value+uint64(len(e.Found)) > uint64(len(final)):
		return fmt.Errorf("shown, then lost")
	}
	for i, message := range e.Found {
		if offset := e.Value + uint64(i); final[offset] != message {
			return fmt.Errorf("offset %d is message %d in the end", offset, final[offset])
		}
	}
	return nil
}

// logState is a log, by its last message.
type logState struct {
	before  *logState
	next    uint64 // offset of the next message
	message uint64
	hash    uint64 // of all messages
}

// logModel is the same log as porcupine sees it, to draw a history and to check the check.
var logModel = porcupine.Model{
	Init: func() any { return &logState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, e := state.(*logState), input.(*event)
		if e.Kind == sendKind {
			return e.Offset == s.next, &logState{s, s.next + 1, e.Value, s.hash*31 + e.Value}
		}
		end := e.Value + uint64(len(e.Found))
		if len(e.Found) == 0 {
			return s.next <= e.Value, s
		}
		if e.Offset != e.Value || end > s.next || end < s.next && len(e.Found) < e.Count {
			return false, s
		}
		for last := s; last.next > e.Value; last = last.before {
			if last.next <= end && last.message != e.Found[last.next-1-e.Value] {
				return false, s
			}
		}
		return true, s
	},
	Equal: func(a, b any) bool {
		x, y := a.(*logState), b.(*logState)
		return x.next == y.next && x.hash == y.hash
	},
	Hash:              func(state any) uint64 { return state.(*logState).hash },
	DescribeOperation: func(input, _ any) string { return input.(*event).text() },
	DescribeState:     func(state any) string { return fmt.Sprintf("%d messages", state.(*logState).next) },
}

// drawn is the history of a log for porcupine. Sends of which nobody knows what became of them are where the
// log has them in the end, or nowhere.
func drawn(events []*event, final []uint64, node int, calm string) (all []porcupine.Operation) {
	at, _ := places(final)
	for _, e := range events {
		from, to, ok := interval(e, node, calm)
		if !ok {
			continue
		}
		if e.Kind == sendKind && e.Result == unknown {
			offset, is := at[e.Value]
			if !is {
				continue
			}
			found := *e
			found.Offset = offset
			e = &found
		}
		all = append(all, porcupine.Operation{ClientId: e.Client, Input: e, Call: from, Return: to})
	}
	return all
}
