package metadata

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// large has 100 streams of 100 topics of 10 partitions, and a thousand clients.
func large(t testing.TB) *log {
	l := newLog(t)
	s := l.session(1<<20, RootID)
	for i := range 100 {
		stream := fmt.Sprint("stream-", i)
		s.must(wire.OpCreateStream, createStream(stream))
		for j := range 100 {
			s.must(wire.OpCreateTopic, createTopic(stream, fmt.Sprint("topic-", j), 10))
		}
	}
	for i := range uint64(1000) {
		l.login(client(i), RootID)
	}
	l.prepares = nil
	return l
}

// Ten thousand topics with a hundred thousand partitions stay small: the bound is per partition, everything
// above it included.
func TestLargeViewIsSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := large(t)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perPartition := (after.HeapAlloc - before.HeapAlloc) / 100_000
	t.Logf("%d MiB, %d bytes a partition, snapshot of %d KiB", (after.HeapAlloc-before.HeapAlloc)>>20, perPartition, len(l.v.EncodeSnapshot(nil))>>10)
	if perPartition > 400 {
		t.Errorf("%d bytes a partition", perPartition)
	}
}

func BenchmarkApplyLarge(b *testing.B) {
	l := large(b)
	s := &session{log: l, id: client(1), user: RootID}
	for _, op := range []struct {
		name string
		do   func(i int)
	}{
		{"Register", func(i int) { l.login(client(uint64(i%1000)), RootID) }},
		{"CreateAndDeleteTopic", func(int) {
			s.must(wire.OpCreateTopic, createTopic("stream-50", "x", 1))
			s.must(wire.OpDeleteTopic, wire.TopicTarget{Stream: name("stream-50"), Topic: name("x")})
		}},
		{"Purge", func(int) {
			s.must(wire.OpPurgeTopic, wire.TopicTarget{Stream: name("stream-3"), Topic: name("topic-7")})
		}},
	} {
		b.Run(op.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				op.do(i)
				l.prepares = l.prepares[:0]
			}
		})
	}
}

func BenchmarkSnapshotLarge(b *testing.B) {
	l := large(b)
	image := l.v.EncodeSnapshot(nil)
	b.Run("Encode", func(b *testing.B) {
		b.SetBytes(int64(len(image)))
		for range b.N {
			l.v.EncodeSnapshot(image[:0])
		}
	})
	b.Run("Decode", func(b *testing.B) {
		b.SetBytes(int64(len(image)))
		for range b.N {
			if _, err := DecodeSnapshot(image, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLookups(b *testing.B) {
	l := large(b)
	s := &session{log: l, id: client(1), user: RootID}
	s.must(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("stream-50"), Topic: name("topic-50"), Name: []byte("g")})
	s.must(wire.OpJoinGroup, wire.GroupTarget{Stream: name("stream-50"), Topic: name("topic-50"), Group: name("g")})
	stream, topic, group := name("stream-50"), name("topic-50"), number(0)
	b.ReportAllocs()
	for range b.N {
		t, _ := l.v.Topic(stream, topic)
		p, _ := t.Partition(7)
		if _, _, ok := l.v.PartitionByGroupID(t.GroupID(&p)); !ok || !t.Group(group).Pollable(s.id, 7) {
			b.Fatal("not found")
		}
	}
}
