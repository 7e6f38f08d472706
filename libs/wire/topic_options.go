package wire

import (
	"bytes"
	"strconv"
)

// Compression is how a topic says its messages are packed. The broker stores the word only.
type Compression uint8

// Compressions.
const (
	CompressionNone Compression = 1
	CompressionGzip Compression = 2
)

// String is the compression's name in options: "none" or "gzip".
func (c Compression) String() string {
	if c == CompressionGzip {
		return "gzip"
	}
	return "none"
}

// Keys of topic options. EnforceFsync belongs to the snapshot's clients; the two durability keys
// to released ones (released-clients §3.2).
const (
	OptionCompression              = "compression_algorithm"
	OptionMessageExpiry            = "message_expiry"
	OptionMaxTopicSize             = "max_topic_size"
	OptionSegmentSize              = "segment_size"
	OptionEnforceFsync             = "enforce_fsync"
	OptionDurability               = "durability"
	OptionConsumerOffsetDurability = "consumer_offset_durability"
	OptionMessagesRequiredToSave   = "messages_required_to_save"
	OptionSizeRequiredToSave       = "size_of_messages_required_to_save"
	OptionPreallocateSegments      = "preallocate_segments"
)

// Bounds and defaults of topic options.
const (
	MinSegmentSize        uint64 = 1 << 20
	MaxSegmentSize        uint64 = 1 << 30
	SegmentSizeUnit       uint64 = 512 // segment sizes are multiples of it
	DefaultSegmentSize    uint64 = 1 << 30
	MaxMessagesToSave     uint32 = 1 << 24
	DefaultMessagesToSave uint32 = 1024
	MaxSizeToSave         uint64 = 1 << 30
	DefaultSizeToSave     uint64 = 1 << 20
	MaxPreallocation      uint64 = 64 << 30 // segment size times partitions
)

// Values of the durability keys.
const (
	durabilityReplicated = "replicated"
	durabilityPersisted  = "persisted"
)

// topicKey numbers the keys in their sorted order.
type topicKey uint8

const (
	keyCompression topicKey = iota
	keyConsumerOffsetDurability
	keyDurability
	keyEnforceFsync
	keyMaxTopicSize
	keyMessageExpiry
	keyMessagesToSave
	keyPreallocate
	keySegmentSize
	keySizeToSave
	topicKeys
)

var topicKeyNames = [topicKeys]string{
	OptionCompression, OptionConsumerOffsetDurability, OptionDurability, OptionEnforceFsync, OptionMaxTopicSize,
	OptionMessageExpiry, OptionMessagesRequiredToSave, OptionPreallocateSegments, OptionSegmentSize,
	OptionSizeRequiredToSave,
}

// keySet holds a bit for each topicKey.
type keySet uint16

func (s keySet) has(k topicKey) bool { return s>>k&1 != 0 }

// updatable are the keys that update topic takes.
const updatable = keySet(1<<keyCompression | 1<<keyMaxTopicSize | 1<<keyMessageExpiry)

// TopicOptions are a topic's settings with every default filled in.
type TopicOptions struct {
	Compression    Compression
	MessageExpiry  uint64 // microseconds after append, Unlimited is never
	MaxTopicSize   uint64 // bytes, Unlimited is none
	SegmentSize    uint64 // bytes
	Persisted      bool   // sends are acknowledged when a quorum has them on stable storage
	OffsetsPersist bool   // so are explicit offset writes
	MessagesToSave uint32
	SizeToSave     uint64 // bytes
	Preallocate    bool

	explicit keySet // keys that were set to something else than "server default"
	sent     keySet // keys that stood in the block
}

// DefaultTopicOptions are the settings of a topic whose creator named none.
func DefaultTopicOptions() TopicOptions {
	return TopicOptions{
		Compression: CompressionNone, MessageExpiry: Unlimited, MaxTopicSize: Unlimited,
		SegmentSize: DefaultSegmentSize, MessagesToSave: DefaultMessagesToSave, SizeToSave: DefaultSizeToSave,
	}
}

// ParseTopicOptions reads the options of create topic, or a topic's stored explicit block. The
// first entry of an unknown key (CodeUnsupportedOptionKey) or with a value its key does not take
// (CodeInvalidOptionValue) decides the error; only when there is none are sizes held against their
// ranges (CodeInvalidOptionValue). Bounds that need more than one value are Check's.
func ParseTopicOptions(block Options) (TopicOptions, error) {
	o := DefaultTopicOptions()
	return o, o.read(block, 1<<topicKeys-1)
}

// ParseTopicUpdate applies the options of update topic to current. A key that is unknown or that
// only creation takes is CodeUnsupportedOptionKey, before any value is looked at; a value that means
// "server default" leaves its setting alone. The block to store is MergeOptions of the stored one
// and this.
func ParseTopicUpdate(current TopicOptions, block Options) (TopicOptions, error) {
	o := current
	o.sent = 0
	for p := range block.All() {
		if key, ok := findTopicKey(p.Key); !ok || !updatable.has(key) {
			return o, CodeUnsupportedOptionKey
		}
	}
	return o, o.read(block, updatable)
}

// Check applies the bounds that span several values, for a topic that is to have partitions:
// CodeInvalidTopicSize for a topic size below the segment size, CodeInvalidOptionValue for a
// preallocation that is too large.
func (o *TopicOptions) Check(partitions uint32) error {
	if o.Preallocate && o.SegmentSize*uint64(partitions) > MaxPreallocation {
		return CodeInvalidOptionValue
	}
	if o.MaxTopicSize < o.SegmentSize {
		return CodeInvalidTopicSize
	}
	return nil
}

