package metadata

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func TestMainPath(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	if c := l.v.Client(s.id); c.Epoch != 1 {
		t.Fatalf("first session is %d", c.Epoch) // assertion 6
	}
	s.must(wire.OpCreateStream, createStream("orders"))
	s.must(wire.OpCreateTopic, createTopic("orders", "t1", 3))
	s.must(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("orders"), Topic: number(0), Name: []byte("g")})
	target := wire.GroupTarget{Stream: name("orders"), Topic: name("t1"), Group: name("g")}
	s.must(wire.OpJoinGroup, target)
	g, code := l.v.Group(target.Stream, target.Topic, target.Group)
	if code != 0 || !g.Owns(s.id, 2) || !g.Pollable(s.id, 0) {
		t.Fatalf("sole member does not own the partitions: %v %+v", code, g)
	}
	snapshot(t, l.v)
	s.must(wire.OpCreatePartitions, wire.PartitionsRequest{Stream: name("orders"), Topic: name("t1"), Count: 2})
	s.must(wire.OpLeaveGroup, target)
	s.must(wire.OpDeletePartitions, wire.PartitionsRequest{Stream: name("orders"), Topic: name("t1"), Count: 4})
	s.must(wire.OpCreatePartitions, wire.PartitionsRequest{Stream: name("orders"), Topic: name("t1"), Count: 1})
	topic, _ := l.v.Topic(name("orders"), name("t1"))
	p0, _ := topic.Partition(0)
	p1, _ := topic.Partition(1)
	if p0.Tag != 0 || p1.Tag != 1 || topic.Partitions() != 2 {
		t.Fatalf("tags %d %d, %d partitions", p0.Tag, p1.Tag, topic.Partitions())
	}
	s.must(wire.OpPurgeStream, wire.StreamTarget{Stream: name("orders")})
	s.must(wire.OpDeleteTopic, wire.TopicTarget{Stream: name("orders"), Topic: name("t1")})
	s.must(wire.OpDeleteStream, wire.StreamTarget{Stream: name("orders")})
	l.logout(s.id)
	if l.v.Client(s.id) != nil {
		t.Fatal("session survives logout")
	}
	snapshot(t, l.v)
}
