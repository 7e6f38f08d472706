package loop

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A member is sent ops it does not know, as a newer build has them: it counts each one under its name, takes none of
// them and does not say that it takes part, while the others go on. With a build that knows them it catches up.
func TestOpsOfANewerBuild(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	c.run(1_000_000)
	c.mustWrite(1)
	c.run(1_000_000)
	leads := c.primary(1)
	old := c.nodes[(int(leads.id)-10+1)%3]
	known := old.engine.Loop.Group(1).Applied()
	c.alter = func(to int, h *wire.Header) {
		var p wire.PrepareHeader
		command := h.Command()
		if to != int(old.id) || command != wire.CommandPrepare && command != wire.CommandRepairPrepare || p.Decode(h[:]) != nil || p.Op <= known {
			return
		}
		p.Operation = 251
		p.Checksum = p.Identity()
		p.Put(h[:])
	}
	for range 20 {
		c.mustWrite(1)
		c.run(200_000)
	}
	faults := old.engine.Loop.Counters.Faults[vsr.FaultOperation].Load()
	if g := old.engine.Loop.Group(1); faults == 0 || g.Applied() != known || g.Current() {
		t.Errorf("%d ops were named, %d applied, current %v", faults, g.Applied()-known, g.Current())
	}
	for _, n := range c.nodes {
		if g := n.engine.Loop.Group(1); n != old && g.Applied() < known+20 {
			t.Errorf("node %d has applied %d ops of 20", n.id, g.Applied()-known)
		}
	}
	c.alter = nil
	c.converge()
	if g := old.engine.Loop.Group(1); g.Applied() < known+20 || !g.Current() {
		t.Errorf("with them known, %d are applied, current %v", g.Applied()-known, g.Current())
	}
}
