package segment

import (
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/zeebo/xxh3"
)

func TestScrub(t *testing.T) {
	r := newRuin(t, vfs.NewMem(1))
	l, _, err := Open(r.fs, "p/1", r.opt, r.state)
	if err != nil {
		t.Fatal(err)
	}
	all := func(int) bool { return true }
	after := ^uint64(0)
	for range len(r.logs) - 1 {
		s := l.ScrubPlan(after)
		if err := s.Run(make([]byte, 1), all); err != nil {
			t.Fatal(err)
		}
		l.Scrubbed(s, nil)
		after = s.Last()
	}
	st := l.Checkpoint().State
	for i, name := range r.logs[:len(r.logs)-1] {
		if want := xxh3.Hash(r.files[name]); st.Segments[i].Hash != want {
			t.Errorf("%s: hash %x, want %x", name, st.Segments[i].Hash, want)
		}
	}
	if s := l.ScrubPlan(after); s.Last() != 0 {
		t.Errorf("the round does not start again: %d", s.Last())
	}

	bad := append([]byte(nil), r.files[r.logs[1]]...)
	bad[len(bad)-1] ^= 1
	writeFile(t, r.fs, r.logs[1], bad)
	var d *Damage
	if err := l.ScrubPlan(0).Run(nil, all); !errors.As(err, &d) || d.Path != r.logs[1] {
		t.Errorf("flipped bit: %v", err)
	}
	steps := 0
	if err := l.ScrubPlan(0).Run(nil, func(int) bool { steps++; return steps < 2 }); err != nil || steps != 2 {
		t.Errorf("stopped scrub: %v after %d steps", err, steps)
	}
}
