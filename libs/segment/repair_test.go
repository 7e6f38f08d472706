package segment

import (
	"bytes"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// A damaged file, one that is too short and one that is missing are restored from an equal file; from anything else
// nothing is taken.
func TestRepair(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":         func(b []byte) []byte { return b[:len(b)/3] },
		"empty":       func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuin(t, vfs.NewMem(1))
			l, _, err := Open(r.fs, "p/1", r.opt, r.state)
			if err != nil {
				t.Fatal(err)
			}
			for i, path := range r.logs {
				base, whole := r.state.Segments[i].Base, r.files[path][:r.state.Segments[i].Length]
				writeFile(t, r.fs, path, damage(bytes.Clone(r.files[path])))
				wrong := bytes.Clone(whole)
				wrong[len(wrong)-1] ^= 1
				var d *Damage
				if n, err := l.RepairPlan(base).Run(bytes.NewReader(wrong), int64(len(wrong))); err == nil || errors.As(err, &d) || n != 0 {
					t.Errorf("%s: from wrong bytes: %d, %v", path, n, err)
				}
				if bytes.Equal(readFile(t, r.fs, path), r.files[path]) {
					t.Fatal("something was written from wrong bytes")
				}
				if n, err := l.RepairPlan(base).Run(bytes.NewReader(whole), int64(len(whole))); err != nil || n != int64(len(whole)) {
					t.Errorf("%s: %d, %v", path, n, err)
				}
				if got := readFile(t, r.fs, path); !bytes.Equal(got[:len(whole)], whole) {
					t.Errorf("%s is not as it was", path)
				}
			}
			if l.RepairPlan(1<<40) != nil {
				t.Error("a segment nobody has is repaired")
			}
		})
	}
}

// Another member's file may be shorter: what it has is taken, and no more is claimed.
func TestRepairFromLess(t *testing.T) {
	r := newRuin(t, vfs.NewMem(1))
	l, _, err := Open(r.fs, "p/1", r.opt, r.state)
	if err != nil {
		t.Fatal(err)
	}
	last := len(r.logs) - 1
	st, path := r.state.Segments[last], r.logs[last]
	less := st.Last // the last batch is not there yet
	if less == 0 {
		t.Fatal("one batch alone")
	}
	bad := bytes.Clone(r.files[path])
	bad[0] ^= 1
	writeFile(t, r.fs, path, bad)
	if n, err := l.RepairPlan(st.Base).Run(bytes.NewReader(r.files[path][:less]), less); err != nil || n != less {
		t.Errorf("%d of %d bytes, %v", n, less, err)
	}
	if !bytes.Equal(readFile(t, r.fs, path), r.files[path]) {
		t.Error("not as it was")
	}
	if n, err := l.RepairPlan(st.Base).Run(bytes.NewReader(r.files[path][:less-1]), less-1); err == nil {
		t.Errorf("a batch that is cut is taken: %d bytes", n)
	}
}
