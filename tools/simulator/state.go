package simulator

import (
	"encoding/binary"
	"maps"

	"github.com/whippet-mq/whippet/libs/wire"
)

// state is the modelled state machine: a digest of everything applied and, for the metadata group, the
// newest request of each client.
type state struct {
	op     uint64
	digest uint64
	table  map[wire.U128]uint64
}

func (s *state) apply(e *entry) {
	s.op = e.header.Op
	s.digest = scramble(s.digest ^ e.header.Checksum.Lo ^ scramble(wire.Hash64(e.body)))
	if s.table != nil && !e.header.Client.IsZero() {
		s.table[e.header.Client] = max(s.table[e.header.Client], e.header.Request)
	}
}

// copied is a copy of a table, empty when there is none yet.
func copied(table map[wire.U128]uint64) map[wire.U128]uint64 {
	if table == nil {
		return map[wire.U128]uint64{}
	}
	return maps.Clone(table)
}

// Bodies carry a value that no other write has, the number the primary stamped, and their own hash,
// which stands for the checksum of a batch.
const bodySize = 24

func newBody(value uint64) []byte {
	b := make([]byte, bodySize)
	binary.LittleEndian.PutUint64(b, value)
	return sealBody(b, 0)
}

// sealBody stamps a body and hashes it.
func sealBody(b []byte, stamp uint64) []byte {
	binary.LittleEndian.PutUint64(b[8:], stamp)
	binary.LittleEndian.PutUint64(b[16:], wire.Hash64(b[:16]))
	return b
}

func valueOf(b []byte) uint64 {
	if len(b) != bodySize {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// stampOf is the stamped number; ok is false when the body is not what was sealed.
func stampOf(b []byte) (stamp uint64, ok bool) {
	if len(b) != bodySize || binary.LittleEndian.Uint64(b[16:]) != wire.Hash64(b[:16]) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[8:]), true
}
