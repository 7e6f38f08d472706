package partitionreplica

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestDeposedMember: what a front-door let through when the member owned the partition reaches it when
// another member does. The deposed one moves no offset and is told to look again.
func TestDeposedMember(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	w.topic(1)
	for range 4 {
		w.send(0, "x")
	}
	g := wire.GroupTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Group: wire.NamedID("g")}
	w.change(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: g.Stream, Topic: g.Topic, Name: []byte("g")}.Append(nil))
	w.change(wire.OpJoinGroup, g.Append(nil))
	topic, _ := w.meta.View().Topic(g.Stream, g.Topic)
	group := topic.Group(g.Group)
	k := offsetKey{wire.ConsumerGroup, group.GroupKey.Group}
	as := func(c *link.Call, client wire.U128, generation uint64) *link.Call {
		c.Header.Client, c.Generation = client, generation
		return c
	}
	first := group.Generation
	if n := w.polled(w.serve(as(w.pollCall(k, 0, 1, false), admin, first))); n != 1 {
		t.Fatalf("the owner got %d messages", n)
	}

	other := wire.U128{Lo: 2, Hi: 2}
	session := w.orderAs(other, 0, &link.Call{Header: wire.RequestHeader{Operation: wire.OpRegister}}).Op
	w.orderAs(other, session, &link.Call{Header: wire.RequestHeader{Operation: wire.OpJoinGroup}, Body: g.Append(nil)})
	w.change(wire.OpLeaveGroup, g.Append(nil))
	topic, _ = w.meta.View().Topic(g.Stream, g.Topic)
	if group = topic.Group(g.Group); !group.Owns(other, 0) {
		t.Fatal("the partition did not change hands")
	}

	for name, c := range map[string]*link.Call{
		"store": as(w.storeCall(k, 0, 3), admin, first),
		"poll":  as(w.pollCall(k, 0, 4, true), admin, first),
	} {
		if w.serve(c); c.Status != wire.CodeTransientNotAccepted || c.Reason != link.ReasonBehind {
			t.Errorf("%s of a deposed member: status %v, reason %v", name, c.Status, c.Reason)
		}
	}
	if at, ok := w.stored(k, 0); ok {
		t.Errorf("the deposed member moved the offset to %d", at)
	}
	now := group.Generation
	if n := w.polled(w.serve(as(w.pollCall(k, 0, 2, true), other, now))); n != 2 {
		t.Errorf("the new owner got %d messages, want 2", n)
	}
	if at, _ := w.stored(k, 0); at != 1 {
		t.Errorf("offset %d after the new owner's auto-commit, want 1", at)
	}

	// A poll that was read before the hand-over ends after it.
	p := w.find(w.group(0))
	p.polledUpTo(as(w.pollCall(k, 0, 4, true), admin, first), k, 3, 0, true)
	if at, _ := w.stored(k, 0); at != 1 {
		t.Errorf("the deposed member's poll moved the offset to %d", at)
	}
	if p.offsets.mark(k.id, other, 2); !p.offsets.inFlight(k.id, other) {
		t.Error("the new owner's mark was lost")
	}
	w.close()
}

// TestDeletedGroupLeavesNoOffset: an offset that was ordered before the group's delete and applied
// behind it would hold retention back for ever.
func TestDeletedGroupLeavesNoOffset(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	w.topic(1)
	w.send(0, "x")
	k := offsetKey{wire.ConsumerGroup, 9} // deleted
	w.find(w.group(0)).offsets.set(k, 0, false)
	w.clean()
	if at, ok := w.stored(k, 0); ok {
		t.Errorf("offset %d of a deleted group is still there after a cleaner's pass", at)
	}
	w.close()
}
