package loop

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// checkLease is the promise of a lease: who has one knows of everything that anybody committed.
func (n *node) checkLease() {
	c := n.c
	id := c.groups[0]
	g := n.engine.Loop.Group(id)
	if ok, _ := g.Leased(c.now, n.echoes); ok && g.peers != nil && g.Head() < uint64(len(c.history[id])) {
		c.fail("node %d leads group %d with a lease in view %d, and knows %d ops of %d", n.id, id, g.View(), g.Head(), len(c.history[id]))
	}
}

// A node answers pings whatever its members do. Only those count for a lease that take part in the view of the
// primary.
func TestLeaseCountsFollowersOnly(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	c.run(1_000_000)
	n := c.primary(1)
	g := n.engine.Loop.Group(1)
	leased := func() bool {
		serves, _ := g.Serves(c.now, n.echoes)
		leased, _ := g.Leased(c.now, n.echoes)
		if leased && !serves {
			t.Fatal("a lease of a primary that does not serve")
		}
		return leased
	}
	if !leased() {
		t.Fatal("no lease while all is well")
	}
	*n.echoes = Echoes{}
	n.echoes.Set(c.nodes[1].id, c.now)
	n.echoes.Set(c.nodes[2].id, c.now)
	if ok, _ := g.Serves(c.now, n.echoes); !ok || leased() {
		t.Errorf("answers of nodes alone: serves %v, leased %v", ok, leased())
	}
	for _, other := range c.nodes {
		n.echoes.Pledge(other.id, c.now, g.View()+1)
	}
	if leased() {
		t.Error("a lease of followers of another primary")
	}
	c.now++
	for _, other := range c.nodes {
		n.echoes.Pledge(other.id, c.now, g.View())
		n.echoes.Pledge(other.id, c.now-1, g.View()+2) // an old answer that comes late
	}
	if !leased() {
		t.Error("no lease of followers")
	}
	c.now += echoLimit + 1
	if leased() {
		t.Error("a lease of the past")
	}
}

// A member is told that its primary is dead, which is what its node thought before a ping came: the node has answered
// that one, and said that it follows. So the member votes when what this promised is over, and not before.
func TestVoteWaitsForThePromise(t *testing.T) {
	for name, spoken := range map[string]bool{"answered": true, "silent": false} {
		c := newCluster(t, 2, 3, 1, vsr.Policy{Synced: true})
		c.run(1_000_000)
		c.mustWrite(1)
		leads := c.primary(1)
		view := leads.engine.Loop.Group(1).View()
		began := c.now
		leads.stop(false)
		var others []*node
		for _, n := range c.nodes {
			if n == leads {
				continue
			}
			others = append(others, n)
			*n.echoes = Echoes{}
			if spoken {
				n.echoes.Hear(leads.id, began)
			}
			n.dead[leads.id] = true
			n.engine.NodeDead(leads.id)
		}
		voted := func() bool {
			for _, n := range others {
				if v, _ := n.votes.Get(1); v.View > view {
					return true
				}
			}
			return false
		}
		for c.now < began+quiet-1 && !voted() {
			c.settle()
			c.pass(min(20_000, began+quiet-1-c.now))
			for _, n := range others {
				if follows, ok := n.engine.Loop.Group(1).Follows(); ok && follows == view && c.now > began+100_000 {
					t.Fatalf("%s: node %d still follows the dead primary", name, n.id)
				}
			}
		}
		if voted() == spoken {
			t.Errorf("%s: voted %v after %d ms", name, voted(), (c.now-began)/1000)
		}
		for range 100 {
			c.settle()
			c.pass(20_000)
		}
		if p := c.primary(1); p == nil || p == leads {
			t.Errorf("%s: nobody leads", name)
		}
	}
}

// Who hands over takes its members' promises back: nothing waits.
func TestHandOverWaitsForNoPromise(t *testing.T) {
	c := newCluster(t, 3, 3, 1, vsr.Policy{Synced: true})
	c.run(1_000_000)
	c.mustWrite(1)
	leads := c.primary(1)
	began := c.now
	leads.engine.Do(leads.engine.Loop.HandOver)
	for p := leads; p == leads || p == nil; p = c.primary(1) {
		c.settle()
		c.pass(5_000)
		if c.now > began+quiet/2 {
			t.Fatal("a hand-over takes as long as a death")
		}
	}
}

// After a time without answers the groups led here speak to a node: it may follow somebody else, and says so.
func TestNodesThatAnswerAgainAreSpokenTo(t *testing.T) {
	c := newCluster(t, 4, 3, 1, vsr.Policy{})
	c.run(1_000_000)
	c.mustWrite(1)
	c.run(3_000_000)
	n := c.primary(1)
	other := c.nodes[(int(n.id)-10+1)%3]
	spoken := func(gap vsr.Tick) int {
		c.settle()
		c.now += gap
		n.echoes.Set(other.id, c.now)
		n.engine.Watch()
		n.engine.Step()
		before := c.underway(wire.CommandCommit)
		c.settle()
		return before
	}
	if spoken(100_000) != 0 {
		t.Error("a node that answers is spoken to")
	}
	if spoken(echoLimit+1) == 0 {
		t.Error("a node that answers again is not spoken to")
	}
}

// A member that wants a newer view may have followed another primary: nothing is read where that is heard, until it is
// decided who leads.
func TestNothingIsReadInDoubt(t *testing.T) {
	c := newCluster(t, 5, 3, 1, vsr.Policy{})
	c.run(1_000_000)
	c.mustWrite(1)
	c.run(1_000_000)
	n := c.primary(1)
	g := n.engine.Loop.Group(1)
	if ok, _ := g.Serves(c.now, n.echoes); !ok {
		t.Fatal("nothing is read while all is well")
	}
	c.nodes[(int(n.id)-10+1)%3].engine.NodeDead(n.id) // it alone
	for range 140 {                                   // its vote waits for what it promised
		c.settle()
		c.pass(5_000)
	}
	if ok, _ := g.Serves(c.now, n.echoes); ok || !g.Primary() {
		t.Errorf("in doubt: serves %v, leads %v", ok, g.Primary())
	}
	for range 150 {
		c.settle()
		c.pass(20_000)
	}
	p := c.primary(1)
	if p == nil {
		t.Fatal("nobody leads")
	}
	if ok, why := p.engine.Loop.Group(1).Serves(c.now, p.echoes); !ok {
		t.Errorf("nothing is read after it is decided: %v", why)
	}
}
