package metadata

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func topicWith(stream, s string, n uint32, options ...wire.Options) body {
	var all wire.Options
	for _, o := range options {
		all = append(all, o...)
	}
	return wire.CreateTopicRequest{Stream: name(stream), PartitionsCount: n, Name: []byte(s), Options: all}
}

func Test48_52_TopicBounds(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	fsync := option(wire.OptionEnforceFsync, wire.KindBool, []byte{1})
	persisted := option(wire.OptionDurability, wire.KindString, []byte("Persisted"))
	replicated := option(wire.OptionDurability, wire.KindString, []byte("replicated"))
	for _, c := range []struct {
		what string
		n    uint32
		o    []wire.Options
		want wire.Code
	}{
		{"1000 partitions", 1000, nil, 0},
		{"1001 partitions", 1001, nil, wire.CodeTooManyPartitions},
		{"10000 partitions", 10000, nil, wire.CodeTooManyPartitions},
		{"max size below the segment size", 1, []wire.Options{u64Option("max_topic_size", 1<<20)}, wire.CodeInvalidTopicSize},
		{"max size 0", 1, []wire.Options{u64Option("max_topic_size", 0)}, 0},
		{"max size unlimited", 1, []wire.Options{u64Option("max_topic_size", ^uint64(0))}, 0},
		{"segment size 512 KiB", 1, []wire.Options{u64Option("segment_size", 512<<10)}, wire.CodeInvalidOptionValue},
		{"segment size 2 GiB", 1, []wire.Options{u64Option("segment_size", 2<<30)}, wire.CodeInvalidOptionValue},
		{"segment size 1 MiB + 1", 1, []wire.Options{u64Option("segment_size", 1<<20+1)}, wire.CodeInvalidOptionValue},
		{"no messages to save", 1, []wire.Options{option("messages_required_to_save", wire.KindUint32, []byte{0, 0, 0, 0})}, wire.CodeInvalidOptionValue},
		{"unknown key", 1, []wire.Options{u64Option("colour", 1)}, wire.CodeUnsupportedOptionKey},
		{"unknown key, bad range", 1, []wire.Options{u64Option("segment_size", 1), u64Option("colour", 1)}, wire.CodeUnsupportedOptionKey},
		{"bad form before the unknown key", 1, []wire.Options{option("segment_size", wire.KindBool, []byte{1}), u64Option("colour", 1)}, wire.CodeInvalidOptionValue},
		{"too many partitions and max size", 1001, []wire.Options{u64Option("max_topic_size", 1)}, wire.CodeTooManyPartitions},
		{"bad value and too many partitions", 1001, []wire.Options{u64Option("segment_size", 1)}, wire.CodeInvalidOptionValue},
		{"both durability spellings, equal", 1, []wire.Options{fsync, persisted}, 0},
		{"both durability spellings, different", 1, []wire.Options{fsync, replicated}, wire.CodeInvalidOptionValue},
	} {
		got := s.do(wire.OpCreateTopic, topicWith("a", c.what, c.n, c.o...))
		if got.Result != 0 || got.Status != c.want {
			t.Errorf("%s: status %d result %d, want status %d", c.what, got.Status, got.Result, c.want)
		}
	}
}

func Test49_54_UpdateTopicBounds(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, topicWith("a", "t", 1, u64Option("segment_size", 2<<20)))
	update := func(topic string, o wire.Options) body {
		return wire.UpdateTopicRequest{Stream: name("a"), Topic: name(topic), Name: []byte("t"), Options: o}
	}
	for _, key := range []string{"segment_size", "enforce_fsync", "messages_required_to_save", "size_of_messages_required_to_save",
		"preallocate_segments", "durability", "consumer_offset_durability", "colour"} {
		s.want(statusCode(wire.CodeUnsupportedOptionKey), wire.OpUpdateTopic, update("t", u64Option(key, 1<<20)))
	}
	s.want(statusCode(wire.CodeInvalidTopicSize), wire.OpUpdateTopic, update("t", u64Option("max_topic_size", 1<<20)))
	s.must(wire.OpUpdateTopic, update("t", u64Option("max_topic_size", 2<<20)))
	s.must(wire.OpUpdateTopic, update("t", u64Option("max_topic_size", 0)))
	topic, _ := s.v.Topic(name("a"), name("t"))
	stored, _ := topic.Explicit.Get("max_topic_size")
	if topic.Settings.MaxTopicSize != 2<<20 || stored.Value[2] != 0 {
		t.Fatal("zero must be stored and leave the setting")
	}
	s.want(statusCode(wire.CodeInvalidTopicSize), wire.OpUpdateTopic, update("gone", u64Option("max_topic_size", 1)))
	s.want(result(wire.CodeTopicIdNotFound), wire.OpUpdateTopic, update("gone", nil))
}

