//go:build !poison

package buffer

import "testing"

func TestRecycles(t *testing.T) {
	p := NewPool(1 << 30)
	if n := testing.AllocsPerRun(100, func() {
		f, _ := p.Try(100_000)
		f.Release()
	}); n > 0 {
		t.Fatalf("%v allocations", n)
	}
	for range 20 { // few large buffers are kept
		var held []*Frame
		for range 12 {
			f, _ := p.Try(4 << 20)
			held = append(held, f)
		}
		for _, f := range held {
			f.Release()
		}
	}
	if n := len(p.free[22-minClassBits]); n != keepLarge {
		t.Fatalf("%d large buffers are kept", n)
	}
}
