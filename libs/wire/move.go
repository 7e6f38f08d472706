package wire

// MoveKind says what a Move does to a partition.
type MoveKind uint8

// Kinds of OpSucceedPartition in the metadata log: a move is asked for, given up, done, and beyond recall.
const (
	MoveStart   MoveKind = 1 // the partition is to go to Members; they begin to copy
	MoveCancel  MoveKind = 2 // it stays where it is, unless its group is sealed already
	MoveSucceed MoveKind = 3 // the group is sealed at Seal; its successor with Members goes on behind it
	MoveSettle  MoveKind = 4 // enough members of the successor Group have begun: what the sealed group left may go
)

// LogSeal names the last op of a consensus group: nothing is admitted behind it, and a successor goes on from
// a log that ends in exactly this op.
type LogSeal struct {
	Op        uint64
	Identity  U128   // of its prepare
	Timestamp uint64 // µs
}

// Move is the body of OpSucceedPartition in the metadata log, and of the request for it. Layout: version:u8 = 1,
// kind:u8, group:u64, members:u8, node id:u8 each, and of MoveSucceed op:u64, identity:u128, timestamp:u64.
type Move struct {
	Kind    MoveKind
	Group   uint64  // id of the group that moves, incarnation tag included
	Members []byte  // node ids, the leader of view 0 first; of MoveStart and MoveSucceed
	Seal    LogSeal // of MoveSucceed
}

const moveVersion = 1

// DecodeMove decodes b, which it must fill. Members alias b.
func DecodeMove(b []byte) (m Move, err error) {
	r := reader{rest: b}
	version := r.u8()
	m.Kind, m.Group = MoveKind(r.u8()), r.u64()
	m.Members = r.take(int(r.u8()))
	if m.Kind == MoveSucceed {
		m.Seal = LogSeal{Op: r.u64(), Identity: r.u128(), Timestamp: r.u64()}
	}
	if version != moveVersion || m.Kind < MoveStart || m.Kind > MoveSettle ||
		(len(m.Members) == 0) != (m.Kind == MoveCancel || m.Kind == MoveSettle) || (m.Seal.Op == 0) != (m.Kind != MoveSucceed) || !distinct(m.Members) {
		r.fail()
	}
	return m, r.end()
}

// distinct reports whether members are nodes, each once.
func distinct(members []byte) bool {
	var seen [256]bool
	for _, id := range members {
		if id == NoNode || seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// Append writes m behind dst.
func (m Move) Append(dst []byte) []byte {
	dst = appendU64(append(dst, moveVersion, byte(m.Kind)), m.Group)
	dst = append(append(dst, byte(len(m.Members))), m.Members...)
	if m.Kind == MoveSucceed {
		dst = appendU64(appendU128(appendU64(dst, m.Seal.Op), m.Seal.Identity), m.Seal.Timestamp)
	}
	return dst
}

// PartitionSeal is the body of OpSealPartition, the last op of a partition's group: who goes on with it. Layout:
// members:u8, node id:u8 each.
type PartitionSeal struct{ Members []byte }

// DecodePartitionSeal decodes b, which it must fill. Members alias b.
func DecodePartitionSeal(b []byte) (s PartitionSeal, err error) {
	r := reader{rest: b}
	s.Members = r.take(int(r.u8()))
	if len(s.Members) == 0 || !distinct(s.Members) {
		r.fail()
	}
	return s, r.end()
}

// Append writes s behind dst.
func (s PartitionSeal) Append(dst []byte) []byte {
	return append(append(dst, byte(len(s.Members))), s.Members...)
}

// Copied is what a node that copies a partition as a non-member reports to the partition's primary and to the
// metadata primary. Layout: group:u64, node:u8, op:u64, took ms:u32, bytes:u64, of:u64.
type Copied struct {
	Group uint64
	Node  uint8
	Op    uint64 // the copy reaches so far, 0: it is not complete yet
	Took  uint32 // ms that the last round took
	Bytes uint64 // copied so far
	Of    uint64 // size of the state, 0: not known yet
}

// DecodeCopied decodes b, which it must fill.
func DecodeCopied(b []byte) (c Copied, err error) {
	r := reader{rest: b}
	c.Group, c.Node, c.Op, c.Took, c.Bytes, c.Of = r.u64(), r.u8(), r.u64(), r.u32(), r.u64(), r.u64()
	return c, r.end()
}

// Append writes c behind dst.
func (c Copied) Append(dst []byte) []byte {
	dst = appendU64(append(appendU64(dst, c.Group), c.Node), c.Op)
	return appendU64(appendU64(le.AppendUint32(dst, c.Took), c.Bytes), c.Of)
}
