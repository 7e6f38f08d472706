package verify

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// Violation says that the server broke its word.
type Violation struct{ Text string }

func (v *Violation) Error() string { return v.Text }

func violation(format string, args ...any) *Violation {
	return &Violation{fmt.Sprintf(format, args...)}
}

// Model is what a server must hold.
type Model struct {
	mu      sync.Mutex
	content *content
	topics  map[topicName]*topic
	offsets map[offsetKey]*storedOffset
	streams map[string]*existence
	acked   int64 // messages acknowledged, purged ones included
}

type topicName struct{ stream, topic string }

// topic is one topic since its last purge.
type topic struct {
	partitions []*partition
	floor      uint64 // message numbers below were purged
	purging    bool   // a purge was sent and not yet answered
}

// partition knows which message stands at which offset: number+1, 0 for not known yet.
type partition struct {
	at      []uint64
	acked   []bool
	trimmed bool              // the oldest segments may be gone
	hashes  map[uint64]uint64 // by offset, of acknowledged payloads
}

type offsetKey struct {
	topicName
	partition uint32
	consumer  string
}

// storedOffset is what get offset may answer: the last acknowledged value, or one sent after it.
type storedOffset struct {
	acked bool
	value uint64
	sent  []uint64
}

// existence is whether a stream must, may or must not be there.
type existence struct{ exists, pending bool }

func newModel() *Model {
	return &Model{topics: map[topicName]*topic{}, offsets: map[offsetKey]*storedOffset{}, streams: map[string]*existence{}}
}

// Acknowledged is the number of messages acknowledged so far.
func (m *Model) Acknowledged() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.acked
}

func (m *Model) apply(e Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := topicName{e.Stream, e.Topic}
	switch e.Kind {
	case KindRun:
		m.content = newContent(e.Number)
	case KindTopic:
		t := &topic{}
		for range e.Partition {
			t.partitions = append(t.partitions, newPartition())
		}
		m.topics[name] = t
	case KindSend:
		return m.sent(name, e)
	case KindPurging:
		m.topics[name].purging = true
	case KindPurge:
		m.purged(name, e.Number)
	case KindTrimming:
		m.topics[name].partitions[e.Partition].trimmed = true
	case KindStoring:
		o := m.offset(offsetKey{name, e.Partition, e.Consumer})
		o.sent = append(o.sent, e.Offset)
	case KindStore:
		*m.offset(offsetKey{name, e.Partition, e.Consumer}) = storedOffset{acked: true, value: e.Offset}
	case KindMaking, KindDropping:
		m.stream(e.Stream).pending = true
	case KindMake, KindDrop:
		*m.stream(e.Stream) = existence{exists: e.Kind == KindMake}
	default:
		return fmt.Errorf("unknown event %q", e.Kind)
	}
	return nil
}

func newPartition() *partition { return &partition{hashes: map[uint64]uint64{}} }

func (m *Model) offset(k offsetKey) *storedOffset {
	if m.offsets[k] == nil {
		m.offsets[k] = &storedOffset{}
	}
	return m.offsets[k]
}

func (m *Model) stream(name string) *existence {
	if m.streams[name] == nil {
		m.streams[name] = &existence{}
	}
	return m.streams[name]
}

func (m *Model) sent(name topicName, e Event) error {
	t := m.topics[name]
	if t == nil || int(e.Partition) >= len(t.partitions) {
		return fmt.Errorf("send to unknown %s/%s/%d", e.Stream, e.Topic, e.Partition)
	}
	p := t.partitions[e.Partition]
	for i := range uint64(e.Count) {
		if err := p.place(e.Offset+i, e.Number+i); err != nil {
			return violation("%s/%s/%d: acknowledged %v", e.Stream, e.Topic, e.Partition, err)
		}
		p.acked[e.Offset+i] = true
		if len(e.Hashes) >= int(i+1)*8 {
			p.hashes[e.Offset+i] = binary.LittleEndian.Uint64(e.Hashes[i*8:])
		}
	}
	m.acked += int64(e.Count)
	return nil
}

// maxOffset bounds what a server may claim, so that a wild offset is an error and not an allocation.
const maxOffset = 1 << 30

// place says that a message stands at an offset.
func (p *partition) place(offset, number uint64) error {
	if offset > maxOffset {
		return fmt.Errorf("message %d at offset %d: out of all proportion", number, offset)
	}
	for uint64(len(p.at)) <= offset {
		p.at, p.acked = append(p.at, 0), append(p.acked, false)
	}
	if known := p.at[offset]; known != 0 && known != number+1 {
		return fmt.Errorf("message %d at offset %d, which denoted message %d", number, offset, known-1)
	}
	p.at[offset] = number + 1
	return nil
}

func (m *Model) purged(name topicName, floor uint64) {
	t := m.topics[name]
	t.floor, t.purging = floor, false
	for i := range t.partitions {
		t.partitions[i] = newPartition()
	}
	for k := range m.offsets {
		if k.topicName == name {
			delete(m.offsets, k)
		}
	}
}

// highest returns the highest acknowledged offset of a partition.
func (m *Model) highest(name topicName, partition uint32) (uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	acked := m.topics[name].partitions[partition].acked
	for i := len(acked) - 1; i >= 0; i-- {
		if acked[i] {
			return uint64(i), true
		}
	}
	return 0, false
}

// observe judges one message that was read, and remembers where it stands.
func (m *Model) observe(name topicName, partition uint32, msg client.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	where := fmt.Sprintf("%s/%s/%d offset %d", name.stream, name.topic, partition, msg.Offset)
	if msg.ID.Hi != m.content.run {
		return violation("%s holds a message nobody sent, id %x:%x", where, msg.ID.Hi, msg.ID.Lo)
	}
	number, t := msg.ID.Lo, m.topics[name]
	if number < t.floor {
		return violation("%s holds message %d, which was purged", where, number)
	}
	if !m.content.is(number, msg.Payload) {
		return violation("%s: message %d changed, %d bytes", where, number, len(msg.Payload))
	}
	p := t.partitions[partition]
	if err := p.place(msg.Offset, number); err != nil {
		return violation("%s/%s/%d: read %v", name.stream, name.topic, partition, err)
	}
	if hash, ok := p.hashes[msg.Offset]; ok && hash != wire.Hash64(msg.Payload) {
		return violation("%s: message %d has another length than acknowledged: %d", where, number, len(msg.Payload))
	}
	return nil
}

// trimmed reports whether a partition may begin above offset 0.
func (m *Model) trimmed(name topicName, partition uint32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.topics[name].partitions[partition].trimmed
}

// lost returns the acknowledged offsets of a partition from end on: messages that are not there.
func (m *Model) lost(name topicName, partition uint32, end uint64) []uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []uint64
	if t := m.topics[name]; !t.purging {
		for i, ok := range t.partitions[partition].acked {
			if ok && uint64(i) >= end {
				out = append(out, uint64(i))
			}
		}
	}
	return out
}

// mayStore reports whether a consumer's offset may be value, or, with found false, absent.
func (m *Model) mayStore(k offsetKey, value uint64, found bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.offset(k)
	if m.topics[k.topicName].purging && !found {
		return true
	}
	if !found {
		return !o.acked
	}
	return o.acked && o.value == value || slices.Contains(o.sent, value)
}
