package metadatareplica

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// copyFor is how long, in µs, a report of a copy is shown.
const copyFor = 3_000_000

// copyKey names what one node copies.
type copyKey struct {
	group uint64
	node  uint8
}

// copyState is a report and when it came. Nothing of it is replicated.
type copyState struct {
	report wire.Copied
	at     uint64
}

// noteCopied remembers how far a copy is, for who looks on.
func (r *Replica) noteCopied(c *link.Call) {
	if q, err := wire.DecodeCopied(c.Body); err == nil {
		now := r.engine.Now()
		for k, s := range r.copies {
			if s.at+copyFor < now {
				delete(r.copies, k)
			}
		}
		r.copies[copyKey{q.Group, q.Node}] = copyState{q, now}
	}
	c.Finish()
}

// admitMoved orders what a member of a group reports of its move. A report that comes again finds that it is so and
// is answered at once.
func (r *Replica) admitMoved(c *link.Call, p *loop.Proposal) bool {
	m, err := wire.DecodeMove(c.Body)
	if err != nil || m.Kind != wire.MoveSucceed && m.Kind != wire.MoveSettle {
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
		return false
	}
	_, part, ok := r.current.PartitionByGroupID(m.Group)
	if !ok || m.Kind == wire.MoveSettle && part.Settled() {
		c.Op = r.current.Op
		c.Finish()
		return false
	}
	*p = proposal(wire.OpSucceedPartition, wire.U128{}, noRequest, 0, m.Append(make([]byte, wire.HeaderSize)))
	return true
}

// command answers an operator's command about where partitions are. What would lose data is refused.
func (r *Replica) command(c *link.Call, p *loop.Proposal) bool {
	var q placement.Command
	if err := json.Unmarshal(c.Body, &q); err != nil {
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
		return false
	}
	body := make([]byte, wire.HeaderSize)
	refused := ""
	op := wire.OpSucceedPartition
	switch {
	case r.nodes.placement.Replicas == 0:
		refused = "every node of this cluster holds every partition: there is nothing to place"
	case q.Do == placement.DoStatus:
		return r.reply(c, placement.Answer{Cluster: r.cluster()})
	case q.Do == placement.DoMove:
		if refused = r.refuseMove(&q); refused == "" {
			body = wire.Move{Kind: wire.MoveStart, Group: q.Group, Members: nodeIDs(q.Members)}.Append(body)
		}
	case q.Do == placement.DoCancel:
		if _, part, ok := r.current.PartitionByGroupID(q.Group); !ok || !part.Moving() {
			refused = "the partition is not moving"
		}
		body = wire.Move{Kind: wire.MoveCancel, Group: q.Group}.Append(body)
	case q.Do == placement.DoDrain || q.Do == placement.DoKeep || q.Do == placement.DoRemove:
		op = wire.OpRegisterNode
		body, refused = r.changeNode(&q, body)
	default:
		refused = fmt.Sprintf("%q is no command", q.Do)
	}
	if refused != "" {
		return r.reply(c, placement.Answer{Refused: refused})
	}
	r.log.Info("an operator moves partitions", "do", q.Do, "group", q.Group, "members", q.Members, "node", q.Node)
	*p = proposal(op, wire.U128{}, noRequest, 0, body)
	return true
}

func (r *Replica) reply(c *link.Call, a placement.Answer) bool {
	c.Op = r.current.Op
	c.Out, _ = json.Marshal(a)
	c.ReplyOp = wire.OpNonReplicated
	c.Finish()
	return false
}

// nodeIDs are the members of a command; what is no node id becomes one that is refused.
func nodeIDs(members []int) []byte {
	ids := make([]byte, len(members))
	for i, id := range members {
		if ids[i] = byte(id); id < 0 || id >= int(wire.NoNode) {
			ids[i] = wire.NoNode
		}
	}
	return ids
}

// refuseMove says why a partition can not go where it should, or "".
func (r *Replica) refuseMove(q *placement.Command) string {
	_, part, ok := r.current.PartitionByGroupID(q.Group)
	members, now := nodeIDs(q.Members), r.engine.Now()
	switch {
	case !ok:
		return "the partition is not there, or has moved since: look again"
	case !part.Placed():
		return "the partition has no members of its own"
	case part.Moving():
		return fmt.Sprintf("the partition is moving to %v already: wait, or cancel that", part.Target())
	case !part.Settled():
		return "the last move of the partition is not complete everywhere: wait"
	case len(members) != len(part.Members()):
		return fmt.Sprintf("the partition has %d copies, %d are named: their number stays", len(part.Members()), len(members))
	case slices.Equal(members, part.Members()):
		return "the partition is there already"
	}
	for i, id := range members {
		node := r.current.Node(id)
		_, stays := part.MemberIndex(id)
		switch {
		case slices.Contains(members[:i], id):
			return fmt.Sprintf("node %d is named twice", id)
		case node == nil || node.Role&wire.RolePartition == 0:
			return fmt.Sprintf("there is no partition replica %d", q.Members[i])
		case !stays && node.Draining:
			return fmt.Sprintf("node %d is being drained", id)
		case !stays && !r.nodes.alive(id, now):
			return fmt.Sprintf("node %d is down: it can not copy the partition", id)
		}
	}
	enough := vsr.QuorumsOf(len(members))
	quorum := max(enough.Replication, enough.ViewChange)
	if n := r.living(part.Members(), now); n < quorum {
		return fmt.Sprintf("%d of the nodes that hold the partition are up, %d are needed to end its group without losing anything", n, quorum)
	}
	if n := r.living(members, now); n < quorum {
		return fmt.Sprintf("%d of the nodes that are to hold the partition are up, %d are needed", n, quorum)
	}
	return ""
}

