package wire

// PartitioningKind says how a send picks its partition.
type PartitioningKind uint8

// Partitioning kinds.
const (
	PartitioningBalanced  PartitioningKind = 1
	PartitioningPartition PartitioningKind = 2
	PartitioningKey       PartitioningKind = 3
)

// Partitioning is how a send picks its partition: round robin, a given id, or the hash of a key.
// Layout: kind:u8 len:u8 value (client-wire §8). Key aliases the body.
type Partitioning struct {
	Kind      PartitioningKind
	Partition uint32 // with PartitioningPartition
	Key       []byte // with PartitioningKey: 1..255 bytes
}

// Append writes p's wire form behind dst.
func (p Partitioning) Append(dst []byte) []byte {
	switch p.Kind {
	case PartitioningPartition:
		return appendU32(append(dst, byte(p.Kind), 4), p.Partition)
	case PartitioningKey:
		return appendStr8(append(dst, byte(p.Kind)), p.Key)
	}
	return append(dst, byte(PartitioningBalanced), 0)
}

// KeyIndex is the place of a key in a topic's list of count partitions, count above 0.
func KeyIndex(key []byte, count uint32) uint32 { return NameHash(key) % count }

func (r *reader) partitioning() Partitioning {
	kind := PartitioningKind(r.u8())
	value := r.take(int(r.u8()))
	switch {
	case r.bad:
	case kind == PartitioningBalanced && len(value) == 0:
		return Partitioning{Kind: kind}
	case kind == PartitioningPartition && len(value) == 4:
		return Partitioning{Kind: kind, Partition: le.Uint32(value)}
	case kind == PartitioningKey && len(value) > 0:
		return Partitioning{Kind: kind, Key: value}
	}
	r.fail()
	return Partitioning{}
}

// StrategyKind says where a poll starts.
type StrategyKind uint8

// Polling strategies. Value counts for the first two only.
const (
	StrategyOffset    StrategyKind = 1 // at offset Value
	StrategyTimestamp StrategyKind = 2 // at the first batch appended at Value (microseconds) or later
	StrategyFirst     StrategyKind = 3
	StrategyLast      StrategyKind = 4 // the last count messages
	StrategyNext      StrategyKind = 5 // behind the stored offset
)

// Strategy is where a poll starts. Layout: kind:u8 value:u64 (client-wire §8).
type Strategy struct {
	Kind  StrategyKind
	Value uint64
}

// Append writes s's wire form behind dst.
func (s Strategy) Append(dst []byte) []byte {
	return appendU64(append(dst, byte(s.Kind)), s.Value)
}

func (r *reader) strategy() Strategy {
	s := Strategy{Kind: StrategyKind(r.u8()), Value: r.u64()}
	if s.Kind < StrategyOffset || s.Kind > StrategyNext {
		r.fail()
	}
	return s
}
