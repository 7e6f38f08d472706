package loop

import (
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
