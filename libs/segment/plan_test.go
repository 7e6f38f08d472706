package segment

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// TestReplyCap: batches are added as long as all of them fit, the cap included; one always is.
func TestReplyCap(t *testing.T) {
	l, _, err := Open(vfs.NewMem(1), "p/1", Options{}, State{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		appendSized(l, i, i+1, 1000)
	}
	l.Publish(5)
	for _, c := range []struct{ max, want int }{
		{1, 1000}, {1000, 1000}, {1999, 1000}, {2000, 2000}, {2999, 2000}, {5000, 5000}, {0, 5000},
	} {
		p, _ := l.View().Plan(Query{First, 0, 100}, c.max)
		dst := make([]byte, p.Size())
		if n, err := p.Read(dst); err != nil || n != c.want {
			t.Errorf("at most %d: %d bytes, %v; want %d", c.max, n, err, c.want)
		}
	}
}

// TestNothingQualifies: the queries that are answered empty, with the current offset.
func TestNothingQualifies(t *testing.T) {
	l, _, err := Open(vfs.NewMem(1), "p/1", Options{}, State{})
	if err != nil {
		t.Fatal(err)
	}
	appendSized(l, 0, 100, 1000)
	if _, o := l.View().Plan(Query{First, 0, 1}, 0); o != Empty || l.View().Current() != 0 {
		t.Error("an uncommitted message shows")
	}
	l.Publish(1)
	for _, q := range []Query{
		{First, 0, 0}, {Offset, 1, 10}, {Offset, 1<<64 - 1, 10}, {Timestamp, 101, 10}, {Kind(0), 0, 10}, {Kind(9), 0, 10},
	} {
		if _, o := l.View().Plan(q, 0); o != Empty {
			t.Errorf("%+v: outcome %d", q, o)
		}
	}
	for _, q := range []Query{{First, 99, 1}, {Offset, 0, 1<<32 - 1}, {Timestamp, 100, 1}, {Timestamp, 0, 1}, {Last, 0, 1}, {Last, 0, 9}} {
		p, o := l.View().Plan(q, 0)
		dst := make([]byte, p.Size())
		if n, err := p.Read(dst); o == Empty || err != nil || n != 1000 || p.LastOffset() != 0 {
			t.Errorf("%+v: outcome %d, %d bytes, %v", q, o, n, err)
		}
	}
}
