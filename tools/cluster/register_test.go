//go:build linux

package cluster

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// checkOffsets decides whether stores and reads of a consumer's offset are those of one register. In general that
// question is exponential; here no offset is stored twice, and it is not (Gibbons and Korach, Testing Shared
// Memories). A store and the reads that saw it stand next to each other in any order that explains all of them. So
// from the first of them that ended until the last that began nobody else's are possible: such a zone must not meet
// that of another offset. Those that were all under way at one moment have no zone of that kind; they only need
// a moment of all theirs outside of the others' zones.
func checkOffsets(events []*event, node int, calm string) *violation {
	broken := func(format string, args ...any) *violation {
		return &violation{text: fmt.Sprintf(format, args...), model: offsetModel, history: operations(events, node, calm)}
	}
	seen := map[uint64]*zone{0: {end: math.MinInt64, begin: math.MinInt64}} // 0: nothing was stored
	for _, e := range events {
		if from, to, ok := interval(e, node, calm); ok && e.Kind == storeKind {
			if seen[e.Value] != nil {
				return broken("offset %d is stored twice: the check knows no answer", e.Value)
			}
			seen[e.Value] = &zone{offset: e.Value, stored: from, end: to, begin: from, first: e, last: e}
		}
	}
	for _, e := range events {
		from, to, ok := interval(e, node, calm)
		if !ok || e.Kind != offsetKind {
			continue
		}
		c := seen[e.Offset]
		if c == nil || c.first != nil && to < c.stored {
			return broken("offset %d was not stored when it was read: %s", e.Offset, e)
		}
		c.add(e, from, to)
	}
	var zones, moments []*zone
	for _, c := range seen {
		switch {
		case c.end < c.begin:
			zones = append(zones, c)
		case c.reads > 0 || c.end < forever:
			moments = append(moments, c)
		}
	}
	slices.SortFunc(zones, func(a, b *zone) int { return cmp.Compare(a.end, b.end) })
	for i := 1; i < len(zones); i++ {
		if a, b := zones[i-1], zones[i]; b.end < a.begin {
			return broken("offsets %d and %d take turns:\n\t%s\n\t%s\n\t%s\n\t%s", a.offset, b.offset, a.first, b.first, a.last, b.last)
		}
	}
	for _, m := range moments {
		i, _ := slices.BinarySearchFunc(zones, m.begin, func(z *zone, t int64) int { return cmp.Compare(z.end, t) })
		for _, z := range zones[max(0, i-1):min(len(zones), i)] {
			if z.end < m.begin && m.end < z.begin {
				return broken("offset %d is there while %d is before and after:\n\t%s\n\t%s\n\t%s", m.offset, z.offset, z.first, m.first, z.last)
			}
		}
	}
	return nil
}

// zone is a store and the reads that saw what it stored.
type zone struct {
	offset      uint64
	stored      int64 // begin of the store
	end, begin  int64 // when the first of them ended, and the last began
	first, last *event
	reads       int
}

func (c *zone) add(e *event, from, to int64) {
	c.reads++
	if c.first == nil || to < c.end {
		c.first = e
	}
	if c.last == nil || from > c.begin {
		c.last = e
	}
	c.end, c.begin = min(c.end, to), max(c.begin, from)
}
