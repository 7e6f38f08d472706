package wire

import (
	"iter"

	"github.com/zeebo/xxh3"
)

// Message is one frame of a batch. Offset is base offset + OffsetDelta, the server's time the
// batch's base timestamp, the producer's time origin timestamp + TimestampDelta. Payload and
// UserHeaders alias the batch.
type Message struct {
	Checksum       uint64
	ID             U128
	OffsetDelta    uint32
	TimestampDelta uint32 // microseconds
	Payload        []byte
	UserHeaders    []byte // opaque, see DecodeUserHeaders
}

// NextMessage splits off the frame at the front of a batch's frames, the bytes behind its header.
// Its error, CodeInvalidCommand, says that no whole frame stands there.
func NextMessage(frames []byte) (m Message, rest []byte, err error) {
	size := frameSize(frames)
	if size == 0 {
		return Message{}, nil, CodeInvalidCommand
	}
	payload := FrameHeaderSize + int(le.Uint32(frames[framePayloadLength:]))
	return Message{
		Checksum: le.Uint64(frames), ID: DecodeU128(frames[frameID:]),
		OffsetDelta: le.Uint32(frames[frameOffsetDelta:]), TimestampDelta: le.Uint32(frames[frameTimestampDelta:]),
		Payload: frames[FrameHeaderSize:payload:payload], UserHeaders: frames[payload:size:size],
	}, frames[size:], nil
}

// Messages yields the messages of a batch in order; it ends early where the frames do not tile it.
func Messages(batch []byte) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		if len(batch) < BatchHeaderSize {
			return
		}
		for frames := batch[BatchHeaderSize:]; len(frames) > 0; {
			m, rest, err := NextMessage(frames)
			if err != nil || !yield(m) {
				return
			}
			frames = rest
		}
	}
}

// NewMessage is a message to be sent.
type NewMessage struct {
	ID          U128   // the producer's; the broker neither assigns nor compares it
	Timestamp   uint64 // microseconds since the epoch at the producer
	Payload     []byte
	UserHeaders []byte
}

// AppendBatch writes one batch of messages behind dst as a producer sends it, every checksum set.
// No message is CodeInvalidMessagesCount; times that span 2^32 microseconds or more are
// CodeInvalidMessageTimestampDelta.
func AppendBatch(dst []byte, messages []NewMessage) ([]byte, error) {
	if len(messages) == 0 {
		return dst, CodeInvalidMessagesCount
	}
	earliest, latest := messages[0].Timestamp, messages[0].Timestamp
	length := BatchHeaderSize
	for i := range messages {
		earliest, latest = min(earliest, messages[i].Timestamp), max(latest, messages[i].Timestamp)
		length += FrameHeaderSize + len(messages[i].Payload) + len(messages[i].UserHeaders)
	}
	if latest-earliest > 1<<32-1 {
		return dst, CodeInvalidMessageTimestampDelta
	}
	start := len(dst)
	dst = append(dst, make([]byte, BatchHeaderSize)...)
	for i := range messages {
		dst = messages[i].appendFrame(dst, uint32(i), uint32(messages[i].Timestamp-earliest))
	}
	h := BatchHeader{OriginTimestamp: earliest, Length: uint64(length), MessageCount: uint32(len(messages))}
	h.Put(dst[start:])
	SealBatch(dst[start:])
	return dst, nil
}

func (m *NewMessage) appendFrame(dst []byte, offsetDelta, timestampDelta uint32) []byte {
	start := len(dst)
	dst = appendU128(appendU64(dst, 0), m.ID)
	dst = appendU32(appendU32(dst, offsetDelta), timestampDelta)
	dst = appendU32(appendU32(dst, uint32(len(m.UserHeaders))), uint32(len(m.Payload)))
	dst = append(append(appendU64(dst, 0), m.Payload...), m.UserHeaders...)
	le.PutUint64(dst[start:], xxh3.Hash(dst[start+frameID:]))
	return dst
}
