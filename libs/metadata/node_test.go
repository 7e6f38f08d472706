package metadata

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// aNode is a partition replica in its n-th life.
func aNode(id uint8, life uint64) wire.Node {
	return wire.Node{
		UUID: client(uint64(id) + 100), ID: id, Role: wire.RolePartition, Epoch: life,
		Zone: []byte("z"), Replica: []byte("r:1"), Service: []byte("s:1"),
	}
}

func (l *log) register(n wire.Node) Reply {
	return l.commit(wire.PrepareHeader{Operation: wire.OpRegisterNode}, n.Append(nil))
}

// A node keeps its id over restarts, with new addresses; an earlier life that is heard late changes nothing.
func TestNodeRegistration(t *testing.T) {
	l := newLog(t)
	empty := l.v
	first := l.register(aNode(5, 1))
	if payload, err := wire.DecodeResult(first.Body); err != nil || len(payload) != 1 || payload[0] != 5 {
		t.Fatalf("%q %v", payload, err)
	}
	moved := aNode(5, 2)
	moved.Service = []byte("s:2")
	l.register(moved)
	l.register(aNode(5, 1))
	n := l.v.Node(5)
	if n == nil || n.Service != "s:2" || n.Epoch != 2 || n.Zone != "z" || n != l.v.NodeByUUID(moved.UUID) {
		t.Fatalf("%+v", n)
	}
	if empty.Node(5) != nil || !empty.SameNodes(nil) || l.v.SameNodes(empty) || !l.v.SameNodes(l.v) {
		t.Error("views share nodes they should not, or the other way round")
	}
	snapshot(t, l.v)
}

// An id has one node and a node one id: whoever chose otherwise tries again.
func TestNodeIDsAreUnique(t *testing.T) {
	l := newLog(t)
	l.register(aNode(5, 1))
	stranger, wanderer := aNode(6, 1), aNode(5, 2)
	stranger.ID, wanderer.ID = 5, 6
	none := aNode(7, 1)
	none.ID = wire.NoNode
	for name, c := range map[string]struct {
		node wire.Node
		want wire.Code
	}{
		"an id that is taken": {stranger, wire.CodeInvalidIdentifier},
		"a second id":         {wanderer, wire.CodeInvalidIdentifier},
		"no id":               {none, wire.CodeInvalidCommand},
	} {
		if r := l.register(c.node); r.Code != c.want {
			t.Errorf("%s: %v", name, r.Code)
		}
	}
	if l.v.nodes.Len() != 1 || l.v.Node(5).Epoch != 1 {
		t.Error("a refused registration changed something")
	}
}

// A place is freed for the life it was given up for, not for a later one.
func TestNodeGone(t *testing.T) {
	l := newLog(t)
	l.register(aNode(5, 1))
	old := l.v.Node(5)
	l.register(aNode(5, 2))
	gone := func(n *Node) Reply {
		return l.commit(wire.PrepareHeader{Operation: wire.OpRegisterNode}, LogNodeChange(nil, n, wire.NodeLeaves))
	}
	if r := gone(old); r.Code != 0 || l.v.Node(5) == nil {
		t.Fatalf("%v: a node that came back is gone", r.Code)
	}
	if r := gone(l.v.Node(5)); r.Code != 0 || l.v.Node(5) != nil {
		t.Fatalf("%v: the node is still there", r.Code)
	}
	if r := gone(old); r.Code != 0 {
		t.Errorf("gone twice: %v", r.Code)
	}
	l.register(aNode(5, 3))
	if n := l.v.Node(5); n == nil || n.Epoch != 3 {
		t.Errorf("%+v", n)
	}
}
