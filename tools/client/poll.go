package client

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Message is one polled message. Payload and Headers alias the client's buffer.
type Message struct {
	Offset    uint64
	Timestamp uint64 // when the broker stored it, µs since the epoch
	Origin    uint64 // when the producer made it, µs since the epoch
	ID        wire.U128
	Checksum  uint64
	Payload   []byte
	Headers   []byte
}

// Messages yields the messages of a poll in order. A broken batch ends them with an error; with
// verify every checksum is computed too.
func (p Polled) Messages(verify bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		var sums []byte
		found := uint32(0)
		for rest := p.Batches; len(rest) > 0; {
			if len(rest) < batchHeader {
				yield(Message{}, fmt.Errorf("%w: batch of %d bytes", ErrProtocol, len(rest)))
				return
			}
			length := binary.LittleEndian.Uint64(rest[32:])
			if length < batchHeader || length > uint64(len(rest)) {
				yield(Message{}, fmt.Errorf("%w: batch length %d with %d bytes left", ErrProtocol, length, len(rest)))
				return
			}
			batch := rest[:length]
			rest = rest[length:]
			if verify {
				var err error
				if sums, err = verifyBatch(batch, sums); err != nil {
					yield(Message{}, err)
					return
				}
			}
			for m, err := range batchMessages(batch) {
				if !yield(m, err) || err != nil {
					return
				}
				found++
			}
		}
		if found != p.MessagesCount {
			yield(Message{}, fmt.Errorf("%w: %d messages promised, %d found", ErrProtocol, p.MessagesCount, found))
		}
	}
}

// batchMessages walks one batch, whose length field is right.
func batchMessages(batch []byte) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
		base, stamp, origin, count := u64(batch[8:]), u64(batch[16:]), u64(batch[24:]), u32(batch[48:])
		rest := batch[batchHeader:]
		for i := range count {
			if len(rest) < messageHeader {
				yield(Message{}, fmt.Errorf("%w: message %d of %d is cut", ErrProtocol, i, count))
				return
			}
			headers, payload := uint64(u32(rest[32:])), uint64(u32(rest[36:]))
			end := messageHeader + payload + headers
			if end > uint64(len(rest)) {
				yield(Message{}, fmt.Errorf("%w: message %d of %d is longer than its batch", ErrProtocol, i, count))
				return
			}
			m := Message{
				Offset: base + uint64(u32(rest[24:])), Timestamp: stamp, Origin: origin + uint64(u32(rest[28:])),
				ID: wire.DecodeU128(rest[8:]), Checksum: u64(rest),
				Payload: rest[messageHeader : messageHeader+payload], Headers: rest[messageHeader+payload : end],
			}
			if !yield(m, nil) {
				return
			}
			rest = rest[end:]
		}
		if len(rest) != 0 {
			yield(Message{}, fmt.Errorf("%w: %d bytes behind the last message", ErrProtocol, len(rest)))
		}
	}
}

// verifyBatch computes every checksum of a batch. sums is scratch space, returned for reuse.
func verifyBatch(batch, sums []byte) ([]byte, error) {
	sums = append(append(sums[:0], batch[:40]...), batch[48:52]...)
	rest := batch[batchHeader:]
	for m, err := range batchMessages(batch) {
		if err != nil {
			return sums, err
		}
		n := messageHeader + len(m.Payload) + len(m.Headers)
		if wire.Hash64(rest[8:n]) != m.Checksum {
			return sums, fmt.Errorf("%w: checksum of the message at offset %d", ErrProtocol, m.Offset)
		}
		sums = append(sums, rest[:8]...)
		rest = rest[n:]
	}
	if wire.Hash64(sums) != binary.LittleEndian.Uint64(batch[40:]) {
		return sums, fmt.Errorf("%w: checksum of the batch at offset %d", ErrProtocol, binary.LittleEndian.Uint64(batch[8:]))
	}
	return sums, nil
}
