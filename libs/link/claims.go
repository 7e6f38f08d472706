package link

import (
	"encoding/binary"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Claims is the body of InternalClaims: which sessions a front-door holds, or how that changed. Layout:
// door:u64, sequence:u64, count:u32, held {client:u128, session:u64} each, the same for dropped.
type Claims struct {
	Door     uint64 // random number of the front-door's process
	Sequence uint64 // 0: Held is everything; otherwise one above that of the claims before
	Held     []Claim
	Dropped  []Claim
}

// Claim names one session.
type Claim struct {
	Client  wire.U128
	Session uint64
}

// ClaimsAgain is the answer of a primary that does not know what the claims before said: it wants to hear
// everything. Otherwise the answer is empty.
const ClaimsAgain = 1

const claimSize = 24

// Append writes c behind dst.
func (c *Claims) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, c.Door)
	dst = binary.LittleEndian.AppendUint64(dst, c.Sequence)
	return appendClaims(appendClaims(dst, c.Held), c.Dropped)
}

func appendClaims(dst []byte, list []Claim) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(list)))
	for _, one := range list {
		dst = binary.LittleEndian.AppendUint64(dst, one.Client.Lo)
		dst = binary.LittleEndian.AppendUint64(dst, one.Client.Hi)
		dst = binary.LittleEndian.AppendUint64(dst, one.Session)
	}
	return dst
}

// DecodeClaims decodes b, which it must fill.
func DecodeClaims(b []byte) (c Claims, ok bool) {
	if len(b) < 16 {
		return c, false
	}
	c.Door, c.Sequence = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if c.Held, b, ok = decodeClaims(b[16:]); !ok {
		return c, false
	}
	c.Dropped, b, ok = decodeClaims(b)
	return c, ok && len(b) == 0
}

func decodeClaims(b []byte) (list []Claim, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, b, false
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; count*claimSize > uint64(len(b)) {
		return nil, b, false
	}
	for ; count > 0; count-- {
		list = append(list, Claim{Client: wire.DecodeU128(b), Session: binary.LittleEndian.Uint64(b[16:])})
		b = b[claimSize:]
	}
	return list, b, true
}
