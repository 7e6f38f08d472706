package wire

// A reply that holds one object is its record with the records of its children behind it; a list is
// record after record. Encoders append one record each, so a server walks its own state and builds
// no list. Decoders, which clients use, copy what they return.

// StreamRecord is one stream in a reply.
// Layout: id:u32 created_at:u64 topics_count:u32 size:u64 messages:u64 name:name8 options:opt32
// (client-wire §10.3).
type StreamRecord struct {
	ID            uint32
	CreatedAt     uint64 // microseconds since the epoch
	TopicsCount   uint32
	SizeBytes     uint64
	MessagesCount uint64
	Name          string
	Options       Options
}

// Append writes s's wire form behind dst.
func (s StreamRecord) Append(dst []byte) []byte {
	dst = appendU32(appendU64(appendU32(dst, s.ID), s.CreatedAt), s.TopicsCount)
	dst = appendStr8(appendU64(appendU64(dst, s.SizeBytes), s.MessagesCount), s.Name)
	return s.Options.AppendPrefixed(dst)
}

func (r *reader) streamRecord() StreamRecord {
	return StreamRecord{
		ID: r.u32(), CreatedAt: r.u64(), TopicsCount: r.u32(), SizeBytes: r.u64(), MessagesCount: r.u64(),
		Name: string(r.name8()), Options: r.copiedOptions(),
	}
}

// DecodeStream reads one StreamRecord, which must fill b: the payload of create stream.
func DecodeStream(b []byte) (StreamRecord, error) {
	r := reader{rest: b}
	s := r.streamRecord()
	return s, r.end()
}

// DecodeStreams reads records to the end of b.
func DecodeStreams(b []byte) ([]StreamRecord, error) { return decodeAll(b, (*reader).streamRecord) }

// StreamDetails is a stream with its topics.
type StreamDetails struct {
	StreamRecord
	Topics []TopicRecord
}

// Append writes d's wire form behind dst; the record's count must be true.
func (d StreamDetails) Append(dst []byte) []byte {
	return appendAll(d.StreamRecord.Append(dst), d.Topics)
}

// DecodeStreamDetails reads a stream and its topics, which must fill b.
func DecodeStreamDetails(b []byte) (StreamDetails, error) {
	r := reader{rest: b}
	d := StreamDetails{StreamRecord: r.streamRecord()}
	d.Topics = repeat(&r, d.TopicsCount, (*reader).topicRecord)
	return d, r.end()
}

// TopicRecord is one topic in a reply. Layout: id:u32 created_at:u64 partitions_count:u32
// message_expiry:u64 compression:u8 max_topic_size:u64 size:u64 messages:u64 name:name8
// explicit:opt32 derived:opt32 (client-wire §10.3).
type TopicRecord struct {
	ID              uint32
	CreatedAt       uint64 // microseconds since the epoch
	PartitionsCount uint32
	MessageExpiry   uint64 // microseconds, Unlimited is never
	Compression     Compression
	MaxTopicSize    uint64 // bytes, Unlimited is none
	SizeBytes       uint64
	MessagesCount   uint64
	Name            string
	Explicit        Options // what the client set, sorted by key
	Derived         Options // the rest of the catalogue, sorted by key
}

// Append writes t's wire form behind dst.
func (t TopicRecord) Append(dst []byte) []byte {
	dst = appendU32(appendU64(appendU32(dst, t.ID), t.CreatedAt), t.PartitionsCount)
	dst = append(appendU64(dst, t.MessageExpiry), byte(t.Compression))
	dst = appendU64(appendU64(appendU64(dst, t.MaxTopicSize), t.SizeBytes), t.MessagesCount)
	return t.Derived.AppendPrefixed(t.Explicit.AppendPrefixed(appendStr8(dst, t.Name)))
}

func (r *reader) topicRecord() TopicRecord {
	return TopicRecord{
		ID: r.u32(), CreatedAt: r.u64(), PartitionsCount: r.u32(),
		MessageExpiry: r.u64(), Compression: Compression(r.u8()), MaxTopicSize: r.u64(),
		SizeBytes: r.u64(), MessagesCount: r.u64(), Name: string(r.name8()),
		Explicit: r.copiedOptions(), Derived: r.copiedOptions(),
	}
}

// AppendCount writes the count that opens the list of get topics and no other list.
func AppendCount(dst []byte, count uint32) []byte { return appendU32(dst, count) }

// DecodeTopics reads a count and that many records, which must fill b.
func DecodeTopics(b []byte) ([]TopicRecord, error) {
	r := reader{rest: b}
	topics := repeat(&r, r.u32(), (*reader).topicRecord)
	return topics, r.end()
}

// PartitionRecord is one partition of a topic in a reply, 40 bytes.
type PartitionRecord struct {
	ID            uint32
	CreatedAt     uint64 // microseconds since the epoch
	SegmentsCount uint32 // 0 in the reply of create topic, at least 1 elsewhere
	CurrentOffset uint64 // of the last committed message, 0 when there is none
	SizeBytes     uint64
	MessagesCount uint64
}

// Append writes p's wire form behind dst.
func (p PartitionRecord) Append(dst []byte) []byte {
	dst = appendU32(appendU64(appendU32(dst, p.ID), p.CreatedAt), p.SegmentsCount)
	return appendU64(appendU64(appendU64(dst, p.CurrentOffset), p.SizeBytes), p.MessagesCount)
}

func (r *reader) partitionRecord() PartitionRecord {
	return PartitionRecord{
		ID: r.u32(), CreatedAt: r.u64(), SegmentsCount: r.u32(),
		CurrentOffset: r.u64(), SizeBytes: r.u64(), MessagesCount: r.u64(),
	}
}

// TopicDetails is a topic with its partitions.
type TopicDetails struct {
	TopicRecord
	Partitions []PartitionRecord
}

// Append writes d's wire form behind dst; the record's count must be true.
func (d TopicDetails) Append(dst []byte) []byte {
	return appendAll(d.TopicRecord.Append(dst), d.Partitions)
}

// DecodeTopicDetails reads a topic and its partitions, which must fill b.
func DecodeTopicDetails(b []byte) (TopicDetails, error) {
	r := reader{rest: b}
	d := TopicDetails{TopicRecord: r.topicRecord()}
	d.Partitions = repeat(&r, d.PartitionsCount, (*reader).partitionRecord)
	return d, r.end()
}

func (r *reader) copiedOptions() Options {
	return append(Options(nil), r.prefixedOptions()...)
}
