package partitionreplica

import (
	"bytes"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A partition of three members survives kills, power cuts and hand-overs; small and large batches,
// offsets, purges and trims come out the same on every disk.
func TestPartitionOfThree(t *testing.T) {
	for seed := range uint64(8) {
		c := newTrio(t, seed+1)
		sent := 0
		for round := range 12 {
			for range 1 + c.rng.IntN(4) {
				size := 10 + c.rng.IntN(200)
				if c.rng.IntN(4) == 0 {
					size = 70_000 + c.rng.IntN(200_000)
				}
				c.send(size)
				sent++
			}
			m := c.primary()
			if call := c.do(m, c.numbered(m.storeCall(plain(uint32(round%3)), 0, 0))); call.Status != 0 {
				t.Fatalf("store: %v", call.Status)
			}
			switch c.rng.IntN(5) {
			case 0:
				c.metadata(func(w *world) { w.purge() })
				sent = 0
			case 1, 2:
				victim := c.nodes[c.rng.IntN(3)]
				victim.stop(c.rng.IntN(2) == 0)
				c.send(100)
				sent++
				victim.start()
			case 3:
				m.engines[0].Do(m.engines[0].Loop.HandOver)
			}
			c.run(200_000)
		}
		c.send(1)
		sent++
		c.same()
		for _, m := range c.nodes {
			if n := m.find(m.group(0)).log.Next(); n != uint64(sent) {
				t.Fatalf("seed %d: node %d ends at offset %d, %d messages were acknowledged", seed+1, m.node, n, sent)
			}
		}
	}
}

// A repeat of a send is recognised by the next primary: it answers with the offset of the first.
func TestRepeatAcrossPrimaries(t *testing.T) {
	c := newTrio(t, 1)
	c.send(10)
	m := c.primary()
	first := c.do(m, c.numbered(m.sendCall(0, "once")))
	if first.Status != 0 {
		t.Fatal(first.Status)
	}
	c.run(500_000)
	for _, other := range c.nodes { // nothing is left of it but what their checkpoints keep
		if other != m {
			if err := other.engines[0].Checkpoint(); err != nil {
				t.Fatal(err)
			}
			other.stop(false)
			other.start()
		}
	}
	c.run(1_000_000)
	m.stop(false)
	next := c.primary()
	again := next.sendCall(0, "once")
	again.Connection, again.Sequence = first.Connection, first.Sequence
	if c.do(next, again); again.Status != 0 || !bytes.Equal(again.Out, first.Out) {
		t.Fatalf("repeat: status %v, answer %x, first %x", again.Status, again.Out, first.Out)
	}
	if n := next.find(next.group(0)).log.Next(); n != 2 {
		t.Fatalf("%d messages", n)
	}
}

// A store of an offset, or its removal, that is repeated at the next primary happens once: what others stored
// meanwhile stays.
func TestRepeatOfAnOffset(t *testing.T) {
	c := newTrio(t, 3)
	for range 5 {
		c.send(10)
	}
	m := c.primary()
	remove := func(m *member) *link.Call {
		q := m.storeCall(plain(2), 0, 0)
		q.Header.Operation = wire.OpDeleteOffset
		q.Body = wire.DeleteOffsetRequest{OffsetTarget: target(plain(2), 0)}.Append(nil)
		return q
	}
	c.do(m, c.numbered(m.storeCall(plain(2), 0, 1)))
	stored, removed := c.do(m, c.numbered(m.storeCall(plain(1), 0, 1))), c.do(m, c.numbered(remove(m)))
	c.do(m, c.numbered(m.storeCall(plain(1), 0, 3)))
	c.do(m, c.numbered(m.storeCall(plain(2), 0, 4)))
	c.run(500_000)
	m.stop(false)
	next := c.primary()
	for _, again := range []*link.Call{next.storeCall(plain(1), 0, 1), remove(next)} {
		first := stored
		if again.Header.Operation == wire.OpDeleteOffset {
			first = removed
		}
		again.Connection, again.Sequence = first.Connection, first.Sequence
		if c.do(next, again); again.Status != 0 || again.Op != first.Op || !bytes.Equal(again.Out, first.Out) || again.ReplyOp != first.ReplyOp {
			t.Errorf("repeat: status %v, op %d, answer %x; first: op %d, answer %x", again.Status, again.Op, again.Out, first.Op, first.Out)
		}
	}
	offsets := next.find(next.group(0)).offsets
	one, _ := offsets.get(plain(1))
	two, _ := offsets.get(plain(2))
	if one != 3 || two != 4 {
		t.Errorf("the offsets are %d and %d, want 3 and 4", one, two)
	}
}

// Who does not lead says so, and who may.
func TestRefusalNamesThePrimary(t *testing.T) {
	c := newTrio(t, 1)
	c.send(1)
	m := c.primary()
	for _, other := range c.nodes {
		if other == m {
			continue
		}
		call := c.do(other, other.sendCall(0, "x"))
		if call.Status != wire.CodeTransientNotAccepted || call.Reason != link.ReasonNotPrimary || call.Primary != m.node {
			t.Fatalf("status %v reason %v primary %d", call.Status, call.Reason, call.Primary)
		}
	}
}

// A member whose files rot gets the partition from the others.
func TestDamagedPartitionIsFetched(t *testing.T) {
	c := newTrio(t, 1)
	for range 5 {
		c.send(100_000)
	}
	c.run(500_000)
	m := c.nodes[0]
	if err := m.engines[0].Checkpoint(); err != nil {
		t.Fatal(err)
	}
	dir := m.find(m.group(0)).dir
	m.stop(false)
	damaged := 0
	for _, name := range m.mem.Files() {
		if strings.HasPrefix(name, dir) && strings.HasSuffix(name, ".log") {
			m.mem.Drop(name)
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("nothing to damage")
	}
	m.start()
	if p := m.find(m.group(0)); p.dir == dir || p.log.Next() != 0 {
		t.Fatalf("the damaged partition is still there, up to offset %d", p.log.Next())
	}
	for range 5 {
		c.send(10)
	}
	c.same()
	if n := m.find(m.group(0)).log.Next(); n != 10 {
		t.Fatalf("%d of 10 messages", n)
	}
}

// A partition in the log that the metadata does not know, here because the metadata is old, is not taken for
// one without other members: nothing of it is served, and nothing of its log becomes committed.
func TestUnknownPartitionOfClusterIsFenced(t *testing.T) {
	c := newTrio(t, 1)
	c.send(10)
	c.run(500_000)
	m, id := c.nodes[0], c.nodes[0].group(0)
	m.stop(false)
	for _, name := range m.mem.Files() {
		if strings.HasPrefix(name, "metadata/") {
			m.mem.Drop(name)
		}
	}
	c.roster = nil
	m.start()
	if p := m.find(id); p == nil || p.fence.Load() == nil {
		t.Fatal("a partition that nothing is known of takes part")
	}
	m.topic(1)
	call := m.sendCall(0, "alone")
	if m.Serve(call); call.Status == 0 {
		t.Fatal("acknowledged by one member of three")
	}
	if err := m.engines[0].Checkpoint(); err != nil {
		t.Fatal(err)
	}
	m.stop(false)
	c.roster = []uint8{0, 1, 2}
	m.start()
	c.send(10)
	c.same()
	if n := m.find(id).log.Next(); n != 2 {
		t.Fatalf("%d of 2 messages", n)
	}
}

// A partition that is deleted while its state is fetched leaves nothing behind.
func TestDeletedWhileFetched(t *testing.T) {
	c := newTrio(t, 1)
	c.send(100_000)
	c.run(1_000_000)
	m, id := c.nodes[1], c.nodes[1].group(0)
	p := m.find(id)
	o, _ := c.nodes[0].offer(id, m.node)
	next := m.newPartition(p.engine, id)
	next.settleIn(p.home + 1)
	store := &stage{fs: m.mem, dir: next.dir}
	for _, f := range o.Files {
		w, err := store.Create(f.Base)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, f.Len)
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
	}
	if err := next.unpack(o.State, (&stage{dir: next.dir}).path()); err != nil || next.log.Next() != 1 {
		t.Fatal(err, next.log.Next())
	}
	p.engine.Do(func() { m.remove(p) })
	p.engine.Do(func() { m.install(p, next, o.Head) })
	c.run(1_000_000)
	for _, name := range m.mem.Files() {
		if strings.HasPrefix(name, next.dir) {
			t.Errorf("%s is left", name)
		}
	}
}

// A primary that can not read what it holds leads no longer: the others have it too. Should it have to lead all
// the same, it takes what is sent.
func TestDamagedPrimaryHandsOver(t *testing.T) {
	c := newTrio(t, 1)
	for range 3 {
		c.send(100_000)
	}
	c.run(1_000_000) // nobody votes in the first half second of its life
	m := c.primary()
	p := m.find(m.group(0))
	for _, name := range m.mem.Files() {
		if strings.HasPrefix(name, p.dir+"/") && strings.HasSuffix(name, ".log") {
			m.mem.Corrupt(name, func(b []byte) []byte { b[50_000] ^= 1; return b })
		}
	}
	for p.fence.Load() == nil { // the first polls may be refused for another reason
		if call := c.do(m, m.pollCall(plain(1), 0, 1, false)); !call.Status.IsTransient() {
			t.Fatalf("poll of what is damaged here: %v, reason %v", call.Status, call.Reason)
		}
		c.run(20_000)
	}
	c.run(1_000_000)
	next := c.primary()
	if next == m {
		t.Fatal("leads a partition it can not read")
	}
	if call := c.do(next, next.pollCall(plain(1), 0, 1, false)); call.Status != 0 || call.OutFrame == nil {
		t.Fatalf("poll of the next primary: %v", call.Status)
	}
	c.send(10)
	for range 6 {
		if next = c.primary(); next == m {
			break
		}
		next.engines[0].Do(next.engines[0].Loop.HandOver)
		c.run(1_000_000)
	}
	if next != m {
		t.Fatal("the damaged member never leads again")
	}
	c.send(10)
	if call := c.do(m, m.pollCall(plain(1), 0, 1, false)); call.Status != wire.CodeCannotReadMessage || c.primary() != m {
		t.Fatalf("a second poll of what is damaged: %v", call.Status)
	}
}

// What is damaged on a running member is put back from another one's file; then the member offers and serves it again.
func TestMended(t *testing.T) {
	c := newTrio(t, 1)
	for range 3 {
		c.send(100_000)
	}
	c.run(1_000_000)
	m := c.primary()
	p, id := m.find(m.group(0)), m.group(0)
	for _, name := range m.mem.Files() {
		if strings.HasPrefix(name, p.dir+"/") && strings.HasSuffix(name, ".log") {
			m.mem.Corrupt(name, func(b []byte) []byte { b[50_000] ^= 1; return b })
		}
	}
	for p.fence.Load() == nil {
		c.do(m, m.pollCall(plain(1), 0, 1, false))
		c.run(20_000)
	}
	d := p.fence.Load()
	if o, _ := m.offer(id, (m.node+1)%3); o != nil {
		t.Fatal("a damaged state is offered")
	}
	other := c.nodes[(m.node+1)%3]
	o, _ := other.offer(id, m.node)
	store := &stage{fs: m.mem, dir: p.dir + ".mend"}
	w, err := store.Create(o.Files[0].Base)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, o.Files[0].Len)
	if _, err := o.Files[0].ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if err := m.restore(p, d, store); err != nil {
		t.Fatal(err)
	}
	if p.fence.Load() != nil {
		t.Fatal("still fenced")
	}
	c.same()
	if o, _ := m.offer(id, other.node); o == nil {
		t.Error("offers nothing although it is whole")
	}
}

// A member that finds damage while nobody votes yet gives its lead away as soon as somebody does.
func TestStandDownIsRepeated(t *testing.T) {
	c := newTrio(t, 1)
	c.send(10)
	m := c.primary()
	p := m.find(m.group(0))
	m.damaged(p, &segment.Damage{Path: segment.Path(p.dir, 0, 0), Reason: "test"})
	c.run(100_000)
	if c.primary() != m {
		t.Fatal("it was heard at once")
	}
	p.mending.Store(true) // for as long as the test goes on
	for range 20 {
		m.lookAfterDamage()
		c.run(500_000)
	}
	next := c.primary()
	if next == m {
		t.Fatal("leads a partition it can not read")
	}
	for range 6 { // if it has to lead all the same, it does not stand down again
		if next = c.primary(); next == m {
			break
		}
		next.engines[0].Do(next.engines[0].Loop.HandOver)
		c.run(1_000_000)
	}
	for range 3 {
		m.lookAfterDamage()
		c.run(500_000)
	}
	if c.primary() != m {
		t.Error("stands down again and again")
	}
}
