package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
)

func write(t *testing.T, sys FS, name string, b []byte, sync bool) File {
	t.Helper()
	f := must[File](t)(sys.Create(name))
	must[int](t)(f.WriteAt(b, 0))
	if sync {
		ok(t, f.Sync())
	}
	return f
}

func TestKill(t *testing.T) {
	m := NewMem(1)
	sys := m.Mount()
	boot := m.BootID()
	f := write(t, sys, "a", []byte("kept"), false)
	must[File](t)(sys.Lock("lock"))
	m.Kill()
	for what, err := range map[string]error{
		"write": second(f.WriteAt([]byte("x"), 0)), "sync": f.Sync(), "create": second(sys.Create("b")), "rename": sys.Rename("a", "b"),
	} {
		if !errors.Is(err, ErrDead) {
			t.Errorf("%s of a dead process: %v", what, err)
		}
	}
	if got := m.Read("a"); string(got) != "kept" {
		t.Fatalf("%q", got)
	}
	if m.BootID() != boot {
		t.Fatal("boot id changed")
	}
	must[File](t)(m.Mount().Lock("lock"))
}

func second[T any](_ T, err error) error { return err }

// TestPowerCut: what is synced stays, under every seed; what is not is lost under some and kept
// under others, torn under others still.
func TestPowerCut(t *testing.T) {
	old, fresh := bytes.Repeat([]byte{'o'}, 3*blockSize), bytes.Repeat([]byte{'n'}, 3*blockSize)
	seen := map[string]int{}
	for seed := range uint64(300) {
		m := NewMem(seed)
		boot := m.BootID()
		f := write(t, m, "a", old, true)
		ok(t, m.SyncDir(""))
		must[int](t)(f.WriteAt(fresh, 0))
		write(t, m, "b", fresh, true) // never in a synced directory
		m.PowerCut()
		if m.BootID() == boot {
			t.Fatal("boot id stays")
		}
		got := m.Read("a")
		if len(got) != len(old) {
			t.Fatalf("%d bytes", len(got))
		}
		for s := 0; s < len(got); s += sectorSize {
			if c := got[s]; c != 'o' && c != 'n' || !bytes.Equal(got[s:s+sectorSize], bytes.Repeat([]byte{c}, sectorSize)) {
				t.Fatalf("sector at %d is torn", s)
			}
		}
		switch {
		case bytes.Equal(got, old):
			seen["lost"]++
		case bytes.Equal(got, fresh):
			seen["kept"]++
		case got[0] == 'o' && got[len(got)-1] == 'n':
			seen["reordered"]++
		default:
			seen["mixed"]++
		}
		if m.Read("b") == nil {
			seen["name lost"]++
		} else {
			seen["name kept"]++
		}
	}
	for _, k := range []string{"lost", "kept", "reordered", "mixed", "name lost", "name kept"} {
		if seen[k] == 0 {
			t.Errorf("never %s: %v", k, seen)
		}
	}
}

// TestPowerCutRepeats: the same seed and calls give the same disk.
func TestPowerCutRepeats(t *testing.T) {
	run := func() string {
		m := NewMem(9)
		for i := range 20 {
			f := write(t, m, fmt.Sprintf("f%d", i), bytes.Repeat([]byte{byte(i)}, i*1000), i%3 == 0)
			f.Close()
			if i%4 == 0 {
				ok(t, m.SyncDir(""))
			}
		}
		m.PowerCut()
		s := ""
		for _, name := range m.Files() {
			s += fmt.Sprintf("%s %x\n", name, m.Read(name))
		}
		return s
	}
	if first, second := run(), run(); first != second {
		t.Fatal("not deterministic")
	}
}

