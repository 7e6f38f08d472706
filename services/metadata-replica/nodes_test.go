package metadatareplica

import (
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// roster is a replica that places partitions over nodes, with a clock of the test's.
type roster struct {
	*Replica
	t   *testing.T
	now uint64 // µs
}

const started = 1_000_000_000

func newRoster(t *testing.T, replicas int, reserved ...uint8) *roster {
	r := &roster{t: t, now: started}
	r.Replica = openWith(t, vfs.NewMem(1), func(c *Config) {
		c.Placement = Placement{Replicas: replicas, Reserved: reserved}
		c.Engine.Clock = func() uint64 { return r.now }
	})
	return r
}

func node(uuid uint64, zone string) wire.Node {
	return wire.Node{
		UUID: wire.U128{Lo: uuid}, ID: wire.NoNode, Role: wire.RolePartition, Epoch: 1, Zone: []byte(zone),
		Replica: []byte("r:1"), Service: []byte("s:1"),
	}
}

func (r *roster) internal(what link.Internal, body []byte) *link.Call {
	r.t.Helper()
	c := link.NewCall()
	c.Group, c.Internal, c.Body = wire.MetadataGroup, what, body
	r.Serve(c)
	select {
	case <-c.Done():
	default:
		r.t.Fatal("not answered")
	}
	return c
}

// register returns the node with the id it was given.
func (r *roster) register(n wire.Node) wire.Node {
	r.t.Helper()
	c := r.internal(link.InternalRegister, n.Append(nil))
	payload, err := wire.DecodeResult(c.Out)
	if c.Status != 0 || err != nil || len(payload) != 1 || c.ReplyOp != wire.OpNonReplicated {
		r.t.Fatalf("status %v, %v, reply to %v", c.Status, err, c.ReplyOp)
	}
	n.ID = payload[0]
	return n
}

func (r *roster) alive(n wire.Node) wire.Code {
	r.t.Helper()
	return r.internal(link.InternalAlive, n.Append(nil)).Status
}

// create makes a topic and returns the status and the member lists of its partitions.
func (r *roster) create(client wire.U128, session, request uint64, name string, partitions uint32) (wire.Code, [][]byte) {
	r.t.Helper()
	c := call(wire.OpCreateTopic, client, session, request, wire.CreateTopicRequest{
		Stream: wire.NamedID("s"), PartitionsCount: partitions, Name: []byte(name),
	}.Append(nil))
	r.Serve(c)
	<-c.Done()
	if c.Status != 0 {
		return c.Status, nil
	}
	topic, code := r.View().Topic(wire.NamedID("s"), wire.NamedID(name))
	if code != 0 {
		r.t.Fatal(code)
	}
	var lists [][]byte
	for _, p := range topic.AllPartitions() {
		lists = append(lists, p.Members())
	}
	return 0, lists
}

// stream makes stream s and returns the session to go on with.
func (r *roster) stream() (client wire.U128, session uint64) {
	r.t.Helper()
	client = wire.U128{Lo: 77}
	session = serve(r.t, r.Replica, login(client)).Op
	serve(r.t, r.Replica, createStream(client, session, 1, "s"))
	return client, session
}

// Ids are the lowest that nobody uses; a node that comes back has its own again.
func TestNodeIDs(t *testing.T) {
	r := newRoster(t, 1, 0, 1, 2)
	a, b := r.register(node(1, "")), r.register(node(2, ""))
	if a.ID != 3 || b.ID != 4 {
		t.Fatalf("ids %d and %d", a.ID, b.ID)
	}
	if again := r.register(node(1, "")); again.ID != a.ID {
		t.Errorf("id %d after a restart", again.ID)
	}
	wants := node(3, "")
	wants.ID = 9
	if got := r.register(wants); got.ID != 9 {
		t.Errorf("id %d instead of the free one it had", got.ID)
	}
	wants = node(4, "")
	wants.ID = a.ID
	if got := r.register(wants); got.ID != 5 {
		t.Errorf("id %d instead of the one it had, which is taken", got.ID)
	}
	if c := r.internal(link.InternalRegister, []byte("what")); c.Status != wire.CodeInvalidCommand {
		t.Errorf("status %v", c.Status)
	}
}

// A sign of life counts for the registration it names, and for no other.
func TestSignsOfLife(t *testing.T) {
	r := newRoster(t, 1)
	a := r.register(node(1, ""))
	if code := r.alive(a); code != 0 {
		t.Errorf("status %v", code)
	}
	moved, reborn, stranger := a, a, a
	moved.Service, reborn.Epoch, stranger.UUID = []byte("s:2"), 2, wire.U128{Lo: 9}
	for _, n := range []wire.Node{moved, reborn, stranger} {
		if code := r.alive(n); code != wire.CodeResourceNotFound {
			t.Errorf("%+v: status %v", n, code)
		}
	}
	r.Role(false, 1)
	if code := r.alive(a); code != wire.CodeTransientNotAccepted {
		t.Errorf("status %v at a backup", code)
	}
}

// A node that is down for ten minutes loses its place, unless it holds partitions, and not before a new
// primary has waited for it as long.
func TestPlacesAreFreed(t *testing.T) {
	r := newRoster(t, 1)
	client, session := r.stream()
	holder := r.register(node(1, ""))
	if code, _ := r.create(client, session, 2, "t", 1); code != 0 {
		t.Fatal(code)
	}
	idle := r.register(node(2, ""))
	there := func() (ids []uint8) {
		r.Engine().Do(r.sweep)
		for id := range r.View().Nodes() {
			ids = append(ids, id)
		}
		return ids
	}
	r.now += goneAfter
	if got := there(); !slices.Equal(got, []uint8{holder.ID, idle.ID}) {
		t.Fatalf("%v after ten minutes", got)
	}
	r.Role(true, 3)
	r.now += goneAfter
	if got := there(); !slices.Equal(got, []uint8{holder.ID, idle.ID}) {
		t.Fatalf("%v after ten minutes of a new primary", got)
	}
	r.now++
	if got := there(); !slices.Equal(got, []uint8{holder.ID}) {
		t.Errorf("%v are left", got)
	}
	if n, down, copies := r.nodes.census(r.View(), r.now); n != 1 || down != 1 || copies != 1 {
		t.Errorf("%v nodes, %v down with %v copies", n, down, copies)
	}
}

// A node that comes back in the very moment its place is freed registers again: nothing is placed under an id
// that nobody has.
func TestNodeThatReturnsWhileItIsForgotten(t *testing.T) {
	r := newRoster(t, 1)
	n := r.register(node(1, ""))
	r.now += 2 * goneAfter
	r.Engine().Do(func() {
		r.freePlaces()
		c := link.NewCall()
		c.Body = n.Append(nil)
		if r.nodeAlive(c); c.Status != wire.CodeResourceNotFound || r.nodes.alive(n.ID, r.now) {
			t.Errorf("status %v for a node that is about to be forgotten: partitions are placed on it", c.Status)
		}
	})
	if again := r.register(n); again.ID != n.ID || r.alive(again) != 0 {
		t.Errorf("registered as %d, was %d", again.ID, n.ID)
	}
}

// Copies are spread by load, leaders too, and a node that is down gets nothing.
func TestPlacement(t *testing.T) {
	r := newRoster(t, 3)
	client, session := r.stream()
	var nodes []wire.Node
	for i := range uint64(5) {
		nodes = append(nodes, r.register(node(i+1, "")))
	}
	r.now += aliveFor
	for _, n := range nodes[:4] {
		r.alive(n)
	}
	code, lists := r.create(client, session, 2, "t", 8)
	if code != 0 || len(lists) != 8 {
		t.Fatalf("status %v, %d lists", code, len(lists))
	}
	var hosts, leads [256]int
	for _, members := range lists {
		if len(members) != 3 || members[0] == members[1] || members[1] == members[2] || members[0] == members[2] {
			t.Fatalf("members %v", members)
		}
		leads[members[0]]++
		for _, id := range members {
			hosts[id]++
		}
	}
	for _, n := range nodes[:4] {
		if hosts[n.ID] != 6 || leads[n.ID] != 2 {
			t.Errorf("node %d holds %d of 24 copies and leads %d of 8", n.ID, hosts[n.ID], leads[n.ID])
		}
	}
	if id := nodes[4].ID; hosts[id] != 0 {
		t.Errorf("node %d is down and holds %d", id, hosts[id])
	}
	r.now++
	for _, n := range nodes {
		r.alive(n)
	}
	if _, lists = r.create(client, session, 3, "u", 2); !slices.Contains(lists[0], nodes[4].ID) || !slices.Contains(lists[1], nodes[4].ID) {
		t.Errorf("the emptiest node has nothing of %v", lists)
	}
}

// No two copies are in one zone while another zone has room.
func TestPlacementOverZones(t *testing.T) {
	r := newRoster(t, 3)
	client, session := r.stream()
	zones := map[uint8]string{}
	for i, zone := range []string{"a", "a", "a", "b", "c"} {
		zones[r.register(node(uint64(i+1), zone)).ID] = zone
	}
	_, lists := r.create(client, session, 2, "t", 6)
	for _, members := range lists {
		seen := map[string]bool{}
		for _, id := range members {
			seen[zones[id]] = true
		}
		if len(seen) != 3 {
			t.Errorf("members %v are in %v", members, seen)
		}
	}
}

// Copies are never fewer than asked for: a create waits for nodes, and is refused for good once it has
// waited long enough.
func TestPlacementWithTooFewNodes(t *testing.T) {
	r := newRoster(t, 3)
	client, session := r.stream()
	r.register(node(1, ""))
	r.register(node(2, ""))
	refused := func(want wire.Code) {
		t.Helper()
		if code, _ := r.create(client, session, 2, "t", 1); code != want {
			t.Fatalf("status %v, want %v", code, want)
		}
	}
	beat := func() {
		r.alive(r.register(node(1, "")))
		r.alive(r.register(node(2, "")))
	}
	refused(wire.CodeTransientNotAccepted)
	r.now += patience - 1
	beat()
	refused(wire.CodeTransientNotAccepted)
	r.now++
	refused(wire.CodeInvalidReplicationFactor)
	r.now += patience + 1
	refused(wire.CodeTransientNotAccepted) // another episode
	beat()
	r.register(node(3, ""))
	if code, lists := r.create(client, session, 2, "t", 1); code != 0 || len(lists[0]) != 3 {
		t.Fatalf("status %v, lists %v with three nodes", code, lists)
	}
}

// Creates that are decided and not applied count: they have to share the nodes with later ones.
func TestPlacementCountsWhatIsStaged(t *testing.T) {
	r := newRoster(t, 1)
	r.stream()
	a, b := r.register(node(1, "")), r.register(node(2, ""))
	var short wire.Code
	first := r.placer(&short)(1)
	body := wire.LoggedCreateTopic{Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t"), Assignments: []wire.Assignment{{Members: first[0]}}}
	if _, err := r.Stage(&wire.PrepareHeader{Op: 99, Operation: wire.OpCreateTopicWithAssignments}, body.Append(nil)); err != nil {
		t.Fatal(err)
	}
	second := r.placer(&short)(1)
	if got := []uint8{first[0][0], second[0][0]}; !slices.Equal(got, []uint8{a.ID, b.ID}) {
		t.Errorf("two creates went to nodes %v", got)
	}
	r.Unstage(99)
}
