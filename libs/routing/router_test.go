package routing

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// node is one process. It refuses what it is asked.
type node struct{ status wire.Code }

func (n *node) Serve(c *link.Call) { c.Refuse(n.status, link.ReasonNotPrimary) }

// A refusal by a member that is not aimed at any more does not move the aim, and neither does one by a
// primary that has no room.
func TestRouterKeepsItsAim(t *testing.T) {
	nodes := map[uint8]*node{1: {}, 2: {}, 3: {}}
	r := New(Config{Metadata: []byte{1, 2, 3}, Dial: func(id uint8) link.Service { return nodes[id] }})
	refused := func(node uint8, why link.Reason, view uint32) {
		c := link.NewCall()
		c.Group, c.Status, c.Reason, c.View = wire.MetadataGroup, wire.CodeTransientNotAccepted, why, view
		r.Refused(c, nodes[node])
	}
	aimed := func(want uint8) {
		t.Helper()
		if r.Service(wire.MetadataGroup) != link.Service(nodes[want]) {
			t.Errorf("node %d is not aimed at", want)
		}
	}
	aimed(1)
	for range 3 {
		refused(1, link.ReasonNotPrimary, 0) // three calls at once
	}
	aimed(2)
	refused(2, link.ReasonBusy, 0)
	refused(2, link.ReasonBehind, 0)
	aimed(2)
	refused(2, link.ReasonNotPrimary, 4)
	aimed(2) // member 4 mod 3
	refused(3, link.ReasonViewChange, 5)
	aimed(3)
	refused(1, link.ReasonNotPrimary, 1) // an older view
	aimed(3)
	refused(3, link.ReasonUnreachable, 0)
	refused(1, link.ReasonUnreachable, 0)
	refused(2, link.ReasonUnreachable, 0)
	aimed(3)
}

// A node nobody has an address of is passed over at once.
func TestRouterWithoutAnAddress(t *testing.T) {
	third := &node{}
	r := New(Config{Metadata: []byte{1, 2, 3}, Dial: func(id uint8) link.Service {
		if id == 3 {
			return third
		}
		return nil
	}})
	if r.Service(wire.MetadataGroup) != link.Service(third) {
		t.Error("the one that can be reached is not found")
	}
}

// Partitions are found by their own members, in their order, or by the roster.
func TestMembersOfPartitions(t *testing.T) {
	view := metadata.New(metadata.RootUser{Name: "iggy"}, metadata.Limits{})
	apply := func(op wire.Operation, body []byte) {
		h := wire.PrepareHeader{Op: view.Op + 1, Timestamp: 1, Operation: op, Group: wire.MetadataGroup}
		var reply metadata.Reply
		if view, reply = view.Apply(&h, body); reply.Code != 0 {
			t.Fatal(reply.Code)
		}
	}
	apply(wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	for name, place := range map[string]func(int) [][]byte{"placed": func(int) [][]byte { return [][]byte{{7, 8, 9}} }, "everywhere": nil} {
		body := wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte(name)}.Append(nil)
		op, logged, code := view.Admit(nil, &metadata.Request{Operation: wire.OpCreateTopic, Body: body, Place: place})
		if code != 0 {
			t.Fatal(code)
		}
		apply(op, logged)
	}
	nodes := map[uint8]*node{}
	for id := range uint8(10) {
		nodes[id] = &node{status: wire.CodeTransientNotAccepted}
	}
	r := New(Config{View: func() *metadata.View { return view }, Roster: []byte{1, 2, 3}, Dial: func(id uint8) link.Service { return nodes[id] }})
	for name, want := range map[string][]uint8{"placed": {7, 8, 9, 7}, "everywhere": {1, 2, 3, 1}} {
		topic, _ := view.Topic(wire.NamedID("s"), wire.NamedID(name))
		p, _ := topic.Partition(0)
		for i, id := range want {
			if r.Service(topic.GroupID(&p)) != link.Service(nodes[id]) {
				t.Errorf("%s, try %d: node %d is not aimed at", name, i, id)
			}
			c := link.NewCall()
			c.Group = topic.GroupID(&p)
			r.Ask(c)
		}
	}
	if r.Service(wire.GroupID(9, 9, 9, 0)) != nil {
		t.Error("a group nobody knows is routed")
	}
}
