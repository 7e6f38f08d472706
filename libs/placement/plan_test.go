package placement

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// cluster makes partitions on the first nodes of so many, as births place them.
func cluster(nodes, held, partitions, copies int) *Cluster {
	c := &Cluster{}
	for id := range nodes {
		c.Nodes = append(c.Nodes, Node{ID: id, Alive: true})
	}
	for i := range partitions {
		p := Partition{ID: uint32(i), Group: uint64(i), SizeBytes: uint64(1000 + i)}
		for j := range copies {
			p.Members = append(p.Members, (i+j)%held)
		}
		c.Partitions = append(c.Partitions, p)
	}
	return c
}

// carry out a plan.
func done(c *Cluster, moves []Move) {
	for i := range moves {
		m := &moves[i]
		at := slices.IndexFunc(c.Partitions, func(p Partition) bool { return p.Group == m.Partition.Group })
		c.Partitions[at].Members = m.To
	}
}

// check that a plan is even, complete, and that lists are of distinct nodes that may hold copies.
func check(t *testing.T, c *Cluster) {
	t.Helper()
	copies, leads := Spread(c)
	if copies > 1 || leads > 1 {
		t.Errorf("copies are %d apart, leads %d", copies, leads)
	}
	for _, p := range c.Partitions {
		for i, id := range p.Members {
			if n := c.Nodes[id]; !n.Alive || n.Draining || slices.Contains(p.Members[:i], id) {
				t.Errorf("partition %d: %v", p.ID, p.Members)
			}
		}
	}
}

func copied(moves []Move) (count int) {
	for i := range moves {
		count += len(moves[i].Joins())
	}
	return count
}

// Two nodes join three: exactly the copies that the new ones should hold move.
func TestGrow(t *testing.T) {
	c := cluster(5, 3, 12, 3) // 36 copies: 7 or 8 on each of five
	moves, err := Rebalance(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := copied(moves); n != 14 {
		t.Errorf("%d copies move, 14 are enough", n)
	}
	done(c, moves)
	check(t, c)
	if again, err := Rebalance(c); err != nil || len(again) != 0 {
		t.Errorf("a second plan: %v, %v", again, err)
	}
}

// Two of five are drained: what they hold goes to the three others, and nothing else moves.
func TestDrain(t *testing.T) {
	c := cluster(5, 5, 10, 3)
	c.Nodes[1].Draining, c.Nodes[3].Draining = true, true
	held := Loads(c)[1].Copies + Loads(c)[3].Copies
	moves, err := Drain(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := copied(moves); n != held {
		t.Errorf("%d copies move, the drained nodes hold %d", n, held)
	}
	done(c, moves)
	again, err := Rebalance(c)
	if err != nil || copied(again) != 0 {
		t.Errorf("copies move again: %v, %v", again, err)
	}
	done(c, again)
	check(t, c)
}

// With two nodes left there is no place for a third copy.
func TestTooFew(t *testing.T) {
	c := cluster(3, 3, 2, 3)
	c.Nodes[0].Draining = true
	if _, err := Drain(c); !errors.Is(err, ErrNodes) {
		t.Errorf("%v", err)
	}
}

// A node that died is replaced by a rebalance, not by the drain of another one.
func TestDead(t *testing.T) {
	c := cluster(5, 5, 10, 3)
	c.Nodes[2].Alive = false
	c.Nodes[4].Draining = true
	moves, err := Drain(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range moves {
		if slices.Contains(moves[i].Partition.Members, 2) && !slices.Contains(moves[i].To, 2) {
			t.Errorf("the copy of a node that may come back moves: %v to %v", moves[i].Partition.Members, moves[i].To)
		}
	}
	if moves, err = Rebalance(c); err != nil {
		t.Fatal(err)
	}
	done(c, moves)
	check(t, c)
}

// Copies stay in different zones where there are enough.
func TestZones(t *testing.T) {
	c := cluster(6, 3, 12, 3)
	for i := range c.Nodes {
		c.Nodes[i].Zone = string(rune('a' + i%3))
	}
	moves, err := Rebalance(c)
	if err != nil {
		t.Fatal(err)
	}
	done(c, moves)
	check(t, c)
	for _, p := range c.Partitions {
		zones := map[int]bool{}
		for _, id := range p.Members {
			zones[id%3] = true
		}
		if len(zones) != 3 {
			t.Errorf("partition %d: %v", p.ID, p.Members)
		}
	}
}

// What is moving is left alone and counts as arrived.
func TestMovingCounts(t *testing.T) {
	c := cluster(4, 3, 4, 3)
	c.Partitions[0].Target = []int{0, 1, 3}
	moves, err := Rebalance(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range moves {
		if moves[i].Partition.Group == 0 {
			t.Error("a second move of a partition that is moving")
		}
	}
	if n := copied(moves); n != 2 {
		t.Errorf("%d copies move, node 3 needs 3 and gets one already", n)
	}
}

// Whatever the cluster is like, one plan makes it even and a second one has nothing to do.
func TestAnyCluster(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		nodes := 3 + r.IntN(8)
		c := cluster(nodes, nodes, 0, 0)
		copies := 1 + 2*r.IntN(2)
		for i := range r.IntN(60) {
			members := r.Perm(nodes)[:copies]
			c.Partitions = append(c.Partitions, Partition{ID: uint32(i), Group: uint64(i), Members: members, SizeBytes: r.Uint64N(1 << 30)})
		}
		for range r.IntN(nodes - 2) {
			if n := &c.Nodes[r.IntN(nodes)]; r.IntN(2) == 0 {
				n.Draining = true
			} else {
				n.Alive = false
			}
		}
		moves, err := Rebalance(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		done(c, moves)
		check(t, c)
		if again, err := Rebalance(c); err != nil || len(again) > 0 {
			t.Errorf("seed %d: %d moves more, %v", seed, len(again), err)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
