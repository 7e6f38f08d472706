package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
)

// systems are the implementations; each test of the contract runs on all of them.
func systems(t *testing.T, f func(t *testing.T, sys FS)) {
	t.Run("os", func(t *testing.T) { f(t, NewOS(t.TempDir())) })
	t.Run("mem", func(t *testing.T) { f(t, NewMem(1)) })
	t.Run("mount", func(t *testing.T) { f(t, NewMem(1).Mount()) })
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, f File) []byte {
	t.Helper()
	size := must[int64](t)(f.Size())
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); int64(n) != size {
		t.Fatalf("read %d of %d: %v", n, size, err)
	}
	return b
}

func TestNames(t *testing.T) {
	systems(t, func(t *testing.T, sys FS) {
		if _, err := sys.Open("a"); !IsNotExist(err) {
			t.Fatal(err)
		}
		ok(t, sys.MkdirAll("d/e"))
		ok(t, sys.MkdirAll("d/e"))
		f := must[File](t)(sys.Create("d/e/b"))
		if _, err := sys.Create("d/e/b"); !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		must[int](t)(f.WriteAt([]byte("hello"), 0))
		ok(t, f.Close())
		must[File](t)(sys.Create("d/e/a")).Close()
		list := must[[]Entry](t)(sys.ReadDir("d/e"))
		if len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" || list[1].Size != 5 || list[1].Dir {
			t.Fatalf("%+v", list)
		}
		if list = must[[]Entry](t)(sys.ReadDir("d")); len(list) != 1 || !list[0].Dir {
			t.Fatalf("%+v", list)
		}
		before := must[Entry](t)(sys.Stat("d/e/b"))
		ok(t, sys.Rename("d/e/b", "d/c"))
		after := must[Entry](t)(sys.Stat("d/c"))
		if after.Name != "c" || after.Size != 5 || before.Inode != after.Inode || before.BirthTime != after.BirthTime {
			t.Fatalf("%+v, then %+v", before, after)
		}
		ok(t, sys.Rename("d/e/a", "d/c")) // over an existing file
		if e := must[Entry](t)(sys.Stat("d/c")); e.Size != 0 {
			t.Fatalf("%+v", e)
		}
		if err := sys.Remove("d/e/a"); !IsNotExist(err) {
			t.Fatal(err)
		}
		ok(t, sys.Remove("d/c"))
		must[File](t)(sys.Create("d/e/x")).Close()
		if err := sys.Remove("d"); err == nil {
			t.Fatal("removed a full directory")
		}
		ok(t, sys.SyncDir("d"))
		ok(t, sys.RemoveAll("d"))
		ok(t, sys.RemoveAll("d"))
		if _, err := sys.Stat("d"); !IsNotExist(err) {
			t.Fatal(err)
		}
		total, free, err := sys.Space()
		if err != nil || total == 0 || free > total {
			t.Fatal(total, free, err)
		}
	})
}

func TestNamesOutside(t *testing.T) {
	sys := NewOS(t.TempDir())
	for _, name := range []string{"../x", "/etc/passwd", "a/../../x"} {
		if _, err := sys.Create(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFile(t *testing.T) {
	systems(t, func(t *testing.T, sys FS) {
		f := must[File](t)(sys.Create("f"))
		must[int](t)(f.WriteAt([]byte("world"), 6))
		must[int](t)(f.WriteAt([]byte("hello "), 0))
		if b := content(t, f); string(b) != "hello world" {
			t.Fatalf("%q", b)
		}
		b := make([]byte, 20)
		if n, err := f.ReadAt(b, 6); n != 5 || err != io.EOF {
			t.Fatal(n, err)
		}
		if n, err := f.ReadAt(b, 60); n != 0 || err != io.EOF {
			t.Fatal(n, err)
		}
		ok(t, f.Truncate(5))
		ok(t, f.Allocate(10_000))
		want := append([]byte("hello"), make([]byte, 9_995)...)
		if !bytes.Equal(content(t, f), want) {
			t.Fatal("allocated bytes are not zero")
		}
		ok(t, f.Allocate(100))
		if n := must[int64](t)(f.Size()); n != 10_000 {
			t.Fatal(n)
		}
		ok(t, f.Truncate(3))
		ok(t, f.Truncate(8))
		if b := content(t, f); string(b) != "hel\x00\x00\x00\x00\x00" {
			t.Fatalf("%q", b)
		}
		ok(t, f.Sync())
		ok(t, f.Close())
		if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrClosed) {
			t.Fatal(err)
		}
	})
}

// TestWriteVec writes more buffers than one system call takes, empty ones among them.
func TestWriteVec(t *testing.T) {
	systems(t, func(t *testing.T, sys FS) {
		f := must[File](t)(sys.Create("f"))
		var bufs [][]byte
		var want []byte
		for i := range 2500 {
			b := bytes.Repeat([]byte{byte(i)}, i%7)
			bufs = append(bufs, b)
			want = append(want, b...)
		}
		n := must[int64](t)(f.WriteVec(bufs, 100))
		if n != int64(len(want)) || !bytes.Equal(content(t, f)[100:], want) {
			t.Fatalf("wrote %d of %d", n, len(want))
		}
		if n, err := f.WriteVec(nil, 0); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
}

func TestLock(t *testing.T) {
	systems(t, func(t *testing.T, sys FS) {
		l := must[File](t)(sys.Lock("lock"))
		if _, err := sys.Lock("lock"); !errors.Is(err, ErrLocked) {
			t.Fatal(err)
		}
		ok(t, l.Close())
		ok(t, must[File](t)(sys.Lock("lock")).Close())
	})
}

func TestBootIDIsStable(t *testing.T) {
	dir := t.TempDir()
	if a, b := NewOS(dir).BootID(), NewOS(dir+"/not/there/yet").BootID(); a == "" || a != b {
		t.Fatalf("%q, then %q", a, b)
	}
}

func TestWriteVecAllocatesNothing(t *testing.T) {
	f := must[File](t)(NewOS(t.TempDir()).Create("f"))
	bufs := make([][]byte, 40)
	b := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		for i := range bufs {
			bufs[i] = b
		}
		if _, err := f.WriteVec(bufs, 0); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkWriteVec(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, err := NewOS(b.TempDir()).Create("f")
			if err != nil {
				b.Fatal(err)
			}
			bufs, piece := make([][]byte, n), make([]byte, 512)
			for b.Loop() {
				for i := range bufs {
					bufs[i] = piece
				}
				if _, err := f.WriteVec(bufs, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A paced sync covers files of less than a step, of several and of a broken one, and reports errors as Sync does.
func TestSyncPaced(t *testing.T) {
	for _, fs := range []FS{NewOS(t.TempDir()), NewMem(1)} {
		f, err := fs.Create("f")
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{0, 1, 5<<20 + 3} {
			if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
				t.Fatal(err)
			}
			if err := SyncPaced(f); err != nil {
				t.Errorf("%T, %d bytes: %v", f, size, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := SyncPaced(f); err == nil {
			t.Errorf("%T: no error for a closed file", f)
		}
	}
}