func (r *Replica) living(members []byte, now uint64) (count int) {
	for _, id := range members {
		if r.nodes.alive(id, now) {
			count++
		}
	}
	return count
}

// changeNode appends what a node's place becomes, or says why not.
func (r *Replica) changeNode(q *placement.Command, body []byte) (logged []byte, refused string) {
	if q.Node < 0 || q.Node >= int(wire.NoNode) {
		return nil, fmt.Sprintf("there is no partition replica %d", q.Node)
	}
	id := uint8(q.Node)
	node := r.current.Node(id)
	if node == nil || node.Role&wire.RolePartition == 0 {
		return nil, fmt.Sprintf("there is no partition replica %d", id)
	}
	switch q.Do {
	case placement.DoDrain:
		return metadata.LogNodeChange(body, node, wire.NodeDrains), ""
	case placement.DoKeep:
		return metadata.LogNodeChange(body, node, wire.NodeStays), ""
	}
	r.nodes.load.follow(r.current)
	switch {
	case r.nodes.load.hosts[id] > 0:
		return nil, fmt.Sprintf("node %d holds %d partitions: drain it first", id, r.nodes.load.hosts[id])
	case r.nodes.alive(id, r.engine.Now()):
		return nil, fmt.Sprintf("node %d is up and would register again: stop it first", id)
	}
	r.nodes.leaving[id] = true
	return metadata.LogNodeChange(body, node, wire.NodeLeaves), ""
}

// cluster is where everything is.
func (r *Replica) cluster() *placement.Cluster {
	now := r.engine.Now()
	all := &placement.Cluster{Op: r.current.Op, Nodes: []placement.Node{}, Partitions: []placement.Partition{}}
	for id, n := range r.current.Nodes() {
		if n.Role&wire.RolePartition != 0 {
			all.Nodes = append(all.Nodes, placement.Node{
				ID: int(id), Zone: n.Zone, Address: n.Service, Alive: r.nodes.alive(id, now), Draining: n.Draining,
			})
		}
	}
	for _, s := range r.current.Streams() {
		for _, t := range s.Topics() {
			for id, part := range t.AllPartitions() {
				p := placement.Partition{
					Stream: s.ID, Topic: t.ID, ID: id, Group: t.GroupID(&part), Members: numbers(part.Members()), Target: numbers(part.Target()),
					Settling: !part.Settled(),
				}
				for _, node := range part.Target() {
					if s, ok := r.copies[copyKey{p.Group, node}]; ok && s.at+copyFor > now {
						p.Copies = append(p.Copies, placement.Copy{Node: int(node), Bytes: s.report.Bytes, Of: s.report.Of, Ready: s.report.Op > 0})
					}
				}
				all.Partitions = append(all.Partitions, p)
			}
		}
	}
	return all
}

func numbers(ids []byte) []int {
	list := make([]int, len(ids))
	for i, id := range ids {
		list[i] = int(id)
	}
	return list
}

// watchNodes says loudly what a node takes with it that went down without being drained, and counts what is left with
// fewer copies than it should have.
func (r *Replica) watchNodes() {
	if !r.primary {
		r.nodes.missed = [256]bool{}
		r.metrics.short.Set(0)
		return
	}
	now, short := r.engine.Now(), 0
	down := func(id uint8) bool {
		return !r.nodes.alive(id, now) && now > r.nodes.since+aliveFor
	}
	for _, s := range r.current.Streams() {
		for _, t := range s.Topics() {
			for _, part := range t.AllPartitions() {
				if slices.ContainsFunc(part.Members(), down) {
					short++
				}
			}
		}
	}
	r.metrics.short.Set(float64(short))
	r.nodes.load.follow(r.current)
	for id := range r.current.Nodes() {
		copies := r.nodes.load.hosts[id]
		switch missed := down(id) && copies > 0; {
		case missed && !r.nodes.missed[id]:
			r.log.Error("a partition replica is down and was not drained: its partitions have a copy less until it is back, or until "+
				"\"whippet cluster rebalance\" makes new ones", "node", id, "copies", copies)
		case !missed && r.nodes.missed[id]:
			r.log.Info("a partition replica that was down is back, or holds nothing any more", "node", id)
		}
		r.nodes.missed[id] = down(id) && copies > 0
	}
}
