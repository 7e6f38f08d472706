package partitionreplica

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestBusyConnectionIsRemembered: of too many connections those go that were quiet for longest, not
// those that came first.
func TestBusyConnectionIsRemembered(t *testing.T) {
	var r recent
	busy := wire.U128{Lo: 1}
	sequence := uint64(0)
	for n := range uint64(3 * recentLimit) {
		sequence++
		r.add(busy, recentWrite{sequence: sequence, op: 2*n + 1}, 1)
		r.add(wire.U128{Lo: n + 2}, recentWrite{sequence: 1, op: 2*n + 2}, 1)
	}
	for back := range uint64(recentPer) {
		if _, ok := r.find(busy, sequence-back); !ok {
			t.Fatalf("write %d before the last of a busy connection is forgotten", back)
		}
	}
	if r.count > recentLimit {
		t.Errorf("%d connections remembered", r.count)
	}
}

// TestQuietConnectionsAreForgotten: a partition keeps nothing of connections that have written nothing
// for a minute, though nobody else writes.
func TestQuietConnectionsAreForgotten(t *testing.T) {
	var r recent
	for n := range uint64(100) {
		r.add(wire.U128{Lo: n + 1}, recentWrite{sequence: 1, op: n + 1}, n)
	}
	r.expire(49 + recentIdle)
	if r.count != 50 || len(r.table) != 50 {
		t.Errorf("%d connections remembered, %d of them in the table, want 50", r.count, len(r.table))
	}
	r.add(wire.U128{Lo: 1}, recentWrite{sequence: 2, op: 101}, 1000)
	r.cut(100)
	if _, ok := r.find(wire.U128{Lo: 1}, 2); ok {
		t.Error("a write that was taken back is remembered")
	}
	if _, ok := r.find(wire.U128{Lo: 99}, 1); !ok {
		t.Error("a write below the cut is forgotten")
	}
	r.expire(1000 + recentIdle)
	if r.table != nil || r.count != 0 || r.oldest != nil || r.newest != nil {
		t.Error("an idle partition keeps its table")
	}
}

// TestRepeatIsVisibleWhenConfirmed: the repeat of a write that was applied in the same turn is not
// confirmed before polls see it.
func TestRepeatIsVisibleWhenConfirmed(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	w.topic(1)
	w.send(0, "x")
	p := w.find(w.group(0))
	first := w.sendCall(0, "y")
	again := w.sendCall(0, "y")
	again.Sequence = first.Sequence
	w.Serve(first)
	w.wait(first)
	p.published, p.publishing = p.log.Next(), true // applied, not settled
	if w.serve(again); again.Status != 0 || again.Op != first.Op {
		t.Fatalf("repeat: status %v, op %d, first %d", again.Status, again.Op, first.Op)
	}
	if p.publishing {
		t.Error("confirmed before it was published")
	}
	if n := w.poll(plain(1), 0, 10, false); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
	w.close()
}

// TestRecentWritesInACheckpoint: what a checkpoint keeps is recognised, but not what was not applied.
func TestRecentWritesInACheckpoint(t *testing.T) {
	var r, back recent
	for n := range uint64(40) {
		r.add(wire.U128{Lo: n%2 + 1}, recentWrite{sequence: n + 1, op: n + 1, base: 100 + n}, n)
	}
	if err := back.decode(r.appendTo(nil, 38)); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(40) {
		w, ok := back.find(wire.U128{Lo: n%2 + 1}, n+1)
		if want := n >= 8 && n < 38; ok != want || ok && w.base != 100+n {
			t.Errorf("write %d: found %v, offset %d", n+1, ok, w.base)
		}
	}
	b := r.appendTo(nil, 38)
	for n := range len(b) {
		var cut recent
		if err := cut.decode(b[:n]); err == nil && n > 0 && n != 25+15*recentWriteSize {
			t.Errorf("%d of %d bytes are taken for the whole", n, len(b))
		}
	}
}
