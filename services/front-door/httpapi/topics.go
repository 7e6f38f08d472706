package httpapi

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/whippet-mq/whippet/libs/wire"
)

type topicJSON struct {
	ID              uint32                `json:"id"`
	CreatedAt       uint64                `json:"created_at"`
	Name            string                `json:"name"`
	Size            string                `json:"size"`
	MessageExpiry   uint64                `json:"message_expiry"`
	Compression     string                `json:"compression_algorithm"`
	MaxTopicSize    uint64                `json:"max_topic_size"`
	MessagesCount   uint64                `json:"messages_count"`
	PartitionsCount uint32                `json:"partitions_count"`
	Options         map[string]optionJSON `json:"options"`
}

type topicDetailsJSON struct {
	ID              uint32                `json:"id"`
	CreatedAt       uint64                `json:"created_at"`
	Name            string                `json:"name"`
	Size            string                `json:"size"`
	MessageExpiry   uint64                `json:"message_expiry"`
	Compression     string                `json:"compression_algorithm"`
	MaxTopicSize    uint64                `json:"max_topic_size"`
	MessagesCount   uint64                `json:"messages_count"`
	PartitionsCount uint32                `json:"partitions_count"`
	Partitions      []partitionJSON       `json:"partitions"`
	Options         map[string]optionJSON `json:"options"`
}

type partitionJSON struct {
	ID            uint32 `json:"id"`
	CreatedAt     uint64 `json:"created_at"`
	SegmentsCount uint32 `json:"segments_count"`
	CurrentOffset uint64 `json:"current_offset"`
	Size          string `json:"size"`
	MessagesCount uint64 `json:"messages_count"`
}

type optionJSON struct {
	Value    string `json:"value"`
	Explicit bool   `json:"explicit"`
}

func showTopic(t *wire.TopicRecord) topicJSON {
	return topicJSON{
		t.ID, t.CreatedAt, t.Name, wire.FormatSize(t.SizeBytes), t.MessageExpiry, t.Compression.String(), t.MaxTopicSize,
		t.MessagesCount, t.PartitionsCount, showOptions(t),
	}
}

func showTopics(list []wire.TopicRecord) []topicJSON {
	out := make([]topicJSON, len(list))
	for i := range list {
		out[i] = showTopic(&list[i])
	}
	return out
}

func showOptions(t *wire.TopicRecord) map[string]optionJSON {
	out := make(map[string]optionJSON)
	for o := range t.Derived.All() {
		out[string(o.Key)] = optionJSON{Value: wire.OptionText(o.ValueKind, o.Value)}
	}
	for o := range t.Explicit.All() {
		out[string(o.Key)] = optionJSON{Value: wire.OptionText(o.ValueKind, o.Value), Explicit: true}
	}
	return out
}

// getTopics serves GET /streams/{stream}/topics; a missing stream has none.
func getTopics(c *call) error {
	id, err := c.id(0)
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	return c.read(wire.CmdGetTopics, wire.StreamTarget{Stream: id}.Append(nil), func(b []byte) error {
		topics, err := wire.DecodeTopics(b)
		if err != nil {
			return err
		}
		return c.json(showTopics(topics))
	})
}

// getTopic serves GET …/topics/{topic}.
func getTopic(c *call) error {
	target, err := c.topic()
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	return c.read(wire.CmdGetTopic, target.Append(nil), func(b []byte) error {
		if len(b) == 0 {
			return errMissing
		}
		return c.topicDetails(b)
	})
}

func (c *call) topicDetails(b []byte) error {
	t, err := wire.DecodeTopicDetails(b)
	if err != nil {
		return err
	}
	partitions := make([]partitionJSON, len(t.Partitions))
	for i, p := range t.Partitions {
		partitions[i] = partitionJSON{p.ID, p.CreatedAt, p.SegmentsCount, p.CurrentOffset, wire.FormatSize(p.SizeBytes), p.MessagesCount}
	}
	s := showTopic(&t.TopicRecord)
	return c.json(topicDetailsJSON{
		s.ID, s.CreatedAt, s.Name, s.Size, s.MessageExpiry, s.Compression, s.MaxTopicSize, s.MessagesCount, s.PartitionsCount, partitions, s.Options,
	})
}

