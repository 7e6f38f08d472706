package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Option is one entry of a topic's option map.
type Option struct {
	Key   string
	Kind  uint8 // wire value kind
	Value []byte
}

// Generation says which option keys a client knows (released-clients §3.2).
type Generation uint8

const (
	// GenerationSnapshot knows enforce_fsync: the documented snapshot, unknown clients, HTTP.
	GenerationSnapshot Generation = iota
	// GenerationReleased knows durability and consumer_offset_durability: rust-sdk >= 0.11.0-edge.8.
	GenerationReleased
)

// CatalogueKey describes one topic option.
type CatalogueKey struct {
	Key     string
	Kind    uint8  // canonical value kind
	Default []byte // in canonical kind
	Mutable bool   // UpdateTopic accepts it
}

var _ wire.Code
