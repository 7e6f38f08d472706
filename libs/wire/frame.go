package wire

import (
	"encoding/binary"
	"errors"
)

// Errors of the header decoders. A header whose decoder fails costs the frame, not the connection,
// except an unknown command (replica-wire.md §1.1).
var (
	ErrShort     = errors.New("wire: shorter than its fixed part")
	ErrSize      = errors.New("wire: size field out of range for the frame")
	ErrCommand   = errors.New("wire: unexpected command")
	ErrOperation = errors.New("wire: unknown operation")
	ErrOutcome   = errors.New("wire: unknown outcome")
	ErrReason    = errors.New("wire: unknown eviction reason")
	ErrReserved  = errors.New("wire: reserved bytes not zero")
	ErrSeal      = errors.New("wire: frame seal does not match")
	ErrIdentity  = errors.New("wire: prepare identity does not match")
	ErrField     = errors.New("wire: field value not allowed")
)

var le = binary.LittleEndian

// Offsets of the preamble that all thirty headers share (replica-wire.md §1.2).
const (
	offChecksum     = 0
	offChecksumBody = 16
	offCluster      = 32
	offSize         = 48
	offView         = 52
	offRelease      = 56
	offCommand      = 60
	offReplica      = 61
	offReserved     = 62
	offCommandArea  = 128
)

// Preamble is what all thirty headers share, bytes 0 to 62.
type Preamble struct {
	Checksum     U128 // frame seal, prepare identity or 0
	ChecksumBody U128
	Cluster      U128
	Size         uint32 // bytes, header and body
	View         uint32
	Release      uint32 // major<<20 | minor<<10 | patch
	Command      Command
	Replica      uint8 // member index of the sender
}

// DecodePreamble reads the shared fields from the front of a header. ErrShort is its only error.
func DecodePreamble(b []byte) (p Preamble, err error) {
	if len(b) < HeaderSize {
		return p, ErrShort
	}
	return Preamble{
		Checksum: DecodeU128(b), ChecksumBody: DecodeU128(b[offChecksumBody:]), Cluster: DecodeU128(b[offCluster:]),
		Size: le.Uint32(b[offSize:]), View: le.Uint32(b[offView:]), Release: le.Uint32(b[offRelease:]),
		Command: Command(b[offCommand]), Replica: b[offReplica],
	}, nil
}

// put clears the header and writes the preamble.
func (p *Preamble) put(b []byte) {
	clear(b[:HeaderSize])
	p.Checksum.Put(b)
	p.ChecksumBody.Put(b[offChecksumBody:])
	p.Cluster.Put(b[offCluster:])
	le.PutUint32(b[offSize:], p.Size)
	le.PutUint32(b[offView:], p.View)
	le.PutUint32(b[offRelease:], p.Release)
	b[offCommand], b[offReplica] = byte(p.Command), p.Replica
}

// FrameSize reads the size field of a header: the bytes of header and body together. It fails with
// ErrSize outside 256..limit; such a frame closes the connection, as does an unknown command
// (ErrCommand).
func FrameSize(header []byte, limit uint32) (uint32, error) {
	if len(header) < HeaderSize {
		return 0, ErrShort
	}
	size := le.Uint32(header[offSize:])
	if size < HeaderSize || size > limit {
		return 0, ErrSize
	}
	if !Command(header[offCommand]).Known() {
		return 0, ErrCommand
	}
	return size, nil
}

// zero reports whether every byte of b is 0.
func zero(b []byte) bool {
	var any byte
	for _, x := range b {
		any |= x
	}
	return any == 0
}

// Header is a raw header, for frames whose command decides which typed header decodes it.
type Header [HeaderSize]byte

// Command is the frame's command byte.
func (h *Header) Command() Command { return Command(h[offCommand]) }
