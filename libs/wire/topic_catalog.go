package wire

// Generation is which list of topic options a client knows (released-clients §3.1, §3.2).
type Generation uint8

// Generations. A client that cannot be told apart counts as the snapshot's.
const (
	GenerationSnapshot Generation = iota // enforce_fsync
	GenerationReleased                   // durability and consumer_offset_durability
)

// catalogOrder is the order in which describe options lists the keys.
var catalogOrder = [topicKeys]topicKey{
	keyCompression, keyMessageExpiry, keyMaxTopicSize, keySegmentSize, keyEnforceFsync, keyDurability,
	keyConsumerOffsetDurability, keyMessagesToSave, keySizeToSave, keyPreallocate,
}

// lists reports whether clients of generation g know key.
func (g Generation) lists(key topicKey) bool {
	switch key {
	case keyEnforceFsync:
		return g == GenerationSnapshot
	case keyDurability, keyConsumerOffsetDurability:
		return g == GenerationReleased
	}
	return true
}

func (k topicKey) kind() ValueKind {
	switch k {
	case keyCompression, keyDurability, keyConsumerOffsetDurability:
		return KindString
	case keyEnforceFsync, keyPreallocate:
		return KindBool
	case keyMessagesToSave:
		return KindUint32
	}
	return KindUint64
}

func (k topicKey) description() string {
	switch k {
	case keyCompression:
		return "Compression the topic announces: none or gzip."
	case keyMessageExpiry:
		return "Age after which messages may be removed, in microseconds or as text such as 7 days; 0 takes the server's default."
	case keyMaxTopicSize:
		return "Size above which the oldest segments may be removed, in bytes or as text such as 5 GiB; 0 takes the server's default."
	case keySegmentSize:
		return "Size at which a partition starts a new segment, a multiple of 512 bytes from 1 MiB to 1 GiB; fixed at creation."
	case keyEnforceFsync:
		return "Acknowledge sends only when a quorum has them on stable storage; fixed at creation."
	case keyDurability:
		return "When sends are acknowledged: replicated (a quorum has them) or persisted (on stable storage); fixed at creation."
	case keyConsumerOffsetDurability:
		return "When explicit offset writes are acknowledged: replicated or persisted; fixed at creation."
	case keyMessagesToSave:
		return "Messages after which a partition writes out its buffer, 1 to 16777216; fixed at creation."
	case keySizeToSave:
		return "Bytes after which a partition writes out its buffer, at most 1 GiB; fixed at creation."
	}
	return "Reserve the disk space of whole segments ahead; fixed at creation."
}

// value appends the setting of key in its canonical kind behind dst.
func (o *TopicOptions) value(dst []byte, key topicKey) []byte {
	switch key {
	case keyCompression:
		return append(dst, o.Compression.String()...)
	case keyDurability:
		return append(dst, durabilityText(o.Persisted)...)
	case keyConsumerOffsetDurability:
		return append(dst, durabilityText(o.OffsetsPersist)...)
	case keyEnforceFsync:
		return appendFlag(dst, o.Persisted)
	case keyPreallocate:
		return appendFlag(dst, o.Preallocate)
	case keyMessagesToSave:
		return appendU32(dst, o.MessagesToSave)
	case keyMaxTopicSize:
		return appendU64(dst, o.MaxTopicSize)
	case keyMessageExpiry:
		return appendU64(dst, o.MessageExpiry)
	case keySegmentSize:
		return appendU64(dst, o.SegmentSize)
	}
	return appendU64(dst, o.SizeToSave)
}

func durabilityText(persisted bool) string {
	if persisted {
		return durabilityPersisted
	}
	return durabilityReplicated
}

// AppendExplicit writes the keys that were set to something else than "server default" behind dst,
// sorted, in canonical kinds: the block that create topic stores.
func (o *TopicOptions) AppendExplicit(dst []byte) []byte {
	for key := range topicKeys {
		if o.explicit.has(key) {
			dst = o.appendEntry(dst, key)
		}
	}
	return dst
}

// AppendDerived writes every key of generation g that AppendExplicit leaves out behind dst, sorted.
func (o *TopicOptions) AppendDerived(dst []byte, g Generation) []byte {
	for key := range topicKeys {
		if g.lists(key) && !o.explicit.has(key) {
			dst = o.appendEntry(dst, key)
		}
	}
	return dst
}

func (o *TopicOptions) appendEntry(dst []byte, key topicKey) []byte {
	var value [16]byte
	return AppendOption(dst, topicKeyNames[key], key.kind(), o.value(value[:0], key))
}

// AppendTopicCatalog writes the reply of describe options for the topic scope as generation g knows
// it behind dst. The reply for the other scopes is AppendCount(dst, 0).
func AppendTopicCatalog(dst []byte, g Generation) []byte {
	count := uint32(0)
	for _, key := range catalogOrder {
		if g.lists(key) {
			count++
		}
	}
	dst = AppendCount(dst, count)
	defaults := DefaultTopicOptions()
	for _, key := range catalogOrder {
		if g.lists(key) {
			record := OptionRecord{
				Key: topicKeyNames[key], Kind: key.kind(), Default: defaults.value(nil, key), Description: key.description(),
			}
			dst = record.Append(dst)
		}
	}
	return dst
}
