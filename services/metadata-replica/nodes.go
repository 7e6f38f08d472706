package metadatareplica

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Placement says how the partitions of a cluster are spread over its partition replicas.
type Placement struct {
	// Replicas is how many nodes hold a partition: 1, 3, 5 or 7. 0: nothing is placed, every node of the
	// roster has every partition, and nobody registers.
	Replicas int
	// Reserved are node ids that are not given out: those of the metadata replicas.
	Reserved []uint8
}

// Times of nodes in µs.
const (
	// aliveFor is how long a node counts as up after a sign of life.
	aliveFor = 3_000_000
	// goneAfter is how long a node that holds nothing keeps its place while it is down
	// (design-arguments.md 18).
	goneAfter = 600_000_000
)

// nodes is what the primary knows of the registered nodes beyond their registration. Nothing of it is
// replicated: a new primary learns it within seconds.
type nodes struct {
	placement Placement
	since     uint64 // when this member began to lead, µs
	heard     [256]uint64
	leaving   [256]bool // an op that forgets the node is on its way, or was applied
	missed    [256]bool // it was said that the node is down
	load      load
	shortage  shortage
}

// lead forgets what was known in an earlier term.
func (n *nodes) lead(now uint64) {
	n.since, n.heard, n.leaving, n.missed, n.shortage = now, [256]uint64{}, [256]bool{}, [256]bool{}, shortage{}
}

func (n *nodes) alive(id uint8, now uint64) bool {
	return n.heard[id] > 0 && now < n.heard[id]+aliveFor
}

// absent is how long a node has given no sign of life, at most since this member leads.
func (n *nodes) absent(id uint8, now uint64) uint64 { return now - max(n.since, n.heard[id]) }

// choose finds the id of a node that registers: the one it has, the one it had if that is free, or the lowest
// free one. NoNode: all are taken.
func (n *nodes) choose(v *metadata.View, q *wire.Node) uint8 {
	if known := v.NodeByUUID(q.UUID); known != nil {
		return known.ID
	}
	n.load.follow(v)
	free := func(id uint8) bool {
		return v.Node(id) == nil && n.load.hosts[id] == 0 && !slices.Contains(n.placement.Reserved, id)
	}
	if q.ID != wire.NoNode && free(q.ID) {
		return q.ID
	}
	for id := range wire.NoNode {
		if free(id) {
			return id
		}
	}
	return wire.NoNode
}

// gone lists the nodes whose place is to be freed.
func (n *nodes) gone(v *metadata.View, now uint64) (list []*metadata.Node) {
	n.load.follow(v)
	for id, node := range v.Nodes() {
		if n.load.hosts[id] == 0 && n.absent(id, now) > goneAfter {
			list = append(list, node)
		}
	}
	return list
}

// admitNode lets a registration in, under the id the primary chooses.
func (r *Replica) admitNode(c *link.Call, p *loop.Proposal) bool {
	q, err := wire.DecodeNode(c.Body)
	if err != nil || q.Change != wire.NodeTakes || r.nodes.placement.Replicas == 0 {
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
		return false
	}
	id := r.nodes.choose(r.current, &q)
	if id == wire.NoNode {
		c.Refuse(wire.CodeInvalidIdentifier, link.ReasonNone)
		return false
	}
	r.nodes.heard[id], r.nodes.leaving[id] = r.engine.Now(), false
	*p = proposal(wire.OpRegisterNode, wire.U128{}, noRequest, 0, metadata.LogNode(make([]byte, wire.HeaderSize), q, id))
	return true
}

// nodeAlive notes a sign of life. A node that is not registered as it says has to register again.
func (r *Replica) nodeAlive(c *link.Call) {
	q, err := wire.DecodeNode(c.Body)
	if err != nil || q.ID == wire.NoNode {
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
		return
	}
	known := r.current.Node(q.ID)
	if known == nil || r.nodes.leaving[q.ID] || known.UUID != q.UUID || known.Epoch != q.Epoch || known.Role != q.Role ||
		known.Zone != string(q.Zone) || known.Replica != string(q.Replica) || known.Service != string(q.Service) {
		c.Refuse(wire.CodeResourceNotFound, link.ReasonNone)
		return
	}
	r.nodes.heard[q.ID] = r.engine.Now()
	c.Finish()
}

// census counts the registered nodes, those of them that give no sign of life, and the copies these hold.
func (n *nodes) census(v *metadata.View, now uint64) (registered, down, copies int) {
	n.load.follow(v)
	for id := range v.Nodes() {
		registered++
		if !n.alive(id, now) {
			down++
			copies += n.load.hosts[id]
		}
	}
	return registered, down, copies
}

// unavailable counts the partitions of which most copies are on nodes that give no sign of life.
func (n *nodes) unavailable(v *metadata.View, now uint64) (count int) {
	for _, stream := range v.Streams() {
		for _, topic := range stream.Topics() {
			for _, p := range topic.AllPartitions() {
				silent := 0
				for _, id := range p.Members() {
					if !n.alive(id, now) {
						silent++
					}
				}
				if p.Placed() && 2*silent >= len(p.Members()) {
					count++
				}
			}
		}
	}
	return count
}

// count shows the census, as only the primary can take it.
func (r *Replica) count() {
	registered, down, copies, unavailable := 0, 0, 0, 0
	if r.primary {
		now := r.engine.Now()
		if registered, down, copies = r.nodes.census(r.current, now); copies > 0 {
			unavailable = r.nodes.unavailable(r.current, now)
		}
	}
	r.metrics.nodes.Set(float64(registered))
	r.metrics.down.Set(float64(down))
	r.metrics.copies.Set(float64(copies))
	r.metrics.unavailable.Set(float64(unavailable))
}

// freePlaces proposes to forget the nodes that are gone.
func (r *Replica) freePlaces() {
	if !r.primary {
		return
	}
	for _, n := range r.nodes.gone(r.current, r.engine.Now()) {
		if r.own(wire.OpRegisterNode, wire.U128{}, noRequest, metadata.LogNodeChange(make([]byte, wire.HeaderSize), n, wire.NodeLeaves)) {
			r.nodes.leaving[n.ID] = true
		}
	}
}
