package metadata

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The exported state of a group never changes: join, leave, resize and complete return a changed copy.
// Partition ids of a topic are always 0..n-1.

// clone copies the group with members that may be changed.
func (g *Group) clone() *Group {
	c := *g
	c.Members = make([]*Member, len(g.Members))
	for i, m := range g.Members {
		changed := *m
		c.Members[i] = &changed
	}
	return &c
}

// join adds client and moves what it should own to it, as little as possible: partitions with polled
// but uncommitted data (inFlight) are only marked to move. It returns g itself for a member.
func (g *Group) join(client wire.U128, inFlight []uint32, now uint64) *Group {
	if g.Member(client) != nil {
		return g
	}
	c := g.clone()
	slot := uint32(0)
	for slot < uint32(len(c.Members)) && c.Members[slot].Slot == slot {
		slot++
	}
	c.Members = slices.Insert(c.Members, int(slot), &Member{Slot: slot, Client: client})
	c.Generation++
	c.index()
	c.dealUnowned()
	c.handOver(inFlight, now)
	c.index()
	return c
}

// dealUnowned gives partitions without an owner round robin to the members that own nothing.
func (g *Group) dealUnowned() {
	var idle []*Member
	for _, m := range g.Members {
		if len(m.Partitions) == 0 {
			idle = append(idle, m)
		}
	}
	if len(idle) == 0 {
		return
	}
	for _, m := range idle {
		m.Partitions = nil // a new array: an older view may still see the old one
	}
	dealt := 0
	for p, owner := range g.owners {
		if owner == 0 {
			m := idle[dealt%len(idle)]
			m.Partitions = append(m.Partitions, uint32(p))
			dealt++
		}
	}
}

// handOver takes from every member what it has above its fair share and deals it round robin to the
// members that have, and are to get, nothing.
func (g *Group) handOver(inFlight []uint32, now uint64) {
	idle := g.idle()
	if len(idle) == 0 {
		return
	}
	type surplus struct {
		source    *Member
		partition uint32
	}
	var moves []surplus
	fair, extra := int(g.partitions)/len(g.Members), int(g.partitions)%len(g.Members)
	for _, m := range g.Members {
		effective := slices.Collect(m.PollablePartitions())
		allowed := fair
		if extra > 0 {
			allowed++
			if len(effective) > fair {
				extra--
			}
		}
		for i := len(effective) - 1; i >= allowed; i-- {
			moves = append(moves, surplus{m, effective[i]})
		}
	}
	flying := slices.Sorted(slices.Values(inFlight))
	for i, move := range moves {
		target := idle[i%len(idle)]
		if _, busy := slices.BinarySearch(flying, move.partition); busy {
			move.source.Revoking = append(slices.Clip(move.source.Revoking),
				Revocation{Partition: move.partition, Target: target.Slot, CreatedAt: now})
			continue
		}
		move.source.give(move.partition, target)
	}
}

// idle are the members without partitions that no pending revocation has as its target.
func (g *Group) idle() []*Member {
	var idle []*Member
	for _, m := range g.Members {
		if len(m.Partitions) == 0 && !g.expects(m.Slot) {
			idle = append(idle, m)
		}
	}
	return idle
}

func (g *Group) expects(slot uint32) bool {
	for _, m := range g.Members {
		for i := range m.Revoking {
			if m.Revoking[i].Target == slot {
				return true
			}
		}
	}
	return false
}

// give moves a partition to the end of target's list.
func (m *Member) give(partition uint32, target *Member) {
	m.Partitions = slices.DeleteFunc(slices.Clone(m.Partitions), func(p uint32) bool { return p == partition })
	target.Partitions = append(slices.Clip(target.Partitions), partition)
}

// leave removes client and deals everything anew.
func (g *Group) leave(client wire.U128) *Group {
	c := g.clone()
	c.Members = slices.DeleteFunc(c.Members, func(m *Member) bool { return m.Client == client })
	c.deal(g.partitions)
	return c
}

// resize deals n partitions anew after their number changed.
func (g *Group) resize(n uint32) *Group {
	c := g.clone()
	c.deal(n)
	return c
}

// complete ends the pending revocation of a partition owned by client; nil when there is none.
func (g *Group) complete(client wire.U128, partition uint32) *Group {
	i := slices.IndexFunc(g.Members, func(m *Member) bool { return m.Client == client })
	if i < 0 || !g.Members[i].revokes(partition) {
		return nil
	}
	c := g.clone()
	source := c.Members[i]
	at := slices.IndexFunc(source.Revoking, func(r Revocation) bool { return r.Partition == partition })
	target, found := slices.BinarySearchFunc(c.Members, source.Revoking[at].Target, compareSlot)
	if !found {
		c.deal(g.partitions)
		return c
	}
	source.Revoking = slices.Delete(slices.Clone(source.Revoking), at, at+1)
	source.give(partition, c.Members[target])
	c.Generation++
	c.index()
	return c
}

// deal is the eager rebalance: it forgets every assignment and pending revocation and gives
// partition i to member i mod M.
func (g *Group) deal(n uint32) {
	g.Generation++
	g.partitions = n
	for _, m := range g.Members {
		m.Partitions, m.Revoking = nil, nil
	}
	if len(g.Members) > 0 {
		for p := range n {
			m := g.Members[int(p)%len(g.Members)]
			m.Partitions = append(m.Partitions, p)
		}
	}
	g.index()
}

// index rebuilds owners from the members' lists.
func (g *Group) index() {
	g.owners = nil
	if len(g.Members) > 0 {
		g.owners = make([]uint32, g.partitions)
	}
	for _, m := range g.Members {
		for _, p := range m.Partitions {
			g.owners[p] = m.Slot + 1
		}
	}
}

// revoking reports whether any revocation is pending.
func (g *Group) revoking() bool {
	for _, m := range g.Members {
		if len(m.Revoking) > 0 {
			return true
		}
	}
	return false
}

// Surplus lists the partitions that would leave their owner if client joined now. Only these matter
// in the in-flight list of its Join.
func (g *Group) Surplus(client wire.U128) []uint32 {
	joined := g.join(client, nil, 0)
	var moving []uint32
	for p, owner := range g.owners {
		if owner != 0 && owner != joined.owners[p] {
			moving = append(moving, uint32(p))
		}
	}
	return moving
}
