package buffer

import (
	"fmt"
	"sync/atomic"
)

// Frame is one buffer of a [Pool]. It starts with one reference, owned by whoever took it from the
// pool. Methods are safe for concurrent use as far as the owner's own rules for the bytes are.
type Frame struct {
	pool  *Pool
	data  []byte // full capacity of the size class
	size  int
	refs  atomic.Int32
	lease *lease
	mark  poisonMark
}

// lease outlives a collected Frame: it is how the budget of a frame nobody released comes back.
type lease struct {
	bytes int64
	out   atomic.Bool // the bytes are taken from the budget
}

// Bytes is the frame's content. The slice must not be used after the caller's reference is gone.
func (f *Frame) Bytes() []byte {
	if poison {
		f.checkLive("Bytes")
	}
	return f.data[:f.size]
}

// Len is the length of Bytes.
func (f *Frame) Len() int { return f.size }

// Cap is the largest length Resize accepts.
func (f *Frame) Cap() int { return len(f.data) }

// Resize sets the length of Bytes, keeping what is there; grown bytes hold rubbish. It panics
// beyond Cap. Only the sole owner may resize.
func (f *Frame) Resize(n int) {
	if poison {
		f.checkLive("Resize")
		f.thaw()
	}
	if n < 0 || n > len(f.data) {
		panic(fmt.Sprintf("buffer: resize to %d of %d", n, len(f.data)))
	}
	f.size = n
}

// Freeze declares that the bytes do not change any more. Poison builds verify that at every later
// Retain and Release.
func (f *Frame) Freeze() {
	if poison {
		f.checkLive("Freeze")
		f.freeze()
	}
}

// Retain adds a reference; its owner must call Release.
func (f *Frame) Retain() {
	if poison {
		f.checkLive("Retain")
		f.checkFrozen("Retain")
	}
	if f.refs.Add(1) <= 1 {
		panic("buffer: Retain of a released frame")
	}
}

// Release gives one reference back; the last one returns the buffer to its pool.
func (f *Frame) Release() {
	if poison {
		f.checkLive("Release")
		f.checkFrozen("Release")
	}
	switch n := f.refs.Add(-1); {
	case n == 0:
		f.pool.put(f)
	case n < 0:
		panic("buffer: Release of a released frame")
	}
}