// SetsMaxTopicSize reports whether the block just parsed held a topic size.
func (o *TopicOptions) SetsMaxTopicSize() bool { return o.sent.has(keyMaxTopicSize) }

func (o *TopicOptions) read(block Options, allowed keySet) error {
	for p := range block.All() {
		key, ok := findTopicKey(p.Key)
		if !ok || !allowed.has(key) {
			return CodeUnsupportedOptionKey
		}
		if !o.set(key, p) {
			return CodeInvalidOptionValue
		}
		o.sent |= 1 << key
	}
	if !o.inRange() {
		return CodeInvalidOptionValue
	}
	return nil
}

func (o *TopicOptions) inRange() bool {
	return o.SegmentSize >= MinSegmentSize && o.SegmentSize <= MaxSegmentSize && o.SegmentSize%SegmentSizeUnit == 0 &&
		o.SizeToSave <= MaxSizeToSave
}

func findTopicKey(name []byte) (topicKey, bool) {
	for k, known := range topicKeyNames {
		if string(name) == known {
			return topicKey(k), true
		}
	}
	return 0, false
}

// set reads one value; false means that it is not one the key takes.
func (o *TopicOptions) set(key topicKey, p Pair) (ok bool) {
	switch key {
	case keyCompression:
		ok = o.setCompression(p)
	case keyMessageExpiry:
		return o.setSentinel(key, &o.MessageExpiry, p, expiryWord)
	case keyMaxTopicSize:
		return o.setSentinel(key, &o.MaxTopicSize, p, topicSizeWord)
	case keySegmentSize:
		return o.setSentinel(key, &o.SegmentSize, p, plainSizeWord)
	case keySizeToSave:
		return o.setSentinel(key, &o.SizeToSave, p, plainSizeWord)
	case keyMessagesToSave:
		o.MessagesToSave, ok = uint32Value(p)
		ok = ok && o.MessagesToSave >= 1 && o.MessagesToSave <= MaxMessagesToSave
	case keyPreallocate:
		o.Preallocate, ok = boolValue(p)
	case keyEnforceFsync:
		ok = o.setPersisted(keyDurability, boolValue, p)
	case keyDurability:
		ok = o.setPersisted(keyEnforceFsync, durabilityValue, p)
	case keyConsumerOffsetDurability:
		o.OffsetsPersist, ok = durabilityValue(p)
	}
	o.explicit |= 1 << key
	return ok
}

// setPersisted reads either spelling of the messages' durability. When the other one stands too
// they must agree.
func (o *TopicOptions) setPersisted(other topicKey, read func(Pair) (bool, bool), p Pair) bool {
	persisted, ok := read(p)
	if ok && o.explicit.has(other) && persisted != o.Persisted {
		return false
	}
	o.Persisted = persisted
	return ok
}

// setSentinel reads a u64 of which 0 means "server default": it leaves the setting as it is.
func (o *TopicOptions) setSentinel(key topicKey, field *uint64, p Pair, word func(string) (uint64, bool)) bool {
	value, ok := uint64Value(p, word)
	if ok && value != 0 {
		*field = value
		o.explicit |= 1 << key
	}
	return ok
}

func (o *TopicOptions) setCompression(p Pair) bool {
	switch {
	case p.ValueKind == KindUint8 && len(p.Value) == 1:
		o.Compression = Compression(p.Value[0])
		return o.Compression == CompressionNone || o.Compression == CompressionGzip
	case p.ValueKind != KindString:
		return false
	case bytes.EqualFold(p.Value, []byte("none")):
		o.Compression = CompressionNone
		return true
	case bytes.EqualFold(p.Value, []byte("gzip")):
		o.Compression = CompressionGzip
		return true
	}
	return false
}

func expiryWord(text string) (uint64, bool) {
	switch text {
	case "none", "unlimited", "never_expire":
		return Unlimited, true
	case "default", "server_default":
		return 0, true
	}
	return ParseDuration(text)
}

func topicSizeWord(text string) (uint64, bool) {
	switch text {
	case "unlimited":
		return Unlimited, true
	case "server_default", "none":
		return 0, true
	}
	return ParseSize(text)
}

func plainSizeWord(text string) (uint64, bool) {
	switch text {
	case "unlimited", "none":
		return 0, true
	}
	return ParseSize(text)
}

func uint64Value(p Pair, word func(string) (uint64, bool)) (uint64, bool) {
	switch {
	case p.ValueKind == KindUint64 && len(p.Value) == 8:
		return le.Uint64(p.Value), true
	case p.ValueKind == KindString:
		return word(string(p.Value))
	}
	return 0, false
}

func uint32Value(p Pair) (uint32, bool) {
	switch {
	case p.ValueKind == KindUint32 && len(p.Value) == 4:
		return le.Uint32(p.Value), true
	case p.ValueKind == KindString:
		n, err := strconv.ParseUint(string(p.Value), 10, 32)
		return uint32(n), err == nil
	}
	return 0, false
}

func boolValue(p Pair) (value, ok bool) {
	switch {
	case p.ValueKind == KindBool && len(p.Value) == 1 && p.Value[0] <= 1:
		return p.Value[0] == 1, true
	case p.ValueKind == KindString:
		return string(p.Value) == "true", string(p.Value) == "true" || string(p.Value) == "false"
	}
	return false, false
}

func durabilityValue(p Pair) (persisted, ok bool) {
	if p.ValueKind != KindString {
		return false, false
	}
	if equalFoldASCII(p.Value, durabilityPersisted) {
		return true, true
	}
	return false, equalFoldASCII(p.Value, durabilityReplicated)
}

// equalFoldASCII compares without regard to the case of ASCII letters; word is lower case.
func equalFoldASCII(b []byte, word string) bool {
	return len(b) == len(word) && bytes.EqualFold(b, []byte(word))
}
