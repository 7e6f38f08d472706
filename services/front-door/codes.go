package frontdoor

import (
	"crypto/rand"
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/wire"
)

// asCode is the protocol code of an error from a decoder.
func asCode(err error) wire.Code {
	var code wire.Code
	if errors.As(err, &code) {
		return code
	}
	return wire.CodeInvalidCommand
}

func randomUint64() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// appendSealed encodes the question of link.InternalSealed.
func appendSealed(dst []byte, group uint64, count uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(dst, group), count)
}

// decodeSealed reads its answer; nothing sealed is 0.
func decodeSealed(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}
