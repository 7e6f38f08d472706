package link

import "encoding/binary"

// FactSize is the encoded size of a Fact in bytes.
const FactSize = 52

// Fact is what a partition replica knows of one partition it leads, pulled live for statistics.
type Fact struct {
	Group         uint64
	Segments      uint32
	Bytes         uint64 // stored bytes of committed batches
	Messages      uint64
	CurrentOffset uint64 // last committed offset, 0 when empty
	Generation    uint64 // purge generation the numbers belong to
	Commit        uint64 // commit point of the group
}

// AppendFact appends the encoded fact to dst.
func AppendFact(dst []byte, f Fact) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, f.Group)
	dst = le.AppendUint32(dst, f.Segments)
	dst = le.AppendUint64(dst, f.Bytes)
	dst = le.AppendUint64(dst, f.Messages)
	dst = le.AppendUint64(dst, f.CurrentOffset)
	dst = le.AppendUint64(dst, f.Generation)
	return le.AppendUint64(dst, f.Commit)
}

// DecodeFact decodes one fact from the front of b; ok is false when b is shorter than FactSize.
func DecodeFact(b []byte) (f Fact, ok bool) {
	if len(b) < FactSize {
		return Fact{}, false
	}
	le := binary.LittleEndian
	return Fact{
		Group: le.Uint64(b), Segments: le.Uint32(b[8:]), Bytes: le.Uint64(b[12:]), Messages: le.Uint64(b[20:]),
		CurrentOffset: le.Uint64(b[28:]), Generation: le.Uint64(b[36:]), Commit: le.Uint64(b[44:]),
	}, true
}
