package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// Bounds of what waits above the head, per group.
const (
	windowOps   = wire.MaxSuffix
	windowBytes = wire.MaxFrameSize
)

// window holds prepares that arrived before the op below them. Ops head+2..head+windowOps fit. It has
// no memory while it is empty.
type window struct {
	slots []early // op modulo windowOps; header.Op 0 is free
	count int
	bytes uint64
}

type early struct {
	header wire.PrepareHeader
	body   Body
}

// put keeps a prepare; false: there is one already, or no room.
func (w *window) put(h *wire.PrepareHeader, body Body) bool {
	if w.count > 0 && w.bytes+uint64(h.Size) > windowBytes {
		return false
	}
	if w.slots == nil {
		w.slots = make([]early, windowOps)
	}
	s := &w.slots[h.Op%windowOps]
	if s.header.Op != 0 {
		return false
	}
	*s = early{header: *h, body: body}
	w.count++
	w.bytes += uint64(h.Size)
	return true
}

// take removes the prepare at op; ok is false when there is none.
func (w *window) take(op uint64) (e early, ok bool) {
	if w.count == 0 || w.slots[op%windowOps].header.Op != op {
		return e, false
	}
	s := &w.slots[op%windowOps]
	e = *s
	s.header.Op = 0
	w.count--
	w.bytes -= uint64(e.header.Size)
	if w.count == 0 {
		*w = window{}
	}
	return e, true
}

// lowest returns the lowest op above head that waits, 0 when none does.
func (w *window) lowest(head uint64) uint64 {
	if w.count == 0 {
		return 0
	}
	for op := head + 1; op <= head+windowOps; op++ {
		if w.slots[op%windowOps].header.Op == op {
			return op
		}
	}
	return 0
}

// drop empties the window: the bodies of ops up to op, or of all with ^0, are not needed any more.
func (w *window) drop(upTo uint64, out *Output) {
	for i := range w.slots {
		s := &w.slots[i]
		if s.header.Op == 0 || s.header.Op > upTo {
			continue
		}
		out.Drop = append(out.Drop, s.body)
		w.count--
		w.bytes -= uint64(s.header.Size)
		s.header.Op = 0
	}
	if w.count == 0 {
		*w = window{}
	}
}
