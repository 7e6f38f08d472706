package wire

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// HeaderSize is the size of every frame header in bytes; a frame's size field counts it.
const HeaderSize = 256

// MaxFrameSize is the largest frame in bytes that clients and replicas accept (64 MiB).
const MaxFrameSize = 64 << 20

// U128 is a 128-bit little-endian number: client ids, checksums, nonces, parents.
type U128 struct{ Lo, Hi uint64 }

// IsZero reports whether u is 0.
func (u U128) IsZero() bool { return u.Lo == 0 && u.Hi == 0 }

// DecodeU128 reads the first 16 bytes of b.
func DecodeU128(b []byte) U128 {
	return U128{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// Put writes u to the first 16 bytes of b.
func (u U128) Put(b []byte) {
	binary.LittleEndian.PutUint64(b, u.Lo)
	binary.LittleEndian.PutUint64(b[8:], u.Hi)
}

// Hash64 is XXH3-64 with seed 0, the checksum of every plane.
func Hash64(b []byte) uint64 { return xxh3.Hash(b) }

// Widened is Hash64(b) in the low half of a 16-byte field.
func Widened(b []byte) U128 { return U128{Lo: xxh3.Hash(b)} }

// MetadataGroup is the group id of the metadata plane.
const MetadataGroup uint64 = 1 << 63

// GroupID packs a partition's group id: partition in bits 0..19, topic 20..31, stream 32..51 and
// the incarnation tag (0 for a first life) in bits 52..62.
func GroupID(stream, topic, partition uint32, tag uint16) uint64 {
	return uint64(partition)&0xfffff | uint64(topic)&0xfff<<20 | uint64(stream)&0xfffff<<32 | uint64(tag)&0x7ff<<52
}

// SplitGroupID is the inverse of GroupID.
func SplitGroupID(g uint64) (stream, topic, partition uint32, tag uint16) {
	return uint32(g >> 32 & 0xfffff), uint32(g >> 20 & 0xfff), uint32(g & 0xfffff), uint16(g >> 52 & 0x7ff)
}
