package loop

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
)

// Three members, no fault: a write is acknowledged, all apply it.
func TestMembersApplyTheSame(t *testing.T) {
	for _, policy := range []vsr.Policy{{}, {Synced: true}, {SealBody: true, Synced: true}} {
		c := newCluster(t, 1, 3, 3, policy)
		c.run(1_000_000)
		for range 20 {
			for _, id := range c.groups {
				c.mustWrite(id)
			}
		}
		c.converge()
	}
}

// churn does what a bad day does: writes, kills, power cuts of at most cuts nodes at a time, cut links.
func (c *cluster) churn(steps int, power bool) {
	var open []*pending
	for range steps {
		switch c.rng.IntN(12) {
		case 0:
			n := c.nodes[c.rng.IntN(len(c.nodes))]
			if down := c.down(); n.up && down < (len(c.nodes)-1)/2 {
				n.stop(power && c.rng.IntN(3) == 0)
			} else if !n.up {
				n.start()
			}
		case 1:
			a, b := c.rng.IntN(len(c.nodes)), c.rng.IntN(len(c.nodes))
			pair := [2]int{10 + a, 10 + b}
			if c.cut[pair] {
				delete(c.cut, pair)
			} else if a != b && len(c.cut) < 2 {
				c.cut[pair] = true
				c.logf("cut %v", pair)
			}
		case 5: // cut off, the last to know
			n := int(c.nodes[c.rng.IntN(len(c.nodes))].id)
			clear(c.cut)
			for _, other := range c.nodes {
				c.cut[[2]int{n, int(other.id)}], c.cut[[2]int{int(other.id), n}] = true, true
			}
			c.logf("node %d is cut off", n)
		case 6:
			clear(c.cut)
			c.reconnect()
		case 2:
			c.lossy = []int{0, 0, 20, 5}[c.rng.IntN(4)]
		case 3:
			n := c.nodes[c.rng.IntN(len(c.nodes))]
			if n.up && c.rng.IntN(2) == 0 {
				n.background()
			}
		case 4:
			n := c.nodes[c.rng.IntN(len(c.nodes))]
			if n.up {
				n.engine.BeginCheckpoint()
			}
		}
		for range c.rng.IntN(20) {
			n := c.nodes[c.rng.IntN(len(c.nodes))]
			if n.up {
				open = append(open, n.write(c.groups[c.rng.IntN(len(c.groups))]))
			}
		}
		c.run(vsr.Tick(c.rng.IntN(400_000)))
		keep := open[:0]
		for _, p := range open {
			if p.check(c); !p.done {
				keep = append(keep, p)
			}
		}
		open = keep
	}
}

func (c *cluster) down() (n int) {
	for _, node := range c.nodes {
		if !node.up {
			n++
		}
	}
	return n
}

// background is the sync a writer makes every second.
func (n *node) background() {
	if err := n.writer.Background(); err != nil {
		n.c.fail("node %d: %v", n.id, err)
	}
}

// Kills, cut links and lost frames in an order of the seed: nothing acknowledged is lost, no two
// members differ, and the cluster serves again when the faults end.
func TestMembersSurviveKills(t *testing.T) {
	for seed := range seeds(40) {
		c := newCluster(t, seed, 3, 2, []vsr.Policy{{}, {Synced: true}, {SealBody: true, Synced: true}}[seed%3])
		c.churn(60, false)
		c.converge()
	}
}

// With synced acknowledgements power cuts lose nothing either.
func TestMembersSurvivePowerCuts(t *testing.T) {
	for seed := range seeds(40) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: true, SealBody: seed%2 == 0})
		c.churn(60, true)
		c.converge()
	}
}

// In default mode a power cut of a minority loses nothing.
func TestMinorityPowerCut(t *testing.T) {
	for seed := range seeds(40) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{})
		c.churn(60, true)
		c.converge()
	}
}

func seeds(n int) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if testing.Short() {
			n /= 10
		}
		for seed := range uint64(n) {
			if !yield(seed + 1) {
				return
			}
		}
	}
}
