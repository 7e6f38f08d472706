package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Move gives a partition another member list.
type Move struct {
	Partition Partition
	To        []int // the leader of view 0 first
}

// Joins are the nodes that have to copy the partition.
func (m *Move) Joins() (nodes []int) {
	for _, id := range m.To {
		if !slices.Contains(m.Partition.Members, id) {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

// Bytes is what the move copies.
func (m *Move) Bytes() uint64 { return uint64(len(m.Joins())) * m.Partition.SizeBytes }

// ErrNodes: there are too few nodes to hold every copy.
var ErrNodes = errors.New("placement: too few nodes")

// Rebalance lists the moves after which every copy is on a node that is up and not drained, nodes hold equally many
// copies within one, and are first in equally many lists within one. It moves as few copies as that takes, of two that
// do as well the smaller partition, and keeps zones apart as far as it can. Partitions that are moving count as arrived.
func Rebalance(c *Cluster) ([]Move, error) {
	p, err := newPlanner(c)
	if err != nil {
		return nil, err
	}
	if err := p.replace(); err != nil {
		return nil, err
	}
	p.level()
	p.lead()
	return p.moves(), nil
}

// Drain lists the moves that take everything off the nodes that are draining, and no others. Of the lists that change
// anyhow nodes are first in as equally many as that allows.
func Drain(c *Cluster) ([]Move, error) {
	p, err := newPlanner(c)
	if err != nil {
		return nil, err
	}
	p.replaceable = func(id int) bool { // what is down and not drained may come back
		n := p.nodes[id]
		return n == nil || n.Draining
	}
	if err := p.replace(); err != nil {
		return nil, err
	}
	p.kept = true
	p.lead()
	return p.moves(), nil
}

// planner is a plan in the making.
type planner struct {
	nodes map[int]*Node
	ids   []int // that may hold copies, ascending
	lists []list
	holds map[int]int // copies by node
	leads map[int]int

	replaceable func(id int) bool
	kept        bool // lists that need not change stay as they are
}

// list is a partition's members as they are to be.
type list struct {
	partition *Partition
	members   []int
	changed   bool
	fixed     bool // it is moving already
}

func newPlanner(c *Cluster) (*planner, error) {
	p := &planner{nodes: map[int]*Node{}, holds: map[int]int{}, leads: map[int]int{}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if p.nodes[n.ID] = n; n.Alive && !n.Draining {
			p.ids = append(p.ids, n.ID)
		}
	}
	slices.Sort(p.ids)
	p.replaceable = func(id int) bool { return !slices.Contains(p.ids, id) }
	for i := range c.Partitions {
		part := &c.Partitions[i]
		l := list{partition: part, members: slices.Clone(part.Members), fixed: !part.Resting()}
		if len(part.Target) > 0 {
			l.members = slices.Clone(part.Target)
		}
		if len(l.members) == 0 {
			return nil, fmt.Errorf("placement: partition %d of topic %d of stream %d has no members of its own: all nodes hold everything", part.ID, part.Topic, part.Stream)
		}
		if len(l.members) > len(p.ids) {
			return nil, fmt.Errorf("%w: partition %d of topic %d of stream %d has %d copies, %d nodes are up and not drained",
				ErrNodes, part.ID, part.Topic, part.Stream, len(l.members), len(p.ids))
		}
		p.lists = append(p.lists, l)
		for at, id := range l.members {
			p.holds[id]++
			if at == 0 {
				p.leads[id]++
			}
		}
	}
	return p, nil
}

// replace takes copies off the nodes that may not keep them.
func (p *planner) replace() error {
	for i := range p.lists {
		l := &p.lists[i]
		for at, id := range l.members {
			if l.fixed || !p.replaceable(id) {
				continue
			}
			to, ok := p.emptiest(l, id)
			if !ok {
				return fmt.Errorf("%w: nobody can take partition %d of topic %d of stream %d from node %d",
					ErrNodes, l.partition.ID, l.partition.Topic, l.partition.Stream, id)
			}
			p.put(l, at, to)
		}
	}
	return nil
}

// emptiest is the node that holds least and can take the place of one in a list: in a zone that the others of the list
// are not in, if there is one.
func (p *planner) emptiest(l *list, instead int) (best int, ok bool) {
	for _, id := range p.ids {
		if slices.Contains(l.members, id) {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(p.shared(l, id, instead), p.shared(l, best, instead)), cmp.Compare(p.holds[id], p.holds[best])) < 0 {
			best, ok = id, true
		}
	}
	return best, ok
}

// shared is how many members of a list, one aside, are in the zone of a node.
func (p *planner) shared(l *list, id, aside int) (count int) {
	for _, other := range l.members {
		if n := p.nodes[other]; other != aside && other != id && n != nil && n.Zone == p.nodes[id].Zone {
			count++
		}
	}
	return count
}

// put replaces the member at a place of a list.
func (p *planner) put(l *list, at, id int) {
	p.holds[l.members[at]]--
	p.holds[id]++
	if at == 0 {
		p.leads[l.members[at]]--
		p.leads[id]++
	}
	l.members[at], l.changed = id, true
}

// level moves copies from full nodes to empty ones until they hold equally many within one.
func (p *planner) level() {
	for {
		full, empty := p.byLoad(p.holds)
		moved := false
	pairs:
		for _, from := range full {
			for _, to := range empty {
				if p.holds[from]-p.holds[to] < 2 {
					break
				}
				if l, at := p.movable(from, to); l != nil {
					p.put(l, at, to)
					moved = true
					break pairs
				}
			}
		}
		if !moved {
			return
		}
	}
}

// byLoad is the nodes from the one with most to that with least, and the other way round.
func (p *planner) byLoad(load map[int]int) (full, empty []int) {
	full = slices.Clone(p.ids)
	slices.SortStableFunc(full, func(a, b int) int { return cmp.Compare(load[b], load[a]) })
	empty = slices.Clone(p.ids)
	slices.SortStableFunc(empty, func(a, b int) int { return cmp.Compare(load[a], load[b]) })
	return full, empty
}

// movable is the list from which a copy goes best from one node to another: one that moves anyway, one whose zones stay
// apart, one that is small. Nil: there is none.
func (p *planner) movable(from, to int) (best *list, at int) {
	worse := func(l *list) int { return p.shared(l, to, from) - p.shared(l, from, from) }
	for i := range p.lists {
		l := &p.lists[i]
		place := slices.Index(l.members, from)
		if l.fixed || place < 0 || slices.Contains(l.members, to) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(max(0, worse(l)), max(0, worse(best))), -compareBool(l.changed, best.changed),
			cmp.Compare(l.partition.SizeBytes, best.partition.SizeBytes)) < 0 {
			best, at = l, place
		}
	}
	return best, at
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// lead has nodes that are first in many lists give way to other members of them, until all are first in equally many
// within one, or nothing more can be done.
func (p *planner) lead() {
	for {
		full, empty := p.byLoad(p.leads)
		done := true
	pairs:
		for _, from := range full {
			for _, to := range empty {
				if p.leads[from]-p.leads[to] < 2 {
					break
				}
				if path := p.chain(from, to); path != nil {
					for _, step := range path {
						p.first(step.list, step.id)
					}
					done = false
					break pairs
				}
			}
		}
		if done {
			return
		}
	}
}

// step makes a node the first of a list.
type step struct {
	list *list
	id   int
}

// chain is the shortest row of changes that takes a lead from one node and gives one to another: the first list goes
// from the one to a member of it, which gives up another list, and so on.
func (p *planner) chain(from, to int) []step {
	type reached struct {
		step
		from int
	}
	way := map[int]reached{}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, changed := range []bool{true, false} { // lists that move anyway first
			for i := range p.lists {
				l := &p.lists[i]
				if l.fixed || p.kept && !l.changed || l.changed != changed || l.members[0] != at {
					continue
				}
				for _, id := range l.members[1:] {
					if _, known := way[id]; known || id == from {
						continue
					}
					way[id] = reached{step{l, id}, at}
					queue = append(queue, id)
				}
			}
		}
		if _, ok := way[to]; ok {
			break
		}
	}
	if _, ok := way[to]; !ok {
		return nil
	}
	var path []step
	for at := to; at != from; at = way[at].from {
		path = append(path, way[at].step)
	}
	return path
}

// first puts a member of a list in front.
func (p *planner) first(l *list, id int) {
	at := slices.Index(l.members, id)
	p.leads[l.members[0]]--
	p.leads[id]++
	l.members[0], l.members[at] = l.members[at], l.members[0]
	l.changed = true
}

// moves are the lists that changed.
func (p *planner) moves() (all []Move) {
	for i := range p.lists {
		if l := &p.lists[i]; l.changed && !slices.Equal(l.members, l.partition.Members) {
			all = append(all, Move{Partition: *l.partition, To: l.members})
		}
	}
	return all
}

// Load is what a node holds by a cluster's lists, targets in place of what they replace.
type Load struct{ Copies, Leads int }

// Loads counts the copies of every node.
func Loads(c *Cluster) map[int]Load {
	loads := map[int]Load{}
	for i := range c.Nodes {
		loads[c.Nodes[i].ID] = Load{}
	}
	for i := range c.Partitions {
		p := &c.Partitions[i]
		members := p.Members
		if len(p.Target) > 0 {
			members = p.Target
		}
		for at, id := range members {
			l := loads[id]
			l.Copies++
			if at == 0 {
				l.Leads++
			}
			loads[id] = l
		}
	}
	return loads
}

// Spread is how far apart the nodes are that are up and not drained: the difference between the most and the least
// copies, and leads.
func Spread(c *Cluster) (copies, leads int) {
	loads := Loads(c)
	low, high := Load{1 << 30, 1 << 30}, Load{}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Alive && !n.Draining {
			l := loads[n.ID]
			low = Load{min(low.Copies, l.Copies), min(low.Leads, l.Leads)}
			high = Load{max(high.Copies, l.Copies), max(high.Leads, l.Leads)}
		}
	}
	return high.Copies - low.Copies, high.Leads - low.Leads
}
