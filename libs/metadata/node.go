package metadata

import (
	"iter"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Node is a process with a replica role that has taken a place in the cluster. Metadata replicas of a
// static roster need none: their ids and addresses are configured.
type Node struct {
	ID      uint8
	UUID    wire.U128 // of its data directory
	Role    wire.Role
	Epoch   uint64 // of the process that registered last
	Zone    string
	Replica string // host:port of the replica plane
	Service string // host:port of the service plane
	// Draining: nothing new is placed here, and what is here is to move away.
	Draining bool
}

// Nodes yields the registered nodes in id order.
func (v *View) Nodes() iter.Seq2[uint8, *Node] { return v.nodes.All() }

// Node returns the node with this id, nil when there is none.
func (v *View) Node(id uint8) *Node {
	n, _ := v.nodes.Get(id)
	return n
}

// NodeByUUID returns the node of this data directory, nil when it is not registered.
func (v *View) NodeByUUID(uuid wire.U128) *Node {
	for _, n := range v.nodes.All() {
		if n.UUID == uuid {
			return n
		}
	}
	return nil
}

// SameNodes reports whether no node came, went or changed between two views of one log. A nil older view
// has no nodes.
func (v *View) SameNodes(older *View) bool {
	if older == nil {
		return v.nodes.Len() == 0
	}
	same := true
	difference(older.nodes, v.nodes, func(uint8, *Node, bool, *Node, bool) bool {
		same = false
		return false
	})
	return same
}

// registerNode gives a node its logged id, or the id back. The primary chose an id that was free when it
// did; when it is another's by now, the registration is refused and tried again. Of two processes of one
// data directory the later start counts.
func (v *View) registerNode(body []byte) ([]byte, wire.Code) {
	q, err := wire.DecodeNode(body)
	if err != nil || q.ID == wire.NoNode {
		return nil, wire.CodeInvalidCommand
	}
	known, holder := v.NodeByUUID(q.UUID), v.Node(q.ID)
	switch {
	case q.Change == wire.NodeLeaves:
		if known != nil && known.Epoch == q.Epoch {
			v.nodes = v.nodes.delete(known.ID)
		}
	case q.Change != wire.NodeTakes:
		if known == nil {
			return nil, wire.CodeResourceNotFound
		}
		changed := *known
		changed.Draining = q.Change == wire.NodeDrains
		v.nodes = v.nodes.set(known.ID, &changed)
	case known != nil && known.ID != q.ID, known == nil && holder != nil:
		return nil, wire.CodeInvalidIdentifier
	case known == nil || q.Epoch >= known.Epoch:
		v.nodes = v.nodes.set(q.ID, &Node{
			ID: q.ID, UUID: q.UUID, Role: q.Role, Epoch: q.Epoch,
			Zone: string(q.Zone), Replica: string(q.Replica), Service: string(q.Service),
			Draining: known != nil && known.Draining,
		})
	}
	return []byte{q.ID}, 0
}

// LogNode appends the logged form of a registration under the id the primary chose.
func LogNode(dst []byte, q wire.Node, id uint8) []byte {
	q.ID = id
	return q.Append(dst)
}

// LogNodeChange appends the body with which the primary frees the place of a node, or has it drained or not.
func LogNodeChange(dst []byte, n *Node, change wire.NodeChange) []byte {
	return wire.Node{UUID: n.UUID, ID: n.ID, Role: n.Role, Change: change, Epoch: n.Epoch}.Append(dst)
}
