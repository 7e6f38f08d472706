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
				n.stop(power && c.rng.IntN(3) == 0 && (c.policy.Synced || c.othersWhole(n)))
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

// othersWhole reports whether only n would be suspect after a power cut: in default mode more suspect
// members than that may have lost what was acknowledged.
func (c *cluster) othersWhole(n *node) bool {
	for _, other := range c.nodes {
		for _, id := range c.groups {
			if other != n && (!other.up || !other.engine.Loop.Group(id).Settled()) {
				return false
			}
		}
	}
	return true
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
	if err := n.writer.Background(); err != nil && !n.fatal {
		n.die(3, err)
	}
}

// Kills, cut links and lost frames in an order of the seed: nothing acknowledged is lost, no two
// members differ, and the cluster serves again when the faults end.
func TestMembersSurviveKills(t *testing.T) {
	for seed := range seeds(16) {
		c := newCluster(t, seed, 3, 2, []vsr.Policy{{}, {Synced: true}, {SealBody: true, Synced: true}}[seed%3])
		c.churn(60, false)
		c.converge()
	}
}

// With synced acknowledgements power cuts lose nothing either.
func TestMembersSurvivePowerCuts(t *testing.T) {
	for seed := range seeds(16) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: true, SealBody: seed%2 == 0})
		c.churn(60, true)
		c.converge()
	}
}

// In default mode a power cut of a minority loses nothing.
func TestMinorityPowerCut(t *testing.T) {
	for seed := range seeds(16) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{})
		c.churn(60, true)
		c.converge()
	}
}

func seeds(n int) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if testing.Short() {
			n /= 4
		}
		for seed := range uint64(n) {
			if !yield(seed + 1) {
				return
			}
		}
	}
}

// everybody goes down at once and comes back.
func (c *cluster) blackout(power bool) {
	for _, n := range c.nodes {
		if n.up {
			n.stop(power)
		}
	}
	c.now += 1_000_000
	for _, n := range c.nodes {
		n.start()
	}
}

// Killing every process at once loses nothing that was acknowledged, whatever the mode.
func TestBlackoutOfProcesses(t *testing.T) {
	for seed := range seeds(12) {
		c := newCluster(t, seed, 3, 2, []vsr.Policy{{}, {Synced: true}}[seed%2])
		for range 3 {
			c.churn(15, false)
			c.blackout(false)
		}
		c.converge()
		if c.lost > 0 {
			c.fail("%d ops were given up after kills", c.lost)
		}
	}
}

// A power cut of all nodes loses nothing that was acknowledged as synced.
func TestBlackoutOfSyncedGroups(t *testing.T) {
	for seed := range seeds(12) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: true})
		for range 3 {
			c.churn(15, true)
			c.blackout(true)
		}
		c.converge()
		if c.lost > 0 {
			c.fail("%d ops were given up", c.lost)
		}
	}
}

// In default mode a power cut of all nodes may take what was not synced. The members agree on what is
// left and go on.
func TestBlackoutOfWrittenGroups(t *testing.T) {
	gone := 0
	for seed := range seeds(10) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{})
		c.run(1_000_000)
		for range 3 {
			for range 10 {
				c.mustWrite(c.groups[c.rng.IntN(2)])
				if c.rng.IntN(3) == 0 {
					c.nodes[c.rng.IntN(3)].background()
				}
			}
			c.blackout(true)
			gone += c.forget()
		}
		c.converge()
	}
	if gone == 0 && !testing.Short() { // a short run has too few seeds
		t.Error("no power cut took anything")
	}
}

// forget drops what the checks know of ops that no node has any more, and counts them.
func (c *cluster) forget() (gone int) {
	for _, id := range c.groups {
		top := uint64(0)
		for _, n := range c.nodes {
			top = max(top, n.engine.Loop.Group(id).Head())
		}
		h := c.history[id]
		for _, body := range h[min(uint64(len(h)), top):] {
			delete(c.acked, body)
			gone++
		}
		c.history[id] = h[:min(uint64(len(h)), top)]
	}
	return gone
}

// A new metadata group starts when all members report that they are empty.
func TestMetadataFirstStart(t *testing.T) {
	for seed := range seeds(10) {
		c := newCluster(t, seed, 3, 1, vsr.Policy{SealBody: true, Incarnation: true, Synced: true})
		c.run(3_000_000)
		c.converge()
		for range 2 {
			c.churn(20, false)
		}
		c.blackout(true)
		c.converge()
	}
}

// Five members survive two that are down.
func TestFiveMembers(t *testing.T) {
	for seed := range seeds(6) {
		c := newCluster(t, seed, 5, 2, vsr.Policy{Synced: seed%2 == 0})
		c.churn(50, true)
		c.converge()
	}
}