func Test55_58_Provenance(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	payload := s.must(wire.OpCreateTopic, topicWith("a", "t", 2,
		u64Option("message_expiry", 0), option("compression_algorithm", wire.KindUint8, []byte{2})))
	d, err := wire.DecodeTopicDetails(payload)
	if err != nil || len(d.Partitions) != 2 || d.Partitions[1].SegmentsCount != 0 {
		t.Fatalf("reply: %v %+v", err, d)
	}
	check := func(r wire.TopicRecord, explicit, derived int) {
		t.Helper()
		e, o := count(r.Explicit), count(r.Derived)
		if e != explicit || o != derived {
			t.Fatalf("%d explicit and %d derived options", e, o)
		}
	}
	check(d.TopicRecord, 1, 7)
	if gzip, _ := d.Explicit.Get("compression_algorithm"); gzip.ValueKind != wire.KindString || string(gzip.Value) != "gzip" {
		t.Fatalf("not canonical: %+v", gzip)
	}
	if d.MessageExpiry != wire.Unlimited || d.Compression != wire.CompressionGzip {
		t.Fatalf("typed fields: %+v", d.TopicRecord)
	}
	s.must(wire.OpUpdateTopic, wire.UpdateTopicRequest{Stream: name("a"), Topic: name("t"), Name: []byte("t"),
		Options: option("message_expiry", wire.KindString, []byte("7 days"))})
	topic, _ := s.v.Topic(name("a"), name("t"))
	check(topic.Record(wire.GenerationSnapshot), 2, 6)
	if topic.Settings.MessageExpiry != 7*86400*1e6 {
		t.Fatalf("expiry %d", topic.Settings.MessageExpiry)
	}
	check(topic.Record(wire.GenerationReleased), 2, 7)
	before := topic.Record(wire.GenerationSnapshot).Append(nil)
	v, err := DecodeSnapshot(snapshot(t, s.v), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	topic, _ = v.Topic(name("a"), name("t"))
	if string(before) != string(topic.Record(wire.GenerationSnapshot).Append(nil)) {
		t.Fatal("the record changed over a restart")
	}
}

func count(o wire.Options) (n int) {
	for range o.All() {
		n++
	}
	return n
}

func TestDurabilityPolicies(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	fsync := option(wire.OptionEnforceFsync, wire.KindString, []byte("true"))
	durable := option(wire.OptionDurability, wire.KindString, []byte("PERSISTED"))
	offsets := option(wire.OptionConsumerOffsetDurability, wire.KindString, []byte("persisted"))
	for _, c := range []struct {
		name              string
		o                 []wire.Options
		messages, offsets bool
	}{
		{"none", nil, false, false},
		{"fsync", []wire.Options{fsync}, true, false},
		{"durable", []wire.Options{durable}, true, false},
		{"offsets", []wire.Options{offsets}, false, true},
		{"both", []wire.Options{durable, offsets}, true, true},
	} {
		s.must(wire.OpCreateTopic, topicWith("a", c.name, 1, c.o...))
		for range 2 { // as applied, and out of a snapshot
			topic, _ := s.v.Topic(name("a"), name(c.name))
			if topic.Settings.Persisted != c.messages || topic.Settings.OffsetsPersist != c.offsets {
				t.Errorf("%s: %+v", c.name, topic.Settings)
			}
			flag, found := topic.Derived(wire.GenerationSnapshot).Get(wire.OptionEnforceFsync)
			if named := c.name == "fsync"; found == named || found && (flag.Value[0] == 1) != c.messages {
				t.Errorf("%s: the snapshot generation sees %v %v", c.name, found, flag.Value)
			}
			s.v, _ = DecodeSnapshot(snapshot(t, s.v), Limits{})
		}
	}
}

func Test61_62_Partitions(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	l.place = func(n int) [][]byte {
		members := make([][]byte, n)
		for i := range members {
			members[i] = []byte{byte(i), 9}
		}
		return members
	}
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 3))
	change := func(n uint32) body { return wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: n} }
	for _, op := range []wire.Operation{wire.OpCreatePartitions, wire.OpDeletePartitions} {
		s.want(statusCode(wire.CodeTooManyPartitions), op, change(0))
		s.want(statusCode(wire.CodeTooManyPartitions), op, change(1001))
	}
	s.want(result(wire.CodeInvalidPartitionsCount), wire.OpDeletePartitions, change(4))
	s.must(wire.OpDeletePartitions, change(2))
	s.must(wire.OpCreatePartitions, change(3))
	topic, _ := s.v.Topic(name("a"), name("t"))
	for id, want := range []struct {
		tag     uint16
		members string
	}{{0, "\x00\x09"}, {1, "\x00\x09"}, {1, "\x01\x09"}, {1, "\x02\x09"}} {
		p, ok := topic.Partition(uint32(id))
		if !ok || p.Tag != want.tag || p.members != want.members {
			t.Errorf("partition %d: %+v", id, p)
		}
		if i, ok := p.MemberIndex(9); !ok || i != 1 {
			t.Errorf("node 9 is member %d %v", i, ok)
		}
	}
	snapshot(t, s.v)
}

