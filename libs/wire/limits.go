package wire

// Bounds of the client plane (client-wire §17). Decoders enforce name and option bounds only; the
// rest is the caller's.
const (
	MaxName          = 255       // bytes of any name
	MinUsername      = 3         // bytes
	MaxUsername      = 50        // bytes
	MinPassword      = 3         // bytes, at login
	MaxPassword      = 100       // bytes, at login
	MaxPartitions    = 1000      // partitions per create topic, create or delete partitions
	MaxPartitionID   = 1_000_000 // partition ids per topic
	MaxTopics        = 4096      // topics per stream
	MaxStreams       = 1 << 20
	MaxOptions       = 1024    // entries of an options block
	MaxOptionsSize   = 100_000 // bytes of an options block
	MaxTLVField      = 255     // bytes of a key or a value
	MaxPayload       = 64_000_000
	MaxUserHeaders   = 100_000 // bytes per message
	DefaultMaxTokens = 100     // personal access tokens per user
)
