package loop

import (
	"maps"
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
)

// A member that comes back is answered at once and knows nothing yet of what was committed meanwhile: it must
// not vouch for what it has.
func TestMemberBehindKnowsNothing(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{Synced: true})
	c.run(1_000_000)
	c.mustWrite(1)
	c.run(1_000_000)
	n := c.nodes[2]
	knows := func() bool {
		for _, other := range c.nodes {
			if other != n {
				n.echoes.Set(other.id, c.now)
			}
		}
		return n.engine.Loop.Group(1).Knows(c.now, n.echoes)
	}
	if !knows() {
		t.Fatal("a member that has everything does not know it")
	}
	n.stop(false)
	c.mustWrite(1)
	n.start()
	if knows() {
		t.Error("vouches for a log that lacks what was committed")
	}
	c.converge()
	if !knows() {
		t.Error("a member that has caught up does not know it")
	}
}

// Whatever happens to a cluster, the groups that a loop lists as behind are those a look at every group finds.
func TestBehindMissesNoGroup(t *testing.T) {
	c := newCluster(t, 3, 3, 40, vsr.Policy{})
	found := 0
	compare := func() {
		t.Helper()
		for _, n := range c.nodes {
			if !n.up {
				continue
			}
			want, got := map[uint64]bool{}, map[uint64]bool{}
			for _, g := range n.engine.Loop.clustered {
				if !g.Current() || g.Lost() {
					want[g.ID] = true
				}
			}
			n.engine.Loop.Behind(func(g *Group) { got[g.ID] = true })
			if found += len(want); !maps.Equal(want, got) {
				t.Fatalf("node %d: %v are behind, %v are listed", n.id, want, got)
			}
		}
	}
	for round := range 60 {
		n := c.nodes[round/5%3]
		switch round % 5 {
		case 1:
			n.stop(round%2 == 0)
		case 3:
			n.start()
		}
		c.write()
		c.run(100_000)
		compare()
	}
	c.converge()
	compare()
	if found == 0 {
		t.Fatal("no group was ever behind")
	}
	for _, n := range c.nodes {
		if len(n.engine.Loop.behind) > 0 {
			t.Errorf("node %d lists %d groups of a quiet cluster", n.id, len(n.engine.Loop.behind))
		}
	}
}
