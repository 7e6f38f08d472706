package wire

// TopicTarget is the body of get, delete and purge topic and of get groups.
type TopicTarget struct{ Stream, Topic Identifier }

// DecodeTopicTarget reads a TopicTarget; bytes behind it are ignored.
func DecodeTopicTarget(b []byte) (TopicTarget, error) {
	r := reader{rest: b}
	t := r.topicTarget()
	return t, r.err()
}

// Append writes t's wire form behind dst.
func (t TopicTarget) Append(dst []byte) []byte { return t.Topic.Append(t.Stream.Append(dst)) }

func (r *reader) topicTarget() TopicTarget {
	return TopicTarget{Stream: r.identifier(), Topic: r.identifier()}
}

// CreateTopicRequest asks for a topic of PartitionsCount partitions, 0..MaxPartitions.
type CreateTopicRequest struct {
	Stream          Identifier
	PartitionsCount uint32
	Name            []byte
	Options         Options
}

// DecodeCreateTopic reads a CreateTopicRequest, which must fill b. It bounds neither the count nor
// the options' meaning: see ParseTopicOptions.
func DecodeCreateTopic(b []byte) (CreateTopicRequest, error) {
	r := reader{rest: b}
	q := CreateTopicRequest{
		Stream: r.identifier(), PartitionsCount: r.u32(), Name: r.name8(), Options: r.options(),
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q CreateTopicRequest) Append(dst []byte) []byte {
	dst = appendU32(q.Stream.Append(dst), q.PartitionsCount)
	return append(appendStr8(dst, q.Name), q.Options...)
}

// UpdateTopicRequest renames a topic and changes its options.
type UpdateTopicRequest struct {
	Stream, Topic Identifier
	Name          []byte
	Options       Options
}

// DecodeUpdateTopic reads an UpdateTopicRequest, which must fill b.
func DecodeUpdateTopic(b []byte) (UpdateTopicRequest, error) {
	r := reader{rest: b}
	q := UpdateTopicRequest{
		Stream: r.identifier(), Topic: r.identifier(), Name: r.name8(), Options: r.options(),
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q UpdateTopicRequest) Append(dst []byte) []byte {
	dst = q.Topic.Append(q.Stream.Append(dst))
	return append(appendStr8(dst, q.Name), q.Options...)
}

// PartitionsRequest is the body of create and delete partitions. Count must be 1..MaxPartitions.
type PartitionsRequest struct {
	Stream, Topic Identifier
	Count         uint32
}

// DecodePartitions reads a PartitionsRequest; bytes behind it are ignored, Count is not bounded.
func DecodePartitions(b []byte) (PartitionsRequest, error) {
	r := reader{rest: b}
	q := PartitionsRequest{Stream: r.identifier(), Topic: r.identifier(), Count: r.u32()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q PartitionsRequest) Append(dst []byte) []byte {
	return appendU32(q.Topic.Append(q.Stream.Append(dst)), q.Count)
}

// DeleteSegmentsRequest drops the oldest Count sealed segments of a partition.
type DeleteSegmentsRequest struct {
	Stream, Topic Identifier
	Partition     uint32
	Count         uint32
}

// DecodeDeleteSegments reads a DeleteSegmentsRequest; bytes behind it are ignored.
func DecodeDeleteSegments(b []byte) (DeleteSegmentsRequest, error) {
	r := reader{rest: b}
	q := DeleteSegmentsRequest{
		Stream: r.identifier(), Topic: r.identifier(), Partition: r.u32(), Count: r.u32(),
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q DeleteSegmentsRequest) Append(dst []byte) []byte {
	dst = q.Topic.Append(q.Stream.Append(dst))
	return appendU32(appendU32(dst, q.Partition), q.Count)
}
