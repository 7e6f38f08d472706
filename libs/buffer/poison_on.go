//go:build poison

package buffer

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"
)

const (
	poison      = true
	poisonByte  = 0xDB
	parkedCount = 1000
	parkedSize  = 256 << 10 // larger buffers are poisoned and left to the collector
)

var (
	frozenSeed  = maphash.MakeSeed()
	poisonBlock = bytes.Repeat([]byte{poisonByte}, 4<<10)
)

// poisonMark is what a poison build knows of one life of a buffer. A Frame lives once: the buffer
// comes back under a new Frame, so a stale handle is always recognised.
type poisonMark struct {
	dead   atomic.Bool
	frozen atomic.Bool
	sum    atomic.Uint64
}

// parking delays the reuse of released buffers, so that a late write through a stale slice meets
// poison instead of another frame's bytes.
type parking struct {
	ring [parkedCount][]byte
	next int
}

func (f *Frame) checkLive(what string) {
	if f.mark.dead.Load() {
		panic("buffer: " + what + " after release")
	}
}

func (f *Frame) checkFrozen(what string) {
	if f.mark.frozen.Load() && maphash.Bytes(frozenSeed, f.data[:f.size]) != f.mark.sum.Load() {
		panic("buffer: frozen bytes were changed, seen by " + what)
	}
}

func (f *Frame) freeze() {
	f.mark.sum.Store(maphash.Bytes(frozenSeed, f.data[:f.size]))
	f.mark.frozen.Store(true)
}

func (f *Frame) thaw() { f.mark.frozen.Store(false) }

// park poisons f's buffer and puts it aside; it returns a fresh frame over the buffer that has
// been aside longest, nil as long as the parking is not full. p.mu is held.
func (p *Pool) park(f *Frame) *Frame {
	f.mark.dead.Store(true)
	for i := 0; i < len(f.data); i += len(poisonBlock) {
		copy(f.data[i:], poisonBlock)
	}
	if len(f.data) > parkedSize {
		return nil
	}
	slot := &p.parked.ring[p.parked.next]
	p.parked.next = (p.parked.next + 1) % parkedCount
	old := *slot
	*slot = f.data
	if old == nil {
		return nil
	}
	for i := 0; i < len(old); i += len(poisonBlock) {
		if part := old[i:min(i+len(poisonBlock), len(old))]; !bytes.Equal(part, poisonBlock[:len(part)]) {
			panic("buffer: bytes were written after release")
		}
	}
	return p.newFrame(old)
}
