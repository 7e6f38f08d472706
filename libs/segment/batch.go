package segment

import (
	"errors"

	"encoding/binary"
	"github.com/zeebo/xxh3"
)

// header is the part of a batch header the log looks at (client-wire.md §13.1).
type header struct {
	base, time uint64
	length     int64
	checksum   uint64
	count      uint32
}

// parseHeader reads the first 52 bytes of b.
func parseHeader(b []byte) header {
	le := binary.LittleEndian
	_ = b[51]
	return header{
		base:     le.Uint64(b[8:]),
		time:     le.Uint64(b[16:]),
		length:   int64(le.Uint64(b[32:])),
		checksum: le.Uint64(b[40:]),
		count:    le.Uint32(b[48:]),
	}
}

// plausible reports whether h can stand at pos of x: it ends inside the counted bytes and holds
// offsets of the segment. The checksum says the rest.
func (h header) plausible(pos int64, x *extent) bool {
	return h.count > 0 && h.length >= headerSize && h.length <= x.length-pos &&
		h.base >= x.seg.base && h.base < x.next && uint64(h.count) <= x.next-h.base
}

var errBatch = errors.New("segment: batch does not verify")

func verifyBatch(b []byte) error {
	h := parseHeader(b)
	if h.length != int64(len(b)) {
		return errBatch
	}
	var x xxh3.Hasher
	x.Write(b[:40])
	x.Write(b[48:52])
	n := uint32(0)
	for p := headerSize; p < len(b); n++ {
		if len(b)-p < 48 {
			return errBatch
		}
		e := p + 48 + int(binary.LittleEndian.Uint32(b[p+32:])) + int(binary.LittleEndian.Uint32(b[p+36:]))
		if e > len(b) || xxh3.Hash(b[p+8:e]) != binary.LittleEndian.Uint64(b[p:]) {
			return errBatch
		}
		x.Write(b[p : p+8])
		p = e
	}
	if n != h.count || x.Sum64() != h.checksum {
		return errBatch
	}
	return nil
}

func sliceBatch(b []byte, skip, n int) ([]byte, error) {
	from, to := 0, 0
	p := headerSize
	for i := 0; i < skip+n; i++ {
		if i == skip {
			from = p
		}
		p += 48 + int(binary.LittleEndian.Uint32(b[p+32:])) + int(binary.LittleEndian.Uint32(b[p+36:]))
	}
	to = p
	b = b[:headerSize+copy(b[headerSize:], b[from:to])]
	binary.LittleEndian.PutUint64(b[32:], uint64(len(b)))
	binary.LittleEndian.PutUint32(b[48:], uint32(n))
	var x xxh3.Hasher
	x.Write(b[:40])
	x.Write(b[48:52])
	for p := headerSize; p < len(b); {
		x.Write(b[p : p+8])
		p += 48 + int(binary.LittleEndian.Uint32(b[p+32:])) + int(binary.LittleEndian.Uint32(b[p+36:]))
	}
	binary.LittleEndian.PutUint64(b[40:], x.Sum64())
	return b, nil
}
