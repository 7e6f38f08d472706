//go:build !poison

package buffer

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestRecycles(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	p := NewPool(1 << 30)
	if n := testing.AllocsPerRun(100, func() {
		f, _ := p.Try(100_000)
		f.Release()
	}); n > 0 {
		t.Fatalf("%v allocations", n)
	}
	for range 20 { // as many are kept as were in use
		var held []*Frame
		for range 12 {
			f, _ := p.Try(4 << 20)
			held = append(held, f)
		}
		for _, f := range held {
			f.Release()
		}
	}
	if n := len(p.free[22-minClassBits]); n != 12 {
		t.Fatalf("%d large buffers are kept", n)
	}
}

// Frames that nobody needs any more go back to the collector, those in use all the time stay.
func TestIdleFramesAreGivenUp(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC() // none runs from here on but by order
	p := NewPool(64 << 20)
	for range 2 {
		out := []*Frame{try(t, p, 8<<20), try(t, p, 8<<20), try(t, p, 8<<20)}
		for _, f := range out {
			f.Release()
		}
		p.trim()
		if kept := p.idle(); kept != 24<<20 {
			t.Fatalf("%d bytes kept after a busy cycle", kept)
		}
	}
	try(t, p, 8<<20).Release()
	p.trim()
	if kept := p.idle(); kept != 8<<20 {
		t.Errorf("%d bytes kept after one with a single frame", kept)
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.GC() {
		kept := p.idle()
		if kept == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes kept after idle cycles of the collector", kept)
		}
	}
}
