package segment

import (
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// threeSealed is a log of single-message batches of 1000 bytes, two a segment: offsets 0-1, 2-3, 4-5
// sealed at times 10..60, and 6 in the growing segment at 70.
func threeSealed(t *testing.T, fs vfs.FS) *Log {
	t.Helper()
	l, _, err := Open(fs, "p/1", Options{SegmentSize: 1500}, State{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(7) {
		appendSized(l, i, 10*(i+1), 1000)
	}
	l.Publish(7)
	return l
}

func appendSized(l *Log, base, time uint64, size int) {
	l.Append(batchOf(base, time, 0, []message{{payload: make([]byte, size-headerSize-48)}}), 1)
}

func TestTrimPlan(t *testing.T) {
	l := threeSealed(t, vfs.NewMem(1))
	for _, c := range []struct {
		name string
		r    Retention
		upTo uint64
		ok   bool
	}{
		{"nothing asked", Retention{Now: 1000, Barrier: NoBarrier}, 0, false},
		{"expired up to the second", Retention{Now: 140, Expiry: 100, Barrier: NoBarrier}, 3, true},
		{"one microsecond early", Retention{Now: 119, Expiry: 100, Barrier: NoBarrier}, 0, false},
		{"exactly expired", Retention{Now: 120, Expiry: 100, Barrier: NoBarrier}, 1, true},
		{"the growing segment never", Retention{Now: 1 << 40, Expiry: 1, Barrier: NoBarrier}, 5, true},
		{"clock behind the messages", Retention{Now: 5, Expiry: 1, Barrier: NoBarrier}, 0, false},
		{"sealed bytes within the budget", Retention{MaxBytes: 6000, Barrier: NoBarrier}, 0, false},
		{"one byte over", Retention{MaxBytes: 5999, Barrier: NoBarrier}, 1, true},
		{"two segments over", Retention{MaxBytes: 2000, Barrier: NoBarrier}, 3, true},
		{"barrier inside the second", Retention{Now: 1000, Expiry: 1, Barrier: 2}, 1, true},
		{"barrier at its end", Retention{Now: 1000, Expiry: 1, Barrier: 3}, 3, true},
		{"barrier in the first", Retention{MaxBytes: 1, Barrier: 0}, 0, false},
		{"watermark", Retention{HasWatermark: true, Watermark: 4, Barrier: NoBarrier}, 3, true},
		{"watermark 0 of a two-message segment", Retention{HasWatermark: true, Barrier: NoBarrier}, 0, false},
		{"watermark behind a barrier", Retention{HasWatermark: true, Watermark: 5, Barrier: 1}, 1, true},
		{"age first, then size", Retention{Now: 120, Expiry: 100, MaxBytes: 2000, Barrier: NoBarrier}, 3, true},
	} {
		if upTo, ok := l.TrimPlan(c.r); upTo != c.upTo || ok != c.ok {
			t.Errorf("%s: %d %v, want %d %v", c.name, upTo, ok, c.upTo, c.ok)
		}
	}
}

func TestTrimPlanTakesAtMostSixteenSegments(t *testing.T) {
	l, _, err := Open(vfs.NewMem(1), "p/1", Options{SegmentSize: 1}, State{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(40) {
		appendSized(l, i, i+1, 400)
	}
	l.Publish(40)
	if upTo, ok := l.TrimPlan(Retention{Now: 1000, Expiry: 1, Barrier: NoBarrier}); !ok || upTo != 15 {
		t.Errorf("%d %v, want 15", upTo, ok)
	}
	if last, ok := l.Sealed(1000); !ok || last != 39 {
		t.Errorf("a full newest segment is sealed: %d %v, want 39", last, ok)
	}
}

func TestSealed(t *testing.T) {
	l := threeSealed(t, vfs.NewMem(1))
	for count, want := range []int64{-1, 1, 3, 5, 5} {
		last, ok := l.Sealed(count)
		if ok != (want >= 0) || ok && last != uint64(want) {
			t.Errorf("Sealed(%d) = %d %v, want %d", count, last, ok, want)
		}
	}
}

// TestTrimOfEverything: when the newest segment is full it can go too, and offsets go on.
func TestTrimOfEverything(t *testing.T) {
	l := threeSealed(t, vfs.NewMem(1))
	appendSized(l, 7, 80, 1000)
	l.Publish(8)
	if s := l.Stats(); s.Segments != 5 {
		t.Errorf("%d segments, want 4 full ones and the empty one behind", s.Segments)
	}
	l.Trim(7)
	if s := l.Stats(); s.Start != 8 || s.Next != 8 || s.Bytes != 0 || s.Segments != 1 || s.Unflushed != 0 {
		t.Errorf("%+v", s)
	}
	if v := l.View(); v.Current() != 7 {
		t.Errorf("current offset %d, want 7", v.Current())
	}
	if _, o := l.View().Plan(Query{First, 0, 10}, 0); o != Empty {
		t.Errorf("outcome %d, want Empty", o)
	}
	appendSized(l, 8, 90, 1000)
	l.Publish(9)
	p, _ := l.View().Plan(Query{First, 0, 10}, 0)
	dst := make([]byte, p.Size())
	if n, err := p.Read(dst); err != nil || n != 1000 || p.FirstOffset() != 8 {
		t.Errorf("%d bytes from %d, %v", n, p.FirstOffset(), err)
	}
}

// TestRemovedFilesWaitForTheCheckpoint: the journal names batches in a trimmed file until a
// checkpoint counts past them.
func TestRemovedFilesWaitForTheCheckpoint(t *testing.T) {
	fs := vfs.NewMem(1)
	l := threeSealed(t, fs)
	f := l.FlushPlan(0, true)
	if err := f.Run(); err != nil {
		t.Fatal(err)
	}
	l.Flushed(f, nil)
	l.Trim(1)
	if l.Stats().Condemned != 1 {
		t.Fatal("nothing waits for the checkpoint")
	}
	c := l.Checkpoint()
	l.Purge(1) // behind the captured state: must stay back
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	r := l.Checkpointed(c, nil)
	if r == nil {
		t.Fatal("nothing to remove after the checkpoint")
	}
	if err := r.Run(1700000000); err != nil {
		t.Fatal(err)
	}
	got := names(t, fs, "p/1/0000000000")
	if strings.Contains(got, "00000000000000000000.log") || !strings.Contains(got, "00000000000000000002.log") {
		t.Errorf("files left: %s", got)
	}
	if got := names(t, fs, "trash"); !strings.HasPrefix(got, "1700000000-p_1_0000000000_00000000000000000000.log.0") {
		t.Errorf("trash: %s", got)
	}
	c = l.Checkpoint()
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpointed(c, nil).Run(1700000100); err != nil {
		t.Fatal(err)
	}
	if got := names(t, fs, "p/1"); got != "" {
		t.Errorf("the purged life is still there: %s", got)
	}
	if err := EmptyTrash(fs, "trash", 1700000050); err != nil {
		t.Fatal(err)
	}
	if got := names(t, fs, "trash"); got != "1700000100-p_1_0000000000.0" {
		t.Errorf("trash after emptying: %s", got)
	}
}

func TestDiscardKeepsNamesApart(t *testing.T) {
	fs := vfs.NewMem(1)
	for range 2 {
		if err := fs.MkdirAll("p/1/0000000000"); err != nil {
			t.Fatal(err)
		}
		if err := Discard(fs, "p/1", "trash", 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := Discard(fs, "p/1", "trash", 5); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if got := names(t, fs, "trash"); got != "5-p_1.0 5-p_1.1" {
		t.Errorf("trash: %s", got)
	}
}

func names(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	es, err := fs.ReadDir(dir)
	if err != nil && !vfs.IsNotExist(err) {
		t.Fatal(err)
	}
	var s []string
	for _, e := range es {
		s = append(s, e.Name)
	}
	return strings.Join(s, " ")
}
