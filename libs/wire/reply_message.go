package wire

// Partition ids that an empty poll carries instead of a real one.
const (
	// PartitionResync tells a group member that it does not own the partition it polled: it must
	// sync again.
	PartitionResync uint32 = 0xffffffff
)

// PollHeaderSize is the length of PollHeader's wire form.
const PollHeaderSize = 16

// PollHeader opens the body of a poll's reply; the batches follow to its end. A poll is never
// answered with an empty body. Layout: partition:u32 current_offset:u64 messages_count:u32
// (client-wire §10.5).
type PollHeader struct {
	Partition     uint32
	CurrentOffset uint64 // of the last committed message, 0 when there is none
	MessagesCount uint32 // over all batches
}

// Append writes h's wire form behind dst.
func (h PollHeader) Append(dst []byte) []byte {
	return appendU32(appendU64(appendU32(dst, h.Partition), h.CurrentOffset), h.MessagesCount)
}

// Put writes h to the first PollHeaderSize bytes of b.
func (h PollHeader) Put(b []byte) {
	le.PutUint32(b, h.Partition)
	le.PutUint64(b[4:], h.CurrentOffset)
	le.PutUint32(b[12:], h.MessagesCount)
}

// DecodePoll splits a poll's reply into its header and its batches, which NextBatch walks. It checks
// neither the batches nor the count: see CountMessages.
func DecodePoll(body []byte) (h PollHeader, batches []byte, err error) {
	r := reader{rest: body}
	h = PollHeader{Partition: r.u32(), CurrentOffset: r.u64(), MessagesCount: r.u32()}
	return h, r.rest, r.err()
}

// OffsetRecord answers get offset, 20 bytes.
type OffsetRecord struct {
	Partition     uint32
	CurrentOffset uint64 // of the last committed message
	StoredOffset  uint64
}

// Append writes o's wire form behind dst.
func (o OffsetRecord) Append(dst []byte) []byte {
	return appendU64(appendU64(appendU32(dst, o.Partition), o.CurrentOffset), o.StoredOffset)
}

// DecodeOffset reads an OffsetRecord, which must fill b.
func DecodeOffset(b []byte) (OffsetRecord, error) {
	r := reader{rest: b}
	o := OffsetRecord{Partition: r.u32(), CurrentOffset: r.u64(), StoredOffset: r.u64()}
	return o, r.end()
}

// Confirmation says where a sent batch stands.
type Confirmation struct {
	Stream, Topic, Partition uint32
	BaseOffset               uint64 // of the batch's first message
}

// AppendConfirmation writes the reply of a send that wrote one batch behind dst, 24 bytes: a count
// of 1 and c. A send's reply has no result section.
func AppendConfirmation(dst []byte, c Confirmation) []byte {
	dst = appendU32(appendU32(appendU32(appendU32(dst, 1), c.Stream), c.Topic), c.Partition)
	return appendU64(dst, c.BaseOffset)
}

// AppendNoConfirmation writes the reply of a send whose confirmation is no longer known.
func AppendNoConfirmation(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// DecodeConfirmations reads the reply of a send, which must fill b.
func DecodeConfirmations(b []byte) ([]Confirmation, error) {
	r := reader{rest: b}
	confirmations := repeat(&r, r.u32(), func(r *reader) Confirmation {
		return Confirmation{Stream: r.u32(), Topic: r.u32(), Partition: r.u32(), BaseOffset: r.u64()}
	})
	return confirmations, r.end()
}
