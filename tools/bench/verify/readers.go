package verify

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// member reads a topic as a member of its group and judges every message.
type member struct {
	*Recorder
	load   *load
	joined *client.Client // the connection that is a member
	owned  []uint32
	next   int // index of the partition polled next
}

func (m *member) poll(c *client.Client) error {
	done, ok := m.load.use()
	if !ok {
		return nil
	}
	defer done()
	t := wire.GroupTarget{Stream: m.load.stream, Topic: m.load.topic, Group: wire.NamedID(groupName)}
	if m.joined != c || len(m.owned) == 0 {
		return m.join(c, t)
	}
	partition := m.owned[m.next%len(m.owned)]
	m.next++
	p, err := c.Poll(wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerGroup, ID: t.Group}, Stream: t.Stream, Topic: t.Topic,
		Partition: wire.SelectPartition(partition), Strategy: wire.Strategy{Kind: wire.StrategyNext},
		Count: memberCount, AutoCommit: true,
	})
	switch {
	case err != nil:
		return err
	case p.Partition == wire.PartitionResync:
		m.owned = nil
		return nil
	case p.MessagesCount == 0:
		time.Sleep(idlePause)
		return nil
	}
	return observeAll(m.ledger.Model, m.load.name, partition, p)
}

func (m *member) join(c *client.Client, t wire.GroupTarget) error {
	if m.joined != c {
		if err := c.JoinGroup(t); err != nil {
			return err
		}
		m.joined = c
	}
	a, err := c.SyncGroup(t)
	if err != nil {
		return fmt.Errorf("sync group of %s: %w", m.load.name.topic, err)
	}
	m.owned = a.Partitions
	if len(m.owned) == 0 {
		time.Sleep(idlePause)
	}
	return nil
}

// observeAll judges every message of a poll, its checksums, and that offsets follow each other.
func observeAll(m *Model, name topicName, partition uint32, p client.Polled) error {
	var last *uint64
	for msg, err := range p.Messages(true) {
		if err != nil {
			return violation("%s/%s/%d: %v", name.stream, name.topic, partition, err)
		}
		if last != nil && msg.Offset != *last+1 {
			return violation("%s/%s/%d: offset %d follows %d", name.stream, name.topic, partition, msg.Offset, *last)
		}
		last = &msg.Offset
		if err := m.observe(name, partition, msg); err != nil {
			return err
		}
	}
	return nil
}

// consumers is how many different consumers a storer stores offsets for.
const consumers = 8

// storer stores offsets of plain consumers. It is alone: what it sent last is what may be stored.
type storer struct {
	*Recorder
	random *rand.Rand
}

func (s *storer) store(c *client.Client) error {
	t := s.topics[s.random.IntN(len(s.topics))]
	done, ok := t.use()
	if !ok {
		return nil
	}
	defer done()
	partition := uint32(s.random.IntN(s.Partitions))
	highest, ok := s.ledger.Model.highest(t.name, partition)
	if !ok {
		time.Sleep(idlePause)
		return nil
	}
	e := Event{
		Kind: KindStoring, Stream: t.name.stream, Topic: t.name.topic, Partition: partition,
		Consumer: fmt.Sprintf("consumer-%d", s.random.IntN(consumers)), Offset: s.random.Uint64N(highest + 1),
	}
	if err := s.ledger.Note(e); err != nil {
		return err
	}
	if err := c.StoreOffset(wire.StoreOffsetRequest{
		OffsetTarget: offsetTarget(t.stream, t.topic, partition, e.Consumer), Offset: e.Offset, Ack: wire.AckQuorum,
	}); err != nil {
		return err
	}
	e.Kind = KindStore
	return s.ledger.Note(e)
}

func offsetTarget(stream, topic wire.Identifier, partition uint32, consumer string) wire.OffsetTarget {
	return wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NamedID(consumer)},
		Stream:   stream, Topic: topic, Partition: wire.SelectPartition(partition),
	}
}

// maker makes and drops streams, so that the metadata plane works too. At most this many stand.
const madeStreams = 5

type maker struct {
	*Recorder
	made  []string
	count int
}

func (m *maker) make(c *client.Client) error {
	time.Sleep(5 * idlePause)
	if len(m.made) >= madeStreams {
		name := m.made[0]
		m.made = m.made[1:]
		return m.change(KindDropping, KindDrop, name, func() error {
			err := c.DeleteStream(wire.NamedID(name))
			if errors.Is(err, wire.CodeStreamIdNotFound) {
				return violation("stream %s, acknowledged, is not there", name)
			}
			return err
		})
	}
	m.count++
	name := fmt.Sprintf("%s-made-%d", m.Stream, m.count)
	err := m.change(KindMaking, KindMake, name, func() error {
		_, err := c.CreateStream(name)
		return err
	})
	if err == nil {
		m.made = append(m.made, name)
	}
	return err
}

// change notes an intent, acts, and notes the acknowledgement.
func (m *maker) change(intent, done Kind, name string, act func() error) error {
	if err := m.ledger.Note(Event{Kind: intent, Stream: name}); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	return m.ledger.Note(Event{Kind: done, Stream: name})
}
