package metadata

import (
	"fmt"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Numbers in test names are those of the assertions in client-semantics §10.

func option(key string, kind wire.ValueKind, value []byte) wire.Options {
	return wire.AppendOption(nil, key, kind, value)
}

func u64Option(key string, n uint64) wire.Options {
	v := make([]byte, 8)
	for i := range v {
		v[i] = byte(n >> (8 * i))
	}
	return option(key, wire.KindUint64, v)
}

func Test40_41_StreamAndTopicIds(t *testing.T) {
	s := newLog(t).session(1, RootID)
	for i := range 3 {
		s.must(wire.OpCreateStream, createStream(fmt.Sprint("s", i)))
		s.must(wire.OpCreateTopic, createTopic("s0", fmt.Sprint("t", i), 2))
	}
	for i := range uint32(3) {
		if st := s.v.Stream(name(fmt.Sprint("s", i))); st.ID != i {
			t.Fatalf("stream %d has id %d", i, st.ID)
		}
		topic, _ := s.v.Topic(number(0), name(fmt.Sprint("t", i)))
		if topic.ID != i || topic.Partitions() != 2 {
			t.Fatalf("topic %d has id %d", i, topic.ID)
		}
	}
	s.must(wire.OpDeleteStream, wire.StreamTarget{Stream: number(1)})
	s.must(wire.OpDeleteTopic, wire.TopicTarget{Stream: number(0), Topic: number(1)})
	s.v, _ = DecodeSnapshot(snapshot(t, s.v), Limits{}) // also after a restart
	s.must(wire.OpCreateStream, createStream("again"))
	s.must(wire.OpCreateTopic, createTopic("s0", "again", 0))
	topic, _ := s.v.Topic(number(0), name("again"))
	if s.v.Stream(name("again")).ID != 1 || topic.ID != 1 {
		t.Fatal("the lowest free id was not taken")
	}
	if topic.Partitions() != 0 {
		t.Fatal("a topic without partitions is legal")
	}
}

func Test42_Names(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateStream, createStream("b"))
	s.want(result(wire.CodeStreamNameAlreadyExists), wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateStream, createStream("A"))
	s.must(wire.OpCreateStream, createStream(" a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 1))
	s.want(result(wire.CodeTopicNameAlreadyExists), wire.OpCreateTopic, createTopic("a", "t", 1))
	s.must(wire.OpCreateTopic, createTopic("b", "t", 1))
	s.want(result(wire.CodeStreamIdNotFound), wire.OpCreateTopic, createTopic("0", "t", 1)) // digits are a name
}

func Test63_64_Rename(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateStream, createStream("b"))
	rename := func(from, to string) body { return wire.UpdateStreamRequest{Stream: name(from), Name: []byte(to)} }
	s.must(wire.OpUpdateStream, rename("a", "a"))
	s.want(result(wire.CodeStreamNameAlreadyExists), wire.OpUpdateStream, rename("a", "b"))
	s.must(wire.OpUpdateStream, rename("a", "c"))
	if s.v.Stream(name("a")) != nil || s.v.Stream(name("c")).ID != 0 {
		t.Fatal("the old name resolves or the new one does not")
	}
	s.want(result(wire.CodeStreamIdNotFound), wire.OpUpdateStream, rename("a", "d"))
	s.must(wire.OpCreateTopic, createTopic("c", "t", 1))
	s.must(wire.OpCreateTopic, createTopic("c", "u", 1))
	topic := func(from, to string) body {
		return wire.UpdateTopicRequest{Stream: name("c"), Topic: name(from), Name: []byte(to)}
	}
	s.must(wire.OpUpdateTopic, topic("t", "t"))
	s.want(result(wire.CodeTopicNameAlreadyExists), wire.OpUpdateTopic, topic("t", "u"))
	s.must(wire.OpUpdateTopic, topic("t", "w"))
	if _, code := s.v.Topic(name("c"), name("t")); code != wire.CodeTopicIdNotFound {
		t.Fatalf("the old name: %v", code)
	}
}

func Test53_NoOptionsOnStreamsAndUsers(t *testing.T) {
	s := newLog(t).session(1, RootID)
	any := u64Option("message_expiry", 1)
	s.want(statusCode(wire.CodeUnsupportedOptionKey), wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("x"), Options: any})
	s.must(wire.OpCreateStream, createStream("a"))
	s.want(statusCode(wire.CodeUnsupportedOptionKey), wire.OpUpdateStream, wire.UpdateStreamRequest{Stream: name("a"), Name: []byte("x"), Options: any})
	s.want(statusCode(wire.CodeUnsupportedOptionKey), wire.OpCreateUser, wire.CreateUserRequest{Username: []byte("xyz"), Status: 1, Options: any})
	s.want(statusCode(wire.CodeUnsupportedOptionKey), wire.OpUpdateUser, wire.UpdateUserRequest{User: number(0), Options: any})
}

