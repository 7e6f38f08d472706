//go:build poison

package buffer

import "testing"

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Fatalf("%s goes unnoticed", what)
		}
	}()
	f()
}

func TestPoisonUseAfterRelease(t *testing.T) {
	p := NewPool(1 << 30)
	f := try(t, p, 100)
	b := f.Bytes()
	copy(b, "secret")
	f.Release()
	if b[0] != poisonByte || b[99] != poisonByte {
		t.Fatal("released bytes are still there")
	}
	panics(t, "Bytes after release", func() { f.Bytes() })
	panics(t, "Retain after release", func() { f.Retain() })
	panics(t, "Release after release", func() { f.Release() })
	panics(t, "Freeze after release", func() { f.Freeze() })
	for range 3 * parkedCount { // also once the buffer is somebody else's
		try(t, p, 100).Release()
	}
	panics(t, "Bytes of a recycled buffer", func() { f.Bytes() })
}

func TestPoisonWriteAfterRelease(t *testing.T) {
	p := NewPool(1 << 30)
	f := try(t, p, 100)
	b := f.Bytes()
	f.Release()
	b[50] = 1
	panics(t, "a write after release", func() {
		for range parkedCount + 1 {
			try(t, p, 100).Release()
		}
	})
}

func TestPoisonWriteAfterFreeze(t *testing.T) {
	f := try(t, NewPool(1<<30), 100)
	f.Freeze()
	f.Retain()
	f.Bytes()[7]++
	panics(t, "a write after Freeze, by Retain", func() { f.Retain() })
	panics(t, "a write after Freeze, by Release", func() { f.Release() })
	f.Bytes()[7]--
	f.Release()
	f.Release()
}
