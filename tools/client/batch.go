package client

import (
	"encoding/binary"

	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	batchHeader   = 256
	messageHeader = 48
)

// Batch builds a message batch in a buffer that it keeps: after the first rounds a reused Batch
// allocates nothing. The zero Batch is empty and ready.
type Batch struct {
	buf    []byte // header space, then messages
	sums   []byte // input of the batch checksum
	count  uint32
	origin uint64
}

// Reset empties the batch. origin is the producer's time of all its messages, in µs since the
// epoch.
func (b *Batch) Reset(origin uint64) {
	if cap(b.buf) < batchHeader {
		b.buf = make([]byte, batchHeader, 4096)
	}
	b.buf, b.count, b.origin = b.buf[:batchHeader], 0, origin
}

// Add appends a message. Payload and user headers are copied; headers is a valid headers block.
func (b *Batch) Add(id wire.U128, payload, headers []byte) {
	if b.buf == nil {
		b.Reset(0)
	}
	at := len(b.buf)
	b.buf = append(b.buf, make([]byte, messageHeader)...)
	m := b.buf[at:]
	id.Put(m[8:])
	binary.LittleEndian.PutUint32(m[24:], b.count)
	binary.LittleEndian.PutUint32(m[32:], uint32(len(headers)))
	binary.LittleEndian.PutUint32(m[36:], uint32(len(payload)))
	b.buf = append(append(b.buf, payload...), headers...)
	m = b.buf[at:]
	binary.LittleEndian.PutUint64(m, wire.Hash64(m[8:]))
	b.count++
}

// Len is the number of messages, Size the bytes of the sealed batch.
func (b *Batch) Len() int  { return int(b.count) }
func (b *Batch) Size() int { return max(len(b.buf), batchHeader) }

// Seal writes header and checksum and returns the batch, which aliases b's buffer until the next
// Reset or Add.
func (b *Batch) Seal() []byte {
	h := b.buf[:batchHeader]
	clear(h)
	binary.LittleEndian.PutUint64(h[32:], uint64(len(b.buf)))
	binary.LittleEndian.PutUint32(h[48:], b.count)
	b.sums = append(append(b.sums[:0], h[:40]...), h[48:52]...)
	for rest := b.buf[batchHeader:]; len(rest) > 0; {
		b.sums = append(b.sums, rest[:8]...)
		n := messageHeader + binary.LittleEndian.Uint32(rest[32:]) + binary.LittleEndian.Uint32(rest[36:])
		rest = rest[n:]
	}
	return b.Restamp(b.origin)
}

// Restamp gives a sealed batch another producer's time. Its messages stay as they are, so a load
// generator can send the same ones again at the cost of one short hash.
func (b *Batch) Restamp(origin uint64) []byte {
	b.origin = origin
	binary.LittleEndian.PutUint64(b.buf[24:], origin)
	binary.LittleEndian.PutUint64(b.sums[24:], origin)
	binary.LittleEndian.PutUint64(b.buf[40:], wire.Hash64(b.sums))
	return b.buf
}