// TestPowerCutOfRename: the name holds the old file or the new one, never none.
func TestPowerCutOfRename(t *testing.T) {
	for seed := range uint64(100) {
		m := NewMem(seed)
		write(t, m, "a", []byte("old"), true).Close()
		ok(t, m.SyncDir(""))
		write(t, m, "a.tmp", []byte("new"), true).Close()
		ok(t, m.Rename("a.tmp", "a"))
		m.PowerCut()
		if got := string(m.Read("a")); got != "old" && got != "new" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

func TestCrashAt(t *testing.T) {
	work := func(m *Mem) (done int) {
		sys := m.Mount()
		f, err := sys.Create("a")
		if err != nil {
			return 0
		}
		for i := range 5 {
			if _, err := f.WriteAt([]byte{byte(i)}, int64(i)); err != nil {
				return i
			}
			if err := f.Sync(); err != nil {
				return i
			}
		}
		return 5
	}
	whole := NewMem(1)
	work(whole)
	if n := whole.Calls(); n != 11 {
		t.Fatalf("%d calls", n)
	}
	for k := 1; k <= 11; k++ {
		for _, power := range []bool{false, true} {
			m := NewMem(uint64(k))
			m.CrashAt(k, power)
			done := work(m)
			if !m.Crashed() || done != (k-2)/2 && k > 1 {
				t.Fatalf("call %d: crashed %v after %d", k, m.Crashed(), done)
			}
			m.Restart()
			if m.Crashed() {
				t.Fatal("still crashed")
			}
			must[[]Entry](t)(m.ReadDir(""))
		}
	}
}

func TestFaults(t *testing.T) {
	m := NewMem(1)
	f := write(t, m, "a", bytes.Repeat([]byte{'o'}, 100), true)
	ok(t, m.SyncDir(""))
	inject := func(op Op, fault Fault) {
		m.SetFault(func(c Call) Fault {
			if c.Op == op && c.Name == "a" {
				return fault
			}
			return Fault{}
		})
	}
	inject(OpWrite, Fault{Err: syscall.EIO, Keep: 3})
	if _, err := f.WriteAt([]byte("12345"), 0); !errors.Is(err, syscall.EIO) || string(m.Read("a")[:5]) != "123oo" {
		t.Fatalf("%v %q", err, m.Read("a")[:5])
	}
	inject(OpWrite, Fault{Short: true, Keep: 1})
	if n, err := f.WriteAt([]byte("abc"), 10); n != 3 || err != nil || string(m.Read("a")[10:13]) != "aoo" {
		t.Fatal(n, err)
	}
	inject(OpWrite, Fault{Shift: 8})
	if n, err := f.WriteAt([]byte("abc"), 20); n != 3 || err != nil || string(m.Read("a")[28:31]) != "abc" {
		t.Fatal(n, err)
	}
	inject(OpWrite, Fault{Lost: true})
	if n, err := f.WriteAt([]byte("abc"), 40); n != 3 || err != nil || string(m.Read("a")[40:43]) != "ooo" {
		t.Fatal(n, err)
	}
	inject(OpRead, Fault{Err: syscall.EIO})
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
}

// TestFailedSync: the pages count as clean afterwards, so a later good sync does not store them.
func TestFailedSync(t *testing.T) {
	lost := 0
	for seed := range uint64(40) {
		m := NewMem(seed)
		f := write(t, m, "a", []byte("old"), true)
		ok(t, m.SyncDir(""))
		must[int](t)(f.WriteAt([]byte("new"), 0))
		m.SetFault(func(c Call) Fault {
			if c.Op == OpSync {
				return Fault{Err: syscall.EIO}
			}
			return Fault{}
		})
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		m.SetFault(nil)
		ok(t, f.Sync())
		if string(m.Read("a")) != "new" {
			t.Fatal("the page cache lost it")
		}
		if m.PowerCut(); string(m.Read("a")) == "old" {
			lost++
		}
	}
	if lost < 20 {
		t.Fatalf("lost in %d of 40 runs", lost)
	}
}

func TestCapacity(t *testing.T) {
	m := NewMem(1)
	m.SetCapacity(10 * blockSize)
	f := must[File](t)(m.Create("a"))
	n, err := f.WriteAt(make([]byte, 12*blockSize), 0)
	if n != 10*blockSize || !IsFull(err) {
		t.Fatal(n, err)
	}
	if _, free, _ := m.Space(); free != 0 {
		t.Fatal(free)
	}
	must[int](t)(f.WriteAt(make([]byte, 5*blockSize), blockSize)) // bytes it has already
	g := must[File](t)(m.Create("b"))
	if err := g.Allocate(1); !IsFull(err) {
		t.Fatal(err)
	}
	ok(t, f.Truncate(4*blockSize))
	ok(t, g.Allocate(6*blockSize))
	ok(t, f.Close())
	ok(t, m.Remove("a"))
	ok(t, g.Allocate(10*blockSize))
	if m.Allocated() != 10*blockSize {
		t.Fatal(m.Allocated())
	}
}

func TestCorruptAndClone(t *testing.T) {
	m := NewMem(1)
	write(t, m, "d", []byte("abc"), false)
	c := m.Clone(2)
	if !m.Corrupt("d", func(b []byte) []byte { b[1] ^= 1; return b[:2] }) || m.Corrupt("x", nil) {
		t.Fatal("wrong answer")
	}
	m.PowerCut()
	if got := c.Read("d"); string(got) != "abc" {
		t.Fatalf("%q", got)
	}
	c.PowerCut()
	if got := c.Read("d"); string(got) != "abc" {
		t.Fatalf("a clone is stored: %q", got)
	}
	if !c.Drop("d") || len(c.Files()) != 0 || !slices.Equal(c.Files(), nil) {
		t.Fatal("not dropped")
	}
}