func TestPartitionIDSpace(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 1))
	topic, _ := s.v.Topic(name("a"), name("t"))
	full := *topic
	full.partitions = sortedMap(topic.partitions.compare, wire.MaxPartitionID-1, func(i int) (uint32, Partition) { return uint32(i), Partition{ID: uint32(i)} })
	next := *s.v
	next.setTopic(&full)
	s.v = &next
	add := func(n uint32) body { return wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: n} }
	s.want(result(wire.CodePartitionIdSpaceExhausted), wire.OpCreatePartitions, add(2))
	s.must(wire.OpCreatePartitions, add(1))
}

func Test131_DeleteSegments(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 2))
	trim := func(stream, topic string, partition uint32, to uint64) wire.Code {
		b := wire.DeleteSegmentsRequest{Stream: name(stream), Topic: name(topic), Partition: partition, Count: 1}.Append(nil)
		got := s.admit(&Request{Operation: wire.OpDeleteSegments, Body: b, TrimTo: to})
		if h := s.prepares[len(s.prepares)-1].header; h.Operation != wire.OpTruncatePartition {
			t.Fatalf("logged as %v", h.Operation)
		}
		return got.code()
	}
	for _, c := range []struct {
		stream, topic string
		partition     uint32
		want          wire.Code
	}{{"x", "t", 0, 1009}, {"a", "x", 0, 2010}, {"a", "t", 2, 3007}, {"a", "t", 1, 0}} {
		if got := trim(c.stream, c.topic, c.partition, 100); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	watermark := func() uint64 {
		topic, _ := s.v.Topic(name("a"), name("t"))
		p, _ := topic.Partition(1)
		return p.TrimTo
	}
	trim("a", "t", 1, 50)
	if watermark() != 100 {
		t.Fatalf("the watermark fell to %d", watermark())
	}
	s.must(wire.OpPurgeTopic, wire.TopicTarget{Stream: name("a"), Topic: name("t")})
	topic, _ := s.v.Topic(name("a"), name("t"))
	p0, _ := topic.Partition(0)
	if p1, _ := topic.Partition(1); p1.TrimTo != 0 || p1.PurgeGeneration != 1 || p0.PurgeGeneration != 1 {
		t.Fatalf("after the purge: %+v", p1)
	}
}

func TestLiteralZeroIsExplicitAfterAnUpdate(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", 1))
	s.must(wire.OpUpdateTopic, wire.UpdateTopicRequest{Stream: name("a"), Topic: name("t"), Name: []byte("t"), Options: u64Option("max_topic_size", 0)})
	topic, _ := s.v.Topic(name("a"), name("t"))
	if r := topic.Record(wire.GenerationSnapshot); count(r.Explicit) != 1 || count(r.Derived) != 7 || r.MaxTopicSize != wire.Unlimited {
		t.Fatalf("%d explicit, %d derived", count(r.Explicit), count(r.Derived))
	}
}
