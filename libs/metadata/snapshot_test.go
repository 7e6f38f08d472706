package metadata

import (
	"errors"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The documented seven fields are all there is when nothing needs more.
func TestExtensionOnlyWhenNeeded(t *testing.T) {
	l := newLog(t)
	fields := func() int { return int(snapshot(t, l.v)[0] & 0xf) }
	server := func(op wire.Operation, b body) {
		if r := l.commit(wire.PrepareHeader{Operation: op}, b.Append(nil)); r.Code != 0 {
			t.Fatalf("%v: %v", op, r.Code)
		}
	}
	server(wire.OpCreateStream, createStream("a"))
	server(wire.OpCreateTopicWithAssignments, wire.LoggedCreateTopic{Stream: name("a"), Name: []byte("t")})
	l.login(client(1), RootID)
	if fields() != 7 {
		t.Fatalf("%d fields", fields())
	}
	server(wire.OpDeleteTopic, wire.TopicTarget{Stream: name("a"), Topic: name("t")})
	if fields() != 8 {
		t.Fatal("the delete of the slot is lost")
	}
}

// References that do not fit are refused.
func TestSnapshotRefusesBrokenReferences(t *testing.T) {
	good := populated(t).v
	snapshot(t, good)
	group := func(v *View, change func(g *Group)) {
		g := v.GroupByKey(GroupKey{0, 0, 0}).clone()
		change(g)
		v.setGroup(g)
	}
	topic := func(v *View, change func(t *Topic)) {
		changed := *v.TopicByKey(TopicKey{0, 0})
		change(&changed)
		v.setTopic(&changed)
	}
	table := func(v *View, change func(c *Client)) {
		c := *v.Client(client(1000))
		c.Replies = slices.Clone(c.Replies)
		change(&c)
		v.clients = v.clients.set(client(1000), &c)
	}
	for what, spoil := range map[string]func(v *View){
		"partition with two owners": func(v *View) {
			group(v, func(g *Group) { g.Members[1].Partitions = append(slices.Clone(g.Members[1].Partitions), 0) })
		},
		"partition without owner":     func(v *View) { group(v, func(g *Group) { g.Members[0].Partitions = []uint32{0} }) },
		"partition beyond the topic":  func(v *View) { group(v, func(g *Group) { g.Members[0].Partitions = []uint32{0, 1, 3} }) },
		"members out of order":        func(v *View) { group(v, func(g *Group) { g.Members[0].Slot = 9 }) },
		"one client twice":            func(v *View) { group(v, func(g *Group) { g.Members[1].Client = g.Members[0].Client }) },
		"revocation of a foreign one": func(v *View) { group(v, func(g *Group) { g.Members[1].Revoking = []Revocation{{Partition: 0}} }) },
		"group id beyond the counter": func(v *View) { topic(v, func(t *Topic) { t.nextGroupID = 0 }) },
		"gap in partition ids": func(v *View) {
			topic(v, func(t *Topic) { p, _ := t.Partition(2); t.partitions = t.partitions.delete(2).set(3, p) })
		},
		"topic under another id":  func(v *View) { topic(v, func(t *Topic) { t.ID = 0; t.Name = "" }) },
		"unknown option":          func(v *View) { topic(v, func(t *Topic) { t.Explicit = u64Option("colour", 1) }) },
		"option out of range":     func(v *View) { topic(v, func(t *Topic) { t.Explicit = u64Option("segment_size", 1) }) },
		"token of a foreign user": func(v *View) { v.addToken(v.UserByID(1), &Token{UserID: 0, Name: "x", Hash: string(make([]byte, 64))}) },
		"short token hash":        func(v *View) { v.addToken(v.UserByID(1), &Token{UserID: 1, Name: "x", Hash: "abc"}) },
		"user name twice":         func(v *View) { v.addUser(&User{ID: 5, Name: "iggy"}) },
		"user without a name":     func(v *View) { v.addUser(&User{ID: 5}) },
		"reply to another client": func(v *View) {
			table(v, func(c *Client) { r := *c.Replies[4]; r.Header.Client = client(5); c.Replies[4] = &r })
		},
		"replies out of order": func(v *View) {
			table(v, func(c *Client) { c.Replies[0], c.Replies[4] = c.Replies[4], c.Replies[0] })
		},
		"one node twice": func(v *View) {
			again := *v.Node(5)
			again.ID = 6
			v.nodes = v.nodes.set(6, &again)
		},
		"node without a role": func(v *View) {
			bad := *v.Node(5)
			bad.Role = 0
			v.nodes = v.nodes.set(5, &bad)
		},
		"node without an id":    func(v *View) { v.nodes = v.nodes.set(wire.NoNode, &Node{ID: wire.NoNode, UUID: client(9), Role: 1}) },
		"slot beyond the limit": func(v *View) { v.slots = v.slots.delete(0).set(maxClients, client(1000)) },
		"tag beyond the limit": func(v *View) {
			topic(v, func(t *Topic) { p, _ := t.Partition(0); p.Tag = 2048; t.partitions = t.partitions.set(0, p) })
		},
	} {
		bad := *good
		spoil(&bad)
		if _, err := DecodeSnapshot(bad.EncodeSnapshot(nil), Limits{}); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
