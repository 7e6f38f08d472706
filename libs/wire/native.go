package wire

// Bodies of the operations that only Whippet's own partition logs hold. They borrow the numbers of
// metadata operations and carry the partition's group id, which tells them apart; purges and trims
// are thereby ordered with the sends around them.

// PartitionPurge is the body of OpPurgeTopic in a partition's log: drop every message and stored
// offset, restart offsets at 0. Layout: generation:u64.
type PartitionPurge struct{ Generation uint64 }

// DecodePartitionPurge decodes b, which it must fill.
func DecodePartitionPurge(b []byte) (p PartitionPurge, err error) {
	r := reader{rest: b}
	p.Generation = r.u64()
	return p, r.end()
}

// Append writes p behind dst.
func (p PartitionPurge) Append(dst []byte) []byte { return appendU64(dst, p.Generation) }

// PartitionTrim is the body of OpTruncatePartition in a partition's log: drop whole segments that
// end at or below UpToOffset. Layout: up_to_offset:u64.
type PartitionTrim struct{ UpToOffset uint64 }

// DecodePartitionTrim decodes b, which it must fill.
func DecodePartitionTrim(b []byte) (p PartitionTrim, err error) {
	r := reader{rest: b}
	p.UpToOffset = r.u64()
	return p, r.end()
}

// Append writes p behind dst.
func (p PartitionTrim) Append(dst []byte) []byte { return appendU64(dst, p.UpToOffset) }
