package segment

import "encoding/binary"

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
