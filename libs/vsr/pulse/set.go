package pulse

import (
	"math/bits"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Set is a set of node ids.
type Set [4]uint64

// Add puts a node into s.
func (s *Set) Add(node uint8) { s[node>>6] |= 1 << (node & 63) }

// Has reports whether node is in s.
func (s *Set) Has(node uint8) bool { return s[node>>6]>>(node&63)&1 == 1 }

// Len is the number of nodes in s.
func (s *Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Enough reports whether a suspicion of this node, which those in s share, is a death for a group:
// viewChange is its quorum, this node included.
func (s *Set) Enough(members []uint8, viewChange int) bool {
	n := 1
	for _, m := range members {
		if s.Has(m) {
			n++
		}
	}
	return n >= viewChange
}

// Digest is what one group adds to the digest of its leader's loop, by XOR.
func Digest(group uint64, view uint32) uint64 {
	var b [12]byte
	for i := range 8 {
		b[i] = byte(group >> (8 * i))
	}
	for i := range 4 {
		b[8+i] = byte(view >> (8 * i))
	}
	return wire.Hash64(b[:])
}
