package wire

import "github.com/zeebo/xxh3"

// A batch is the one layout of messages: in a send, in the log, on disk and in a poll's reply.
// 256 bytes of header, then frames back to back (client-wire §13).

// BatchHeaderSize is the length of a batch header, FrameHeaderSize that of a message frame's.
const (
	BatchHeaderSize = 256
	FrameHeaderSize = 48
)

// Offsets inside a batch header. The bytes from batchReserved on are zero.
const (
	batchPartition       = 0
	batchBaseOffset      = 8
	batchBaseTimestamp   = 16
	batchOriginTimestamp = 24
	batchLength          = 32
	batchChecksum        = 40
	batchCount           = 48
	batchReserved        = 52
)

// Offsets inside a frame header.
const (
	frameID             = 8
	frameOffsetDelta    = 24
	frameTimestampDelta = 28
	frameHeadersLength  = 32
	framePayloadLength  = 36
	frameReserved       = 40
)

// BatchHeader is the header of a batch. A producer sends the first three fields as 0; the partition's
// primary stamps them.
type BatchHeader struct {
	Partition       uint64
	BaseOffset      uint64 // of the first message as produced; a slice keeps it
	BaseTimestamp   uint64 // microseconds: when the primary appended the batch
	OriginTimestamp uint64 // microseconds: the earliest message's time at its producer
	Length          uint64 // bytes, header included
	Checksum        uint64
	MessageCount    uint32
}

// Decode reads the header from the first 256 bytes of b. Its error, CodeInvalidCommand, says that b
// is shorter, a reserved byte is set, or length and count cannot be a batch's. It does not compare
// Length with b.
func (h *BatchHeader) Decode(b []byte) error {
	if len(b) < BatchHeaderSize {
		return CodeInvalidCommand
	}
	*h = BatchHeader{
		Partition: le.Uint64(b[batchPartition:]), BaseOffset: le.Uint64(b[batchBaseOffset:]),
		BaseTimestamp: le.Uint64(b[batchBaseTimestamp:]), OriginTimestamp: le.Uint64(b[batchOriginTimestamp:]),
		Length: le.Uint64(b[batchLength:]), Checksum: le.Uint64(b[batchChecksum:]), MessageCount: le.Uint32(b[batchCount:]),
	}
	least := BatchHeaderSize + FrameHeaderSize*uint64(h.MessageCount)
	if h.MessageCount == 0 || h.Length < least || !reservedZero(b) {
		return CodeInvalidCommand
	}
	return nil
}

// reservedZero compares in one go: this runs for every batch sent and served.
func reservedZero(b []byte) bool {
	const size = BatchHeaderSize - batchReserved
	return [size]byte(b[batchReserved:BatchHeaderSize]) == [size]byte{}
}

// Put writes the header to the first 256 bytes of b, reserved bytes zero.
func (h *BatchHeader) Put(b []byte) {
	clear(b[batchReserved:BatchHeaderSize])
	le.PutUint64(b[batchPartition:], h.Partition)
	le.PutUint64(b[batchBaseOffset:], h.BaseOffset)
	le.PutUint64(b[batchBaseTimestamp:], h.BaseTimestamp)
	le.PutUint64(b[batchOriginTimestamp:], h.OriginTimestamp)
	le.PutUint64(b[batchLength:], h.Length)
	le.PutUint64(b[batchChecksum:], h.Checksum)
	le.PutUint32(b[batchCount:], h.MessageCount)
}

// VerifyBatch judges a whole batch, which must fill b: reserved bytes zero, length and count true,
// frames that tile it, and every checksum. Layout faults are CodeInvalidCommand, a frame that does
// not match its checksum CodeInvalidMessageChecksum, a header that does not CodeInvalidBatchChecksum.
// It allocates nothing and hashes every byte once.
func VerifyBatch(b []byte) error {
	var h BatchHeader
	if err := h.Decode(b); err != nil {
		return err
	}
	if h.Length != uint64(len(b)) {
		return CodeInvalidCommand
	}
	var sum batchSum
	sum.start(b)
	frames := b[BatchHeaderSize:]
	for range h.MessageCount {
		size := frameSize(frames)
		if size == 0 || le.Uint64(frames[frameReserved:]) != 0 {
			return CodeInvalidCommand
		}
		if xxh3.Hash(frames[frameID:size]) != le.Uint64(frames) {
			return CodeInvalidMessageChecksum
		}
		sum.add(frames)
		frames = frames[size:]
	}
	if len(frames) != 0 {
		return CodeInvalidCommand
	}
	if sum.sum() != h.Checksum {
		return CodeInvalidBatchChecksum
	}
	return nil
}

// frameSize is the length of the frame at the front of b, or 0 when b does not hold a whole one.
func frameSize(b []byte) int {
	if len(b) < FrameHeaderSize {
		return 0
	}
	size := FrameHeaderSize + uint64(le.Uint32(b[framePayloadLength:])) + uint64(le.Uint32(b[frameHeadersLength:]))
	if size > uint64(len(b)) {
		return 0
	}
	return int(size)
}

// StampBatch writes a partition, base offset and base timestamp (microseconds) into the header of a
// verified batch, in place, and seals it again. It hashes 8 bytes a message.
func StampBatch(b []byte, partition uint32, baseOffset, baseTimestamp uint64) {
	le.PutUint64(b[batchPartition:], uint64(partition))
	le.PutUint64(b[batchBaseOffset:], baseOffset)
	le.PutUint64(b[batchBaseTimestamp:], baseTimestamp)
	SealBatch(b)
}

// SealBatch computes the checksum of a batch whose frames are sound and writes it into the header.
func SealBatch(b []byte) {
	var sum batchSum
	sum.start(b)
	for frames := b[BatchHeaderSize:]; len(frames) > 0; {
		size := frameSize(frames)
		if size == 0 {
			panic("wire: sealing a batch whose frames do not tile it")
		}
		sum.add(frames)
		frames = frames[size:]
	}
	le.PutUint64(b[batchChecksum:], sum.sum())
}

// batchSum hashes the header's fields and then 8 bytes of every frame. It gathers on the stack and
// needs the streaming hasher only when a batch has more frames than the buffer holds.
type batchSum struct {
	filled   int
	streamed bool
	hasher   xxh3.Hasher
	buffer   [sumBuffer]byte
}

// sumHeader is the length of the header's hashed fields. The buffer takes them and 120 frames, or
// 128 frames once it has streamed.
const (
	sumHeader = batchChecksum + 4
	sumBuffer = 1024
)

func (s *batchSum) start(header []byte) {
	copy(s.buffer[:], header[:batchChecksum])
	copy(s.buffer[batchChecksum:], header[batchCount:batchCount+4])
	s.filled = sumHeader
}

func (s *batchSum) add(frame []byte) {
	if s.filled > sumBuffer-8 {
		s.flush()
	}
	copy(s.buffer[s.filled:s.filled+8], frame)
	s.filled += 8
}

func (s *batchSum) flush() {
	s.hasher.Write(s.buffer[:s.filled]) // a hash.Hash never fails to write
	s.filled, s.streamed = 0, true
}

func (s *batchSum) sum() uint64 {
	if !s.streamed {
		return xxh3.Hash(s.buffer[:s.filled])
	}
	s.flush()
	return s.hasher.Sum64()
}
