package wire

// Limits of transferred consumer offsets, replica-wire.md §9.5.
const (
	MaxOffsetEntries  = 1 << 20 // per table
	offsetEntrySize   = 12
	offsetsMagic      = "ICO1"
	offsetsVersion    = 1
	offsetsFixedBytes = 1 + 8 + 8 + 4 + 4
)

// OffsetEntry is the stored offset of one consumer or consumer group.
type OffsetEntry struct {
	ID     uint32
	Offset uint64
}

// ConsumerOffsets is the CONSUMER_OFFSETS artifact of a partition. Both tables are strictly ascending
// by id.
type ConsumerOffsets struct {
	PurgeGeneration uint64
	NextOffset      uint64 // offset of the next message, also when retention left no segment
	Consumers       []OffsetEntry
	Groups          []OffsetEntry
}

// Append writes the artifact behind dst.
// Layout: "ICO1" · version:u8 · purge_generation:u64 · next_offset:u64 · C:u32 · G:u32 ·
// {id:u32 · offset:u64} C+G times · Hash64 of everything before:u64.
func (o ConsumerOffsets) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(append(dst, offsetsMagic...), offsetsVersion)
	dst = appendU64(appendU64(dst, o.PurgeGeneration), o.NextOffset)
	dst = appendU32(appendU32(dst, uint32(len(o.Consumers))), uint32(len(o.Groups)))
	for _, list := range [...][]OffsetEntry{o.Consumers, o.Groups} {
		for _, e := range list {
			dst = appendU64(appendU32(dst, e.ID), e.Offset)
		}
	}
	return appendTrailer(dst, start)
}

// DecodeConsumerOffsets decodes b, which it must fill.
func DecodeConsumerOffsets(b []byte) (o ConsumerOffsets, err error) {
	r, err := openTrailer(b, offsetsMagic)
	if err != nil {
		return o, err
	}
	if len(r.rest) < offsetsFixedBytes {
		return o, ErrShort
	}
	if r.u8() != offsetsVersion {
		return o, ErrKind
	}
	o.PurgeGeneration, o.NextOffset = r.u64(), r.u64()
	consumers, groups := r.u32(), r.u32()
	if consumers > MaxOffsetEntries || groups > MaxOffsetEntries ||
		(uint64(consumers)+uint64(groups))*offsetEntrySize != uint64(len(r.rest)) {
		return o, ErrCount
	}
	if o.Consumers, err = r.offsetEntries(consumers); err == nil {
		o.Groups, err = r.offsetEntries(groups)
	}
	return o, err
}

func (r *reader) offsetEntries(count uint32) ([]OffsetEntry, error) {
	if count == 0 {
		return nil, nil
	}
	list := make([]OffsetEntry, count)
	for i := range list {
		list[i] = OffsetEntry{r.u32(), r.u64()}
		if i > 0 && list[i].ID <= list[i-1].ID {
			return nil, ErrOrder
		}
	}
	return list, nil
}