// topicFields are the typed settings of a topic in a body; nil is not given.
type topicFields struct {
	name        []byte
	compression string
	expiry      *uint64 // µs
	maxSize     *uint64 // bytes
	options     wire.Options
}

// amount reads a number of 64 bits.
func (r *reader) amount() *uint64 {
	n := r.uint(math.MaxUint64)
	return &n
}

// compression reads "none" or "gzip" in any letter case.
func (r *reader) compression() string {
	text := strings.ToLower(string(r.str()))
	if text != wire.CompressionNone.String() && text != wire.CompressionGzip.String() {
		r.unfit("Expected none or gzip.")
	}
	return text
}

// block is the options block of the fields. A typed field comes instead of the option of its name. In
// a create, which must give them all, the neutral ones (none, 0, 0) say nothing; in an update 0 keeps
// the current value.
func (f *topicFields) block(creating bool) wire.Options {
	var block []byte
	typed := make(map[string]bool)
	put := func(key string, kind wire.ValueKind, value []byte) {
		typed[key] = true
		block = wire.AppendOption(block, key, kind, value)
	}
	if f.compression != "" && (!creating || f.compression != wire.CompressionNone.String()) {
		put(wire.OptionCompression, wire.KindString, []byte(f.compression))
	}
	amount := func(key string, value *uint64) {
		if value != nil && (!creating || *value != 0) {
			put(key, wire.KindUint64, binary.LittleEndian.AppendUint64(nil, *value))
		}
	}
	amount(wire.OptionMessageExpiry, f.expiry)
	amount(wire.OptionMaxTopicSize, f.maxSize)
	for o := range f.options.All() {
		if !typed[string(o.Key)] {
			block = o.Append(block)
		}
	}
	return block
}

// createTopic serves POST /streams/{stream}/topics.
func createTopic(c *call) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	var f topicFields
	q := wire.CreateTopicRequest{Stream: id}
	b.record([]string{"name", "partitions_count", "compression_algorithm", "message_expiry", "max_topic_size", "options"}, 5, func(i int) {
		switch i {
		case 0:
			f.name = b.str()
		case 1:
			q.PartitionsCount = uint32(b.uint(math.MaxUint32))
		case 2:
			f.compression = b.compression()
		case 3:
			f.expiry = b.amount()
		case 4:
			f.maxSize = b.amount()
		case 5:
			f.options = b.options()
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	if !nameFits(f.name) {
		return refusal(wire.CodeInvalidTopicName)
	}
	q.Name, q.Options = f.name, f.block(true)
	return c.write(wire.OpCreateTopic, q.Append(nil), c.topicDetails)
}

// updateTopic serves PUT …/topics/{topic}.
func updateTopic(c *call) error {
	target, err := c.topic()
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	var f topicFields
	b.record([]string{"name", "compression_algorithm", "message_expiry", "max_topic_size", "options"}, 1, func(i int) {
		switch {
		case i == 0:
			f.name = b.str()
		case i == 4:
			f.options = b.options()
		case b.null():
		case i == 1:
			f.compression = b.compression()
		case i == 2:
			f.expiry = b.amount()
		case i == 3:
			f.maxSize = b.amount()
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	if !nameFits(f.name) {
		return refusal(wire.CodeInvalidTopicName)
	}
	q := wire.UpdateTopicRequest{Stream: target.Stream, Topic: target.Topic, Name: f.name, Options: f.block(false)}
	return c.write(wire.OpUpdateTopic, q.Append(nil), c.noContent)
}

// onTopic serves an operation whose only argument is a topic.
func onTopic(c *call, op wire.Operation) error {
	target, err := c.topic()
	if err != nil {
		return err
	}
	return c.write(op, target.Append(nil), c.noContent)
}

// deleteTopic serves DELETE …/topics/{topic}.
func deleteTopic(c *call) error { return onTopic(c, wire.OpDeleteTopic) }

// purgeTopic serves DELETE …/topics/{topic}/purge.
func purgeTopic(c *call) error { return onTopic(c, wire.OpPurgeTopic) }
