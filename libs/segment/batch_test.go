package segment

import (
	"encoding/binary"
	"math/rand"

	"github.com/zeebo/xxh3"
)

// message is one frame of a test batch, built here and not by the code under test.
type message struct{ payload, headers []byte }

// batchOf encodes messages first.. of a batch whose stamped base is given (client-wire.md §13).
func batchOf(base, time uint64, firstDelta int, ms []message) []byte {
	le := binary.LittleEndian
	b := make([]byte, 256)
	le.PutUint64(b[0:], 7)
	le.PutUint64(b[8:], base)
	le.PutUint64(b[16:], time)
	le.PutUint64(b[24:], time-5)
	le.PutUint32(b[48:], uint32(len(ms)))
	var sums []byte
	for i, m := range ms {
		f := make([]byte, 48, 48+len(m.payload)+len(m.headers))
		le.PutUint64(f[8:], base+uint64(i+firstDelta)+1)
		le.PutUint32(f[24:], uint32(i+firstDelta))
		le.PutUint32(f[32:], uint32(len(m.headers)))
		le.PutUint32(f[36:], uint32(len(m.payload)))
		f = append(append(f, m.payload...), m.headers...)
		le.PutUint64(f, xxh3.Hash(f[8:]))
		sums = append(sums, f[:8]...)
		b = append(b, f...)
	}
	le.PutUint64(b[32:], uint64(len(b)))
	input := append(append(append([]byte(nil), b[:40]...), b[48:52]...), sums...)
	le.PutUint64(b[40:], xxh3.Hash(input))
	return b
}

// randomMessages returns n messages of about size bytes each.
func randomMessages(r *rand.Rand, n, size int) []message {
	ms := make([]message, n)
	for i := range ms {
		p := make([]byte, size+r.Intn(8))
		r.Read(p)
		ms[i].payload = p
		if r.Intn(4) == 0 {
			ms[i].headers = []byte("headers are opaque to the log")
		}
	}
	return ms
}
