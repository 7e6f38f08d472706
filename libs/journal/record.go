package journal

import (
	"encoding/binary"

	"github.com/whippet-mq/whippet/libs/wire"
)

// On disk, little endian:
//
//	header  0 magic u32 · 4 length u32 (header and payload) · 8 lsn u64 · 16 group u64 · 24 op u64 ·
//	        32 kind u8 · 33 flags u8 · 34 zero · 40 payload hash u64 · 48 header hash u64
//	payload prepare: frame, then a location if flagLocated; synced: (group, head) pairs, and (group, lsn|turnMark) pairs
//	        for truncate, born, gone and adopt records; else empty
//	footer  at the end of the padded record: group u64 · op u64 · length u32 · kind u32 · check u64
const (
	recordMagic  = 0x43455257 // "WREC"
	headerSize   = 56
	footerSize   = 32
	locationSize = 32
	maxLength    = 1 << 28

	flagLocated = 1
)

var le = binary.LittleEndian

// recordHeader is the decoded header of one record.
type recordHeader struct {
	length    uint32 // header and payload, without padding and footer
	lsn       LSN
	group, op uint64
	kind      Kind
	flags     uint8
	payload   uint64 // hash of the payload
}

// paddedSize is the size on disk of a record with n bytes of header and payload.
func paddedSize(n int64) int64 { return (n+7)&^7 + footerSize }

func (r *Record) payloadSize() int64 {
	n := int64(len(r.Frame))
	if r.At.Len > 0 {
		n += locationSize
	}
	return n
}

func (r *Record) diskSize() int64 { return paddedSize(headerSize + r.payloadSize()) }

func (h *recordHeader) put(b []byte) {
	b = b[:headerSize]
	le.PutUint32(b, recordMagic)
	le.PutUint32(b[4:], h.length)
	le.PutUint64(b[8:], uint64(h.lsn))
	le.PutUint64(b[16:], h.group)
	le.PutUint64(b[24:], h.op)
	le.PutUint64(b[32:], uint64(h.kind)|uint64(h.flags)<<8)
	le.PutUint64(b[40:], h.payload)
	le.PutUint64(b[48:], wire.Hash64(b[:48]))
}

// decode reads a header that must stand at lsn; false if it does not.
func (h *recordHeader) decode(b []byte, lsn LSN) bool {
	if len(b) < headerSize || le.Uint64(b[8:]) != uint64(lsn) || le.Uint32(b) != recordMagic ||
		le.Uint64(b[48:]) != wire.Hash64(b[:48]) {
		return false
	}
	h.length, h.lsn = le.Uint32(b[4:]), lsn
	h.group, h.op = le.Uint64(b[16:]), le.Uint64(b[24:])
	h.kind, h.flags = Kind(b[32]), b[33]
	h.payload = le.Uint64(b[40:])
	return h.length >= headerSize && h.length <= maxLength
}

func (h *recordHeader) putFooter(b []byte) {
	b = b[:footerSize]
	le.PutUint64(b, h.group)
	le.PutUint64(b[8:], h.op)
	le.PutUint32(b[16:], h.length)
	le.PutUint32(b[20:], uint32(h.kind))
	le.PutUint64(b[24:], footerCheck(b, h.lsn))
}

// footerCheck covers the first 24 bytes of a footer and the record's position.
func footerCheck(b []byte, lsn LSN) uint64 {
	var c [32]byte
	copy(c[:], b[:24])
	le.PutUint64(c[24:], uint64(lsn))
	return wire.Hash64(c[:])
}

// decodeFooter reads the footer that ends at end, a position in the file with first LSN first, and
// returns the position of its record.
func (h *recordHeader) decodeFooter(b []byte, first LSN, end int64) (start int64, ok bool) {
	if end-footerSize < fileHeaderSize {
		return 0, false
	}
	f := b[end-footerSize : end]
	length := le.Uint32(f[16:])
	if length < headerSize || length > maxLength {
		return 0, false
	}
	start = end - paddedSize(int64(length))
	if start < fileHeaderSize {
		return 0, false
	}
	lsn := first + LSN(start)
	if footerCheck(f, lsn) != le.Uint64(f[24:]) {
		return 0, false
	}
	*h = recordHeader{length: length, lsn: lsn, group: le.Uint64(f), op: le.Uint64(f[8:]), kind: Kind(f[20])}
	return start, true
}

func (l *Location) put(b []byte) {
	le.PutUint64(b, l.Segment)
	le.PutUint64(b[8:], uint64(l.Pos))
	le.PutUint64(b[16:], uint64(l.Len))
	le.PutUint64(b[24:], l.Hash)
}

func (l *Location) decode(b []byte) {
	*l = Location{le.Uint64(b), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:])), le.Uint64(b[24:])}
}
