package segment

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/wire"
)

// State is what a checkpoint keeps of a log: committed bytes only, all of them synced.
type State struct {
	Generation  uint64
	Start       uint64 // first retained offset
	Next        uint64 // offset behind the last message
	Time        uint64 // base timestamp of the last batch, microseconds
	SegmentSize int64  // bytes; fixed at the partition's birth, 0: what Options says
	Segments    []SegmentState
}

// SegmentState is one file of a State, ascending by Base and contiguous from Start to Next.
type SegmentState struct {
	Base, Next          uint64
	Length              int64 // bytes
	Last                int64 // position of the last batch
	FirstTime, LastTime uint64
	Hash                uint64 // XXH3 of a sealed file, 0 while unknown
}

// The encoding: version u8, generation, start, next, time, segment size u64, segments u32, then 56 bytes a
// segment in field order, then XXH3 of all before, u64; little-endian.
const (
	stateVersion = 1
	stateHead    = 1 + 5*8 + 4
	stateSegment = 7 * 8
)

var errState = errors.New("segment: checkpoint state does not decode")

// Append encodes s behind dst.
func (s *State) Append(dst []byte) []byte {
	from, le := len(dst), binary.LittleEndian
	dst = append(dst, stateVersion)
	for _, n := range [...]uint64{s.Generation, s.Start, s.Next, s.Time, uint64(s.SegmentSize)} {
		dst = le.AppendUint64(dst, n)
	}
	dst = le.AppendUint32(dst, uint32(len(s.Segments)))
	for i := range s.Segments {
		x := &s.Segments[i]
		for _, n := range [...]uint64{x.Base, x.Next, uint64(x.Length), uint64(x.Last), x.FirstTime, x.LastTime, x.Hash} {
			dst = le.AppendUint64(dst, n)
		}
	}
	return le.AppendUint64(dst, wire.Hash64(dst[from:]))
}

// DecodeState reads what Append wrote, nothing before it and nothing behind it.
func DecodeState(b []byte) (State, error) {
	var s State
	le := binary.LittleEndian
	if len(b) < stateHead+8 || b[0] != stateVersion || wire.Hash64(b[:len(b)-8]) != le.Uint64(b[len(b)-8:]) {
		return s, errState
	}
	n := int(le.Uint32(b[41:]))
	if len(b) != stateHead+n*stateSegment+8 {
		return s, errState
	}
	s.Generation, s.Start, s.Next, s.Time = le.Uint64(b[1:]), le.Uint64(b[9:]), le.Uint64(b[17:]), le.Uint64(b[25:])
	s.SegmentSize = int64(le.Uint64(b[33:]))
	s.Segments = make([]SegmentState, n)
	next := s.Start
	for i := range s.Segments {
		p, x := b[stateHead+i*stateSegment:], &s.Segments[i]
		x.Base, x.Next = le.Uint64(p), le.Uint64(p[8:])
		x.Length, x.Last = int64(le.Uint64(p[16:])), int64(le.Uint64(p[24:]))
		x.FirstTime, x.LastTime, x.Hash = le.Uint64(p[32:]), le.Uint64(p[40:]), le.Uint64(p[48:])
		if x.Base != next || x.Next <= x.Base || x.Last < 0 || x.Length-x.Last < headerSize {
			return State{}, errState
		}
		next = x.Next
	}
	if next != s.Next {
		return State{}, errState
	}
	return s, nil
}
