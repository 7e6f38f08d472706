package loop

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vsr"
)

// A node that leads many groups dies: no loop changes more views at once than it may, groups somebody
// waits for go first, and all have a new primary in the end.
func TestElectionStormIsPaced(t *testing.T) {
	c := newCluster(t, 1, 3, 1200, vsr.Policy{})
	c.settle()
	c.pass(50_000)
	c.settle()
	dead := c.nodes[0]
	led := 0
	for _, id := range c.groups {
		if dead.engine.Loop.Group(id).Primary() {
			led++
		}
	}
	if led != 400 {
		t.Fatalf("node %d leads %d groups", dead.id, led)
	}
	dead.stop(false)
	most := 0
	asked := c.groups[len(c.groups)-1]
	for c.nodes[1].engine.Loop.Group(asked).Nodes()[0] != dead.id {
		asked--
	}
	for range 400 {
		c.pass(10_000)
		for _, n := range c.nodes[1:] {
			if len(n.engine.Loop.alive.waiting) > 0 {
				call := link.NewCall()
				call.Group, call.Body = asked, []byte("x")
				n.engine.Serve(call)
			}
			most = max(most, n.engine.Loop.changing)
			if n.engine.Loop.Group(asked).peers.grief == griefWaiting {
				t.Fatal("a group somebody waits for stands in line")
			}
		}
		for _, act := range c.busy() {
			act()
		}
	}
	c.settle()
	if most > maxChanging+1 || most < 100 {
		t.Errorf("%d view changes at once", most)
	}
	for _, id := range c.groups {
		if c.primary(id) == nil {
			t.Fatalf("group %d has no primary", id)
		}
	}
}

// Idle groups are in no heap, and a node's life does not step those it does not lead.
func TestIdleGroupsCostNothing(t *testing.T) {
	c := newCluster(t, 1, 3, 300, vsr.Policy{})
	c.run(3_000_000)
	c.settle()
	for _, n := range c.nodes {
		if at, ok := n.engine.Loop.NextWake(); ok {
			t.Fatalf("node %d wants to be woken at %d, now %d", n.id, at, c.now)
		}
		if n.engine.Loop.bodies.slots != nil {
			t.Errorf("node %d holds bodies", n.id)
		}
	}
	clear(c.wires)
	c.nodes[0].engine.NodeDead(99)
	c.nodes[0].engine.NodeAlive(99)
	if len(c.wires) > 0 {
		t.Error("a stranger's life made groups talk")
	}
}

// A group that was removed leaves nothing behind.
func TestRemovedGroupOfSeveral(t *testing.T) {
	c := newCluster(t, 1, 3, 2, vsr.Policy{})
	c.run(500_000)
	c.mustWrite(1)
	for _, n := range c.nodes {
		g := n.engine.Loop.Group(1)
		n.write(1)
		n.engine.Do(func() { n.engine.Remove(g) })
	}
	c.groups = c.groups[1:]
	c.run(1_000_000)
	c.settle()
	for _, n := range c.nodes {
		if _, ok := n.votes.Get(1); ok {
			t.Errorf("node %d keeps the vote of a group that is gone", n.id)
		}
		if len(n.engine.Loop.clustered) != 1 || len(n.engine.Loop.timers) != 0 || n.engine.Loop.bodies.slots != nil {
			t.Errorf("node %d keeps something of a group that is gone", n.id)
		}
	}
	c.mustWrite(2)
}

// A turn wakes so many groups and no more, and the next turns wake the others.
func TestWakingIsPaced(t *testing.T) {
	c := newCluster(t, 1, 3, 3*maxWoken, vsr.Policy{})
	c.run(3_000_000)
	c.settle()
	l := c.nodes[0].engine.Loop
	for _, g := range l.clustered {
		l.schedule(g, c.now)
	}
	for left := 2 * maxWoken; left >= 0; left -= maxWoken {
		l.wakeUp()
		if len(l.timers) != left || l.late != (left > 0) {
			t.Fatalf("%d groups wait, late: %v, want %d", len(l.timers), l.late, left)
		}
	}
}
