package frontdoor

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// floors remember how far each partition was shown through this front-door: what was acknowledged to a writer
// or read by somebody. Reads carry it, and a replica below it refuses them, so that nobody who stays with one
// front-door sees a partition go back, whoever believes to lead it (design-arguments.md 14).
//
// What was shown before a purge says nothing of what comes behind it, except who led.
//
// A partition that was not shown for floorFor is forgotten: a deposed primary has long stepped down then. So
// idle ones cost nothing, and there are never more than twice maxFloors.
type floors struct {
	mu     sync.Mutex
	recent map[uint64]floor // by group
	before map[uint64]floor // shown in the turn before
	turned time.Time        // when recent began
}

type floor struct {
	wire.Floor
	purges uint64 // before Next was shown
}

const (
	floorFor  = 30 * time.Second
	maxFloors = 1 << 16
)

func newFloors() *floors { return &floors{recent: map[uint64]floor{}} }

// show notes that a group was shown up to what, by a call that was resolved when it had been purged so often.
func (f *floors) show(now time.Time, group, purges uint64, what wire.Floor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := floor{what, purges}
	known := f.find(now, group)
	if known.purges > purges {
		next.Next, next.purges = 0, known.purges
	}
	if known.purges < purges {
		known.Next, known.purges = 0, purges
	}
	if next.Below(known.Floor) {
		next = known
	}
	if len(f.recent) >= maxFloors {
		f.turn(now)
	}
	f.recent[group] = next
}

// of is what was shown of a group that has been purged so often.
func (f *floors) of(now time.Time, group, purges uint64) wire.Floor {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.find(now, group)
	if known.purges != purges {
		known.Next = 0
	}
	return known.Floor
}

func (f *floors) find(now time.Time, group uint64) floor {
	switch age := now.Sub(f.turned); {
	case age >= 2*floorFor:
		f.turn(now)
		f.before = nil
	case age >= floorFor:
		f.turn(now)
	}
	if known, ok := f.recent[group]; ok {
		return known
	}
	return f.before[group]
}

func (f *floors) turn(now time.Time) {
	f.recent, f.before, f.turned = map[uint64]floor{}, f.recent, now
}

// readPartition is callPartition for a read: it carries how far the partition was shown.
func (s *Session) readPartition(group, purges, op uint64) {
	s.callPartition(group, purges, op)
	if f := s.core.floors; f != nil {
		s.call.Floor = f.of(s.now, group, purges)
	}
}

// shown notes what the answer of a partition's primary shows, before the client has it. next is the offset
// behind the newest message in it.
func (s *Session) shown(next uint64) {
	if f := s.core.floors; f != nil {
		f.show(s.now, s.call.Group, s.purges, wire.Floor{View: s.call.View, Next: next})
	}
}

// confirmedNext is the offset behind a batch of so many messages that was sent: the answer is a count u32, three
// u32 that name the partition, and the base offset u64. Without one, nothing is known of it.
func confirmedNext(b []byte, messages uint32) uint64 {
	if len(b) < 24 {
		return 0
	}
	return binary.LittleEndian.Uint64(b[16:]) + uint64(messages)
}

// polledNext is the offset behind the current one of a poll's answer: partition u32, current offset u64,
// messages u32. An empty log and one with a single message have the same current offset.
func polledNext(b []byte) uint64 {
	if len(b) < 16 {
		return 0
	}
	current, messages := binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint32(b[12:])
	if current == 0 && messages == 0 {
		return 0
	}
	return current + 1
}