func Test65_DeletingAStreamRemovesAllBelow(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 3))
	s.must(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte("g")})
	s.must(wire.OpJoinGroup, wire.GroupTarget{Stream: name("a"), Topic: name("t"), Group: name("g")})
	old := s.v
	oldTopic, _ := old.Topic(name("a"), name("t"))
	oldPartition, _ := oldTopic.Partition(1)
	oldID := oldTopic.GroupID(&oldPartition)
	s.must(wire.OpDeleteStream, wire.StreamTarget{Stream: name("a")})
	if len(s.v.Memberships(s.id)) != 0 {
		t.Fatal("a membership survives its stream")
	}
	if _, _, found := s.v.PartitionByGroupID(oldID); found {
		t.Fatal("a deleted partition is found")
	}
	if old.DeletedGroup(oldID) || !s.v.DeletedGroup(oldID) || s.v.DeletedGroup(oldID|1<<52) {
		t.Fatal("the delete is proven by later views, and by those only")
	}
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 3))
	if !s.v.DeletedGroup(oldID) || s.v.DeletedGroup(oldID|1<<52) || old.DeletedGroup(oldID|1<<52) {
		t.Fatal("a group that lives, or is not born yet, was not deleted")
	}
	topic, p, _ := s.v.PartitionByGroupID(oldID | 1<<52)
	if topic == nil || p.ID != 1 || p.Tag != 1 || topic.GroupCount() != 0 {
		t.Fatalf("the new incarnation: %+v", p)
	}
	if _, _, found := s.v.PartitionByGroupID(oldID); found {
		t.Fatal("the old incarnation's id finds the new partition")
	}
	if _, _, found := old.PartitionByGroupID(oldID); !found {
		t.Fatal("the old view changed")
	}
}

func TestStreamLimit(t *testing.T) {
	s := newLog(t).session(1, RootID)
	full := *s.v
	full.streams = sortedMap(full.streams.compare, wire.MaxStreams, func(i int) (uint32, *Stream) { return uint32(i), &Stream{ID: uint32(i)} })
	s.v = &full
	s.want(result(wire.CodeTooManyStreams), wire.OpCreateStream, createStream("one more"))
}

func TestTopicLimit(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	for i := range wire.MaxTopics {
		s.must(wire.OpCreateTopic, createTopic("a", fmt.Sprint(i), 0))
	}
	s.want(result(wire.CodeTopicNameAlreadyExists), wire.OpCreateTopic, createTopic("a", "7", 0)) // the name comes first
	s.want(result(wire.CodeTooManyTopics), wire.OpCreateTopic, createTopic("a", "one more", 0))
}

func TestRevision(t *testing.T) {
	s := newLog(t).session(1, RootID)
	topic := wire.TopicTarget{Stream: name("a"), Topic: name("t")}
	group := wire.GroupTarget{Stream: name("a"), Topic: name("t"), Group: name("g")}
	partitions := func(n uint32) body { return wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: n} }
	for i, step := range []struct {
		by uint64
		op wire.Operation
		b  body
	}{
		{0, wire.OpCreateStream, createStream("a")},
		{0, wire.OpPurgeStream, wire.StreamTarget{Stream: name("a")}},
		{1, wire.OpCreateTopic, createTopic("a", "t", 0)},
		{0, wire.OpPurgeTopic, topic},
		{1, wire.OpCreatePartitions, partitions(2)},
		{1, wire.OpPurgeTopic, topic},
		{1, wire.OpPurgeStream, wire.StreamTarget{Stream: name("a")}},
		{1, wire.OpDeleteSegments, wire.DeleteSegmentsRequest{Stream: name("a"), Topic: name("t"), Partition: 1}},
		{0, wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte("g")}},
		{0, wire.OpJoinGroup, group},
		{0, wire.OpLeaveGroup, group},
		{1, wire.OpDeletePartitions, partitions(1)},
		{1, wire.OpDeleteGroup, group},
		{0, wire.OpUpdateTopic, wire.UpdateTopicRequest{Stream: name("a"), Topic: name("t"), Name: []byte("t")}},
		{1, wire.OpDeleteTopic, topic},
		{1, wire.OpDeleteStream, wire.StreamTarget{Stream: name("a")}},
	} {
		before := s.v.Revision
		s.must(step.op, step.b)
		if got := s.v.Revision - before; got != step.by {
			t.Errorf("step %d, %v: revision +%d, want +%d", i, step.op, got, step.by)
		}
	}
}
