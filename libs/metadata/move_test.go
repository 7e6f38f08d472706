package metadata

import (
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// moves is a log with one topic of one partition on nodes 1, 2 and 3.
func moves(t *testing.T) (l *log, part func() Partition, group func() uint64, move func(wire.Move) wire.Code) {
	t.Helper()
	l = newLog(t)
	l.commit(wire.PrepareHeader{Operation: wire.OpCreateStream}, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	l.commit(wire.PrepareHeader{Operation: wire.OpCreateTopicWithAssignments}, wire.LoggedCreateTopic{
		Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t"),
		Assignments: []wire.Assignment{{Members: []byte{1, 2, 3}}},
	}.Append(nil))
	topic := func() *Topic {
		topic, code := l.v.Topic(wire.NamedID("s"), wire.NamedID("t"))
		if code != 0 {
			t.Fatal(code)
		}
		return topic
	}
	part = func() Partition { p, _ := topic().Partition(0); return p }
	group = func() uint64 { p := part(); return topic().GroupID(&p) }
	move = func(m wire.Move) wire.Code {
		return l.commit(wire.PrepareHeader{Operation: wire.OpSucceedPartition}, m.Append(nil)).Code
	}
	return l, part, group, move
}

var seal = wire.LogSeal{Op: 40, Identity: wire.U128{Lo: 5, Hi: 6}, Timestamp: 7}

// A move goes through its states once, whatever is said twice, and a snapshot holds each of them.
func TestMoveOfPartition(t *testing.T) {
	l, part, group, move := moves(t)
	kept := func() {
		t.Helper()
		v, err := DecodeSnapshot(l.v.EncodeSnapshot(nil), Limits{})
		if err != nil || string(v.EncodeSnapshot(nil)) != string(l.v.EncodeSnapshot(nil)) {
			t.Fatalf("the snapshot is another: %v", err)
		}
	}
	old, to := group(), []byte{2, 4, 1}
	if code := move(wire.Move{Kind: wire.MoveStart, Group: old, Members: to}); code != 0 {
		t.Fatal(code)
	}
	kept()
	if p := part(); group() != old || string(p.Target()) != string(to) || string(p.Members()) != "\x01\x02\x03" {
		t.Errorf("a move that has begun: %v to %v", p.Members(), p.Target())
	}
	if code := move(wire.Move{Kind: wire.MoveStart, Group: old, Members: []byte{1, 2, 5}}); code == 0 {
		t.Error("a second move while one is under way")
	}
	if code := move(wire.Move{Kind: wire.MoveSucceed, Group: old, Members: to, Seal: seal}); code != 0 {
		t.Fatal(code)
	}
	kept()
	p := part()
	next := group()
	_, successor, ok := l.v.Successor(old)
	if next == old || p.Moving() || string(p.Members()) != string(to) || p.Settled() || !ok || successor.ID != p.ID ||
		p.Origin.Seal != seal || string(p.Origin.Members()) != "\x01\x02\x03" {
		t.Errorf("%+v", p)
	}
	if !l.v.DeletedGroup(old) || l.v.DeletedGroup(next) {
		t.Error("the sealed group's life is over, that of its successor is not")
	}
	if code := move(wire.Move{Kind: wire.MoveSucceed, Group: old, Members: to, Seal: seal}); code == 0 || group() != next {
		t.Error("a report that came twice made a second successor")
	}
	if code := move(wire.Move{Kind: wire.MoveStart, Group: next, Members: []byte{1, 2, 5}}); code == 0 {
		t.Error("a move before the last one has settled")
	}
	if code := move(wire.Move{Kind: wire.MoveSettle, Group: next}); code != 0 || !settled(part()) {
		t.Error(code)
	}
	kept()
	if code := move(wire.Move{Kind: wire.MoveStart, Group: next, Members: []byte{1, 2}}); code == 0 {
		t.Error("the number of copies changed")
	}
}

func settled(p Partition) bool { return p.Settled() }

// A move that is given up leaves everything as it was; one that is given up too late is complete, and another target
// stands.
func TestMoveGivenUp(t *testing.T) {
	_, part, group, move := moves(t)
	old := group()
	if code := move(wire.Move{Kind: wire.MoveCancel, Group: old}); code == 0 {
		t.Error("there was nothing to give up")
	}
	move(wire.Move{Kind: wire.MoveStart, Group: old, Members: []byte{4, 5, 6}})
	if code := move(wire.Move{Kind: wire.MoveCancel, Group: old}); code != 0 || group() != old {
		t.Fatal(code)
	}
	if p := part(); p.Moving() || string(p.Members()) != "\x01\x02\x03" {
		t.Errorf("%v to %v", p.Members(), p.Target())
	}
	move(wire.Move{Kind: wire.MoveStart, Group: old, Members: []byte{7, 8, 9}})
	if code := move(wire.Move{Kind: wire.MoveSucceed, Group: old, Members: []byte{4, 5, 6}, Seal: seal}); code != 0 {
		t.Fatal(code)
	}
	if p := part(); string(p.Members()) != "\x04\x05\x06" || string(p.Target()) != "\x07\x08\x09" {
		t.Errorf("%v to %v", p.Members(), p.Target())
	}
}

// A topic that is deleted while its partition moves takes all of its groups with it, and one made anew is none of them.
func TestDeleteDuringMove(t *testing.T) {
	l, _, group, move := moves(t)
	old := group()
	move(wire.Move{Kind: wire.MoveStart, Group: old, Members: []byte{4, 2, 3}})
	move(wire.Move{Kind: wire.MoveSucceed, Group: old, Members: []byte{4, 2, 3}, Seal: seal})
	next := group()
	l.commit(wire.PrepareHeader{Operation: wire.OpDeleteTopic}, wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}.Append(nil))
	for _, id := range []uint64{old, next} {
		if !l.v.DeletedGroup(id) {
			t.Errorf("group %#x is not proven to be gone", id)
		}
	}
	l.commit(wire.PrepareHeader{Operation: wire.OpCreateTopicWithAssignments}, wire.LoggedCreateTopic{
		Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t"), Assignments: []wire.Assignment{{Members: []byte{1, 2, 3}}},
	}.Append(nil))
	if again := group(); slices.Contains([]uint64{old, next}, again) || l.v.DeletedGroup(again) {
		t.Errorf("group %#x", again)
	}
	if code := move(wire.Move{Kind: wire.MoveSucceed, Group: next, Members: []byte{4, 2, 3}, Seal: seal}); code == 0 {
		t.Error("a report of a deleted group counted")
	}
}

// A node that is drained stays so when it starts again, until somebody takes it back.
func TestDrainedNode(t *testing.T) {
	l := newLog(t)
	l.register(aNode(5, 1))
	change := func(c wire.NodeChange) wire.Code {
		return l.commit(wire.PrepareHeader{Operation: wire.OpRegisterNode}, LogNodeChange(nil, l.v.Node(5), c)).Code
	}
	if code := change(wire.NodeDrains); code != 0 || !l.v.Node(5).Draining {
		t.Fatal(code)
	}
	l.register(aNode(5, 2))
	v, err := DecodeSnapshot(l.v.EncodeSnapshot(nil), Limits{})
	if err != nil || !v.Node(5).Draining || !l.v.Node(5).Draining {
		t.Errorf("a start ended the drain, or a snapshot did: %v", err)
	}
	if code := change(wire.NodeStays); code != 0 || l.v.Node(5).Draining {
		t.Error(code)
	}
}
