package metadatareplica

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// patience is how long in µs a create waits for nodes that are missing, counted over all its repeats.
const patience = 30_000_000

// load is how many partitions each node holds and leads in view 0, kept up with the views.
type load struct {
	seen         *metadata.View
	hosts, leads [256]int
}

// follow counts in what changed up to v.
func (l *load) follow(v *metadata.View) {
	if l.seen == v {
		return
	}
	v.Changes(l.seen, func(older, newer *metadata.Topic) bool {
		l.count(older, -1)
		l.count(newer, 1)
		return true
	})
	l.seen = v
}

func (l *load) count(t *metadata.Topic, by int) {
	if t == nil {
		return
	}
	for _, p := range t.AllPartitions() {
		l.add(p.Members(), by)
		for _, id := range p.Target() { // they are on their way
			if _, member := p.MemberIndex(id); !member {
				l.hosts[id] += by
			}
		}
	}
}

func (l *load) add(members []byte, by int) {
	for i, id := range members {
		l.hosts[id] += by
		if i == 0 {
			l.leads[id] += by
		}
	}
}

// shortage is how long creates have been refused for too few nodes. It ends with a create that is not, or
// when nobody has asked for as long as creates wait.
type shortage struct{ since, last uint64 }

// code is what to refuse a create with: try again, or for good once it has lasted.
func (s *shortage) code(now uint64) wire.Code {
	if s.since == 0 || now > s.last+patience {
		s.since = now
	}
	s.last = now
	if now-s.since < patience {
		return wire.CodeTransientNotAccepted
	}
	return wire.CodeInvalidReplicationFactor
}

// candidate is a node that may hold a new partition, with what it has to hold already.
type candidate struct {
	id           uint8
	zone         string
	hosts, leads int
}

// place decides who holds n new partitions: the nodes that are up and hold least, no two of one zone
// while there are others, led by the one of them that leads least. staged are creates that are decided
// and not applied. Apply copies the decision, it never computes one (design-arguments.md 8). The number
// of copies is never lowered: with too few nodes the code says how to refuse.
func (n *nodes) place(v *metadata.View, staged [][]byte, count int, now uint64) ([][]byte, wire.Code) {
	n.load.follow(v)
	all := n.candidates(v, staged, now)
	if len(all) < n.placement.Replicas {
		return nil, n.shortage.code(now)
	}
	n.shortage = shortage{}
	lists := make([][]byte, count)
	for i := range lists {
		chosen := pick(all, n.placement.Replicas)
		leader := slices.MinFunc(chosen, func(a, b *candidate) int { return a.leads - b.leads })
		leader.leads++
		at := slices.Index(chosen, leader)
		for j := range chosen {
			c := chosen[(at+j)%len(chosen)]
			c.hosts++
			lists[i] = append(lists[i], c.id)
		}
	}
	return lists, 0
}

// candidates are the nodes that are up and not drained.
func (n *nodes) candidates(v *metadata.View, staged [][]byte, now uint64) (all []*candidate) {
	pending := load{}
	for _, members := range staged {
		pending.add(members, 1)
	}
	for id, node := range v.Nodes() {
		if node.Role&wire.RolePartition != 0 && n.alive(id, now) && !node.Draining {
			all = append(all, &candidate{
				id: id, zone: node.Zone, hosts: n.load.hosts[id] + pending.hosts[id], leads: n.load.leads[id] + pending.leads[id],
			})
		}
	}
	return all
}

// pick takes r of the candidates: least loaded first, and of zones that are not taken as long as there
// are any.
func pick(all []*candidate, r int) []*candidate {
	slices.SortStableFunc(all, func(a, b *candidate) int { return a.hosts - b.hosts })
	chosen := make([]*candidate, 0, r)
	for len(chosen) < r {
		fresh := slices.IndexFunc(all, func(c *candidate) bool {
			return !slices.Contains(chosen, c) && !slices.ContainsFunc(chosen, func(o *candidate) bool { return o.zone == c.zone })
		})
		if fresh < 0 {
			fresh = slices.IndexFunc(all, func(c *candidate) bool { return !slices.Contains(chosen, c) })
		}
		chosen = append(chosen, all[fresh])
	}
	return chosen
}

// placed are the member lists that a logged create decides.
func placed(op wire.Operation, body []byte) (lists [][]byte) {
	var list []wire.Assignment
	switch op {
	case wire.OpCreateTopicWithAssignments:
		q, _ := wire.DecodeLoggedCreateTopic(body)
		list = q.Assignments
	case wire.OpCreatePartitionsWithAssignments:
		q, _ := wire.DecodeLoggedCreatePartitions(body)
		list = q.Assignments
	}
	for i := range list {
		lists = append(lists, slices.Clone(list[i].Members))
	}
	return lists
}

// placer decides for one request; short becomes the code to refuse it with. Nil: nothing is placed.
func (r *Replica) placer(short *wire.Code) func(n int) [][]byte {
	if r.nodes.placement.Replicas == 0 {
		return nil
	}
	return func(n int) (lists [][]byte) {
		var staged [][]byte
		for i := range r.staged {
			staged = append(staged, r.staged[i].members...)
		}
		lists, *short = r.nodes.place(r.current, staged, n, r.engine.Now())
		return lists
	}
}
