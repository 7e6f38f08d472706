package wire

// ConsumerKind says whether offsets belong to one consumer or to a consumer group.
type ConsumerKind uint8

// Consumer kinds.
const (
	ConsumerSingle ConsumerKind = 1
	ConsumerGroup  ConsumerKind = 2
)

// Consumer names whose offset a poll or an offset command means.
// Layout: kind:u8 identifier (client-wire §8).
type Consumer struct {
	Kind ConsumerKind
	ID   Identifier
}

// OffsetID is the number under which a single consumer's offsets are kept: its numeric identifier,
// or NameHash of its name. A group's number comes from the metadata instead.
func (c Consumer) OffsetID() uint32 {
	if c.ID.IsNamed() {
		return NameHash(c.ID.Name)
	}
	return c.ID.ID
}

// Append writes c's wire form behind dst.
func (c Consumer) Append(dst []byte) []byte {
	return c.ID.Append(append(dst, byte(c.Kind)))
}

func (r *reader) consumer() Consumer {
	kind := ConsumerKind(r.u8())
	if kind != ConsumerSingle && kind != ConsumerGroup {
		r.fail()
	}
	return Consumer{Kind: kind, ID: r.identifier()}
}

// PartitionSelector is a partition id that may be absent. Only flag 1 means present; any other flag
// reads as absent and its id is ignored. Layout: flag:u8 id:u32 (client-wire §8).
type PartitionSelector struct {
	Set bool
	ID  uint32
}

// SelectPartition is the selector of partition id.
func SelectPartition(id uint32) PartitionSelector { return PartitionSelector{Set: true, ID: id} }

// Append writes s's wire form behind dst.
func (s PartitionSelector) Append(dst []byte) []byte {
	if !s.Set {
		return append(dst, 0, 0, 0, 0, 0)
	}
	return appendU32(append(dst, 1), s.ID)
}

func (r *reader) selector() PartitionSelector {
	flag, id := r.u8(), r.u32()
	if flag != 1 {
		return PartitionSelector{}
	}
	return SelectPartition(id)
}

// Ack says what an offset write waits for.
type Ack uint8

// Acknowledgement levels. On a replicated partition both answer after the quorum.
const (
	AckNone   Ack = 0
	AckQuorum Ack = 1
)

func (r *reader) ack() Ack {
	ack := Ack(r.u8())
	if ack > AckQuorum {
		r.fail()
	}
	return ack
}
