package wire

// SendMessagesRequest is the body of a send: where to, and one batch.
// Layout: metadata_length:u32 stream topic partitioning messages_count:u32 batch (client-wire §9).
type SendMessagesRequest struct {
	Stream, Topic Identifier
	Partitioning  Partitioning
	MessagesCount uint32
	Batch         []byte // everything behind the metadata; VerifyBatch judges it
}

// DecodeSendMessages reads the routing of a send and leaves the batch alone. Routing that does not
// decode is CodeResourceNotFound, as for every partition operation; a metadata length that does not
// fit it is CodeInvalidCommand.
func DecodeSendMessages(b []byte) (SendMessagesRequest, error) {
	r := reader{rest: b}
	metadata := reader{rest: r.blk32()}
	if r.bad {
		return SendMessagesRequest{}, CodeResourceNotFound
	}
	q := SendMessagesRequest{
		Stream: metadata.identifier(), Topic: metadata.identifier(), Partitioning: metadata.partitioning(),
		MessagesCount: metadata.u32(), Batch: r.rest,
	}
	if metadata.bad {
		return q, CodeResourceNotFound
	}
	return q, metadata.end()
}

// Verify judges the batch and its agreement with MessagesCount: see VerifyBatch for the errors.
func (q *SendMessagesRequest) Verify() error {
	if err := VerifyBatch(q.Batch); err != nil {
		return err
	}
	if le.Uint32(q.Batch[batchCount:]) != q.MessagesCount {
		return CodeInvalidCommand
	}
	return nil
}

// AppendRouting writes everything in front of the batch behind dst.
func (q SendMessagesRequest) AppendRouting(dst []byte) []byte {
	start := len(dst)
	dst = q.Topic.Append(q.Stream.Append(appendU32(dst, 0)))
	dst = appendU32(q.Partitioning.Append(dst), q.MessagesCount)
	le.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// Append writes q's wire form behind dst.
func (q SendMessagesRequest) Append(dst []byte) []byte {
	return append(q.AppendRouting(dst), q.Batch...)
}

// PollMessagesRequest is the body of both polls and of the route query for a poll.
type PollMessagesRequest struct {
	Consumer      Consumer
	Stream, Topic Identifier
	Partition     PartitionSelector
	Strategy      Strategy
	Count         uint32
	AutoCommit    bool
}

// DecodePollMessages reads a PollMessagesRequest; bytes behind it are ignored.
func DecodePollMessages(b []byte) (PollMessagesRequest, error) {
	r := reader{rest: b}
	q := PollMessagesRequest{
		Consumer: r.consumer(), Stream: r.identifier(), Topic: r.identifier(), Partition: r.selector(),
		Strategy: r.strategy(), Count: r.u32(), AutoCommit: r.flag(),
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q PollMessagesRequest) Append(dst []byte) []byte {
	dst = q.Topic.Append(q.Stream.Append(q.Consumer.Append(dst)))
	dst = appendU32(q.Strategy.Append(q.Partition.Append(dst)), q.Count)
	return appendFlag(dst, q.AutoCommit)
}

// OffsetTarget is the body of get offset and of the route query for offset writes, and the front of
// store and delete offset.
type OffsetTarget struct {
	Consumer      Consumer
	Stream, Topic Identifier
	Partition     PartitionSelector
}

// DecodeOffsetTarget reads an OffsetTarget; bytes behind it are ignored.
func DecodeOffsetTarget(b []byte) (OffsetTarget, error) {
	r := reader{rest: b}
	t := r.offsetTarget()
	return t, r.err()
}

// Append writes t's wire form behind dst.
func (t OffsetTarget) Append(dst []byte) []byte {
	return t.Partition.Append(t.Topic.Append(t.Stream.Append(t.Consumer.Append(dst))))
}

func (r *reader) offsetTarget() OffsetTarget {
	return OffsetTarget{
		Consumer: r.consumer(), Stream: r.identifier(), Topic: r.identifier(), Partition: r.selector(),
	}
}

// StoreOffsetRequest stores a consumer's offset. Its selector must be set.
type StoreOffsetRequest struct {
	OffsetTarget
	Offset uint64
	Ack    Ack
}

// DecodeStoreOffset reads a StoreOffsetRequest; bytes behind it are ignored. Its error is
// CodeResourceNotFound, as for every partition operation.
func DecodeStoreOffset(b []byte) (StoreOffsetRequest, error) {
	r := reader{rest: b}
	q := StoreOffsetRequest{OffsetTarget: r.offsetTarget(), Offset: r.u64(), Ack: r.ack()}
	if r.bad {
		return q, CodeResourceNotFound
	}
	return q, nil
}

// Append writes q's wire form behind dst.
func (q StoreOffsetRequest) Append(dst []byte) []byte {
	return append(appendU64(q.OffsetTarget.Append(dst), q.Offset), byte(q.Ack))
}

// DeleteOffsetRequest removes a consumer's stored offset. Its selector must be set.
type DeleteOffsetRequest struct {
	OffsetTarget
	Ack Ack
}

// DecodeDeleteOffset reads a DeleteOffsetRequest; bytes behind it are ignored. Its error is
// CodeResourceNotFound, as for every partition operation.
func DecodeDeleteOffset(b []byte) (DeleteOffsetRequest, error) {
	r := reader{rest: b}
	q := DeleteOffsetRequest{OffsetTarget: r.offsetTarget(), Ack: r.ack()}
	if r.bad {
		return q, CodeResourceNotFound
	}
	return q, nil
}

// Append writes q's wire form behind dst.
func (q DeleteOffsetRequest) Append(dst []byte) []byte {
	return append(q.OffsetTarget.Append(dst), byte(q.Ack))
}

// FlushRequest is the body of flush buffer, which the protocol defines and every server refuses.
type FlushRequest struct {
	Stream, Topic Identifier
	Partition     uint32
	Sync          bool
}

// DecodeFlush reads a FlushRequest; bytes behind it are ignored.
func DecodeFlush(b []byte) (FlushRequest, error) {
	r := reader{rest: b}
	q := FlushRequest{Stream: r.identifier(), Topic: r.identifier(), Partition: r.u32(), Sync: r.flag()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q FlushRequest) Append(dst []byte) []byte {
	return appendFlag(appendU32(q.Topic.Append(q.Stream.Append(dst)), q.Partition), q.Sync)
}
