package wire

// ConsumerKind says whether offsets belong to one consumer or to a consumer group.
type ConsumerKind uint8

// Consumer kinds.
const (
	ConsumerSingle ConsumerKind = 1
	ConsumerGroup  ConsumerKind = 2
)
