package conformance

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

const (
	batchHeader   = 256
	messageHeader = 48
	polledHeader  = 16
)

// checkBatches verifies a poll reply: the count, and layout and checksums of every batch in it.
func checkBatches(body []byte) error {
	if len(body) < polledHeader {
		return fmt.Errorf("poll reply of %d bytes", len(body))
	}
	promised := binary.LittleEndian.Uint32(body[12:])
	var found uint32
	for rest := body[polledHeader:]; len(rest) > 0; {
		size, count, err := checkBatch(rest)
		if err != nil {
			return err
		}
		found += count
		rest = rest[size:]
	}
	if found != promised {
		return fmt.Errorf("poll reply promises %d messages and holds %d", promised, found)
	}
	return nil
}

// checkBatch verifies the batch at the start of b and returns its size and message count.
func checkBatch(b []byte) (size int, count uint32, err error) {
	if len(b) < batchHeader {
		return 0, 0, fmt.Errorf("batch of %d bytes", len(b))
	}
	length := binary.LittleEndian.Uint64(b[32:])
	if length < batchHeader || length > uint64(len(b)) {
		return 0, 0, fmt.Errorf("batch length %d with %d bytes left", length, len(b))
	}
	if !allZero(b[52:batchHeader]) {
		return 0, 0, fmt.Errorf("reserved bytes of the batch header are not zero")
	}
	count = binary.LittleEndian.Uint32(b[48:])
	sums := append(append([]byte{}, b[:40]...), b[48:52]...)
	frames := b[batchHeader:length]
	for i := range count {
		if len(frames) < messageHeader {
			return 0, 0, fmt.Errorf("message %d is cut", i)
		}
		n := messageHeader + uint64(binary.LittleEndian.Uint32(frames[32:])) + uint64(binary.LittleEndian.Uint32(frames[36:]))
		if n > uint64(len(frames)) {
			return 0, 0, fmt.Errorf("message %d is longer than its batch", i)
		}
		if xxh3.Hash(frames[8:n]) != binary.LittleEndian.Uint64(frames) {
			return 0, 0, fmt.Errorf("checksum of message %d", i)
		}
		sums = append(sums, frames[:8]...)
		frames = frames[n:]
	}
	if len(frames) != 0 || count == 0 {
		return 0, 0, fmt.Errorf("%d bytes after %d messages", len(frames), count)
	}
	if xxh3.Hash(sums) != binary.LittleEndian.Uint64(b[40:]) {
		return 0, 0, fmt.Errorf("batch checksum")
	}
	return int(length), count, nil
}
