package verify

import (
	"errors"
	"fmt"
	"sort"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// checkCount is how many messages one poll of a check asks for.
const checkCount = 5000

// Summary says what a check looked at.
type Summary struct {
	Messages, Partitions, Offsets, Streams int
	Acknowledged                           int64 // messages, those purged since included
}

func (s Summary) String() string {
	return fmt.Sprintf("%d messages in %d partitions, %d stored offsets, %d streams; %d messages acknowledged in all",
		s.Messages, s.Partitions, s.Offsets, s.Streams, s.Acknowledged)
}

// Check reads everything the model knows of and returns what the server got wrong. The last result
// is an error of the check itself. Nothing may write meanwhile.
func Check(c *client.Client, m *Model) (Summary, []error, error) {
	k := &checker{client: c, model: m, seen: map[uint64]string{}}
	for _, name := range k.topicNames() {
		for partition := range uint32(len(m.topics[name].partitions)) {
			if err := k.partition(name, partition); err != nil {
				return k.Summary, k.wrong, err
			}
		}
	}
	if err := k.offsets(); err != nil {
		return k.Summary, k.wrong, err
	}
	err := k.streams()
	k.Acknowledged = m.Acknowledged()
	return k.Summary, k.wrong, err
}

type checker struct {
	Summary
	client *client.Client
	model  *Model
	seen   map[uint64]string // message number → where
	wrong  []error
}

func (k *checker) topicNames() []topicName {
	var names []topicName
	for name := range k.model.topics {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		return names[i].stream < names[j].stream || names[i].stream == names[j].stream && names[i].topic < names[j].topic
	})
	return names
}

func (k *checker) report(format string, args ...any) {
	const kept = 20
	if len(k.wrong) < kept {
		k.wrong = append(k.wrong, violation(format, args...))
	}
}

// rereads is how often a partition is read again because its oldest segments went meanwhile.
const rereads = 5

// partition reads a partition from its start to its end.
func (k *checker) partition(name topicName, partition uint32) error {
	k.Partitions++
	where := fmt.Sprintf("%s/%s/%d", name.stream, name.topic, partition)
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(0)},
		Stream:   wire.NamedID(name.stream), Topic: wire.NamedID(name.topic), Partition: wire.SelectPartition(partition),
		Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: checkCount,
	}
	for try := 0; ; try++ {
		next, err := k.read(name, q, where, k.model.trimmed(name, partition))
		var v *Violation
		switch {
		case errors.Is(err, errTrimmed) && try < rereads:
			continue
		case errors.As(err, &v), errors.Is(err, errTrimmed):
			k.report("%s: %v", where, err)
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", where, err)
		}
		return k.groupOffset(name, partition, where, next)
	}
}

// errTrimmed says that messages vanished which a trim may have taken.
var errTrimmed = errors.New("messages went while they were read")

// read reads a partition once and returns the offset behind its last message. A trimmed one may
// begin above offset 0.
func (k *checker) read(name topicName, q wire.PollMessagesRequest, where string, trimmed bool) (uint64, error) {
	for first := true; ; first = false {
		p, err := k.client.Poll(q)
		var code wire.Code
		if errors.As(err, &code) {
			return 0, violation("poll at %d refused: %v", q.Strategy.Value, err)
		}
		if err != nil {
			return 0, fmt.Errorf("poll at %d: %w", q.Strategy.Value, err)
		}
		if p.MessagesCount == 0 && first && trimmed {
			q.Strategy.Value = p.CurrentOffset + 1 // a trim may take every message
		}
		if p.MessagesCount == 0 {
			return q.Strategy.Value, k.end(name, q.Partition.ID, q.Strategy.Value, p.CurrentOffset)
		}
		for msg, err := range p.Messages(true) {
			switch due := q.Strategy.Value; {
			case err != nil:
				return 0, violation("%v", err)
			case msg.Offset > due && trimmed && first:
				q.Strategy.Value = msg.Offset
			case msg.Offset > due && trimmed:
				return 0, errTrimmed
			case msg.Offset != due:
				return 0, violation("offset %d where %d is due", msg.Offset, due)
			}
			if err := k.message(name, q.Partition.ID, where, msg); err != nil {
				return 0, err
			}
			first = false
			q.Strategy.Value++
		}
	}
}

func (k *checker) message(name topicName, partition uint32, where string, msg client.Message) error {
	k.Messages++
	here := fmt.Sprintf("%s offset %d", where, msg.Offset)
	if there, twice := k.seen[msg.ID.Lo]; twice && there != here {
		return violation("message %d stands at %s and at %s", msg.ID.Lo, there, here)
	}
	k.seen[msg.ID.Lo] = here
	return k.model.observe(name, partition, msg)
}

// end judges a partition whose last message stands before next.
func (k *checker) end(name topicName, partition uint32, next, current uint64) error {
	if current >= next && current > 0 {
		return violation("its last offset is %d, and nothing comes from %d on", current, next)
	}
	if lost := k.model.lost(name, partition, next); len(lost) > 0 {
		return violation("%d acknowledged messages are lost: it ends at %d, the first was at %d", len(lost), next, lost[0])
	}
	return nil
}

// groupOffset checks that the group of a topic has not stored an offset that no message has. What it
// stored exactly is not known: a commit may have happened although the poll was never answered.
func (k *checker) groupOffset(name topicName, partition uint32, where string, next uint64) error {
	t := offsetTarget(wire.NamedID(name.stream), wire.NamedID(name.topic), partition, groupName)
	t.Consumer.Kind = wire.ConsumerGroup
	o, err := k.client.Offset(t)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("%s: offset of the group: %w", where, err)
	case o.StoredOffset >= next:
		k.report("%s: the group stored offset %d, the partition ends at %d", where, o.StoredOffset, next)
	}
	return nil
}

// offsets compares every stored offset.
func (k *checker) offsets() error {
	var keys []offsetKey
	k.model.mu.Lock()
	for key := range k.model.offsets {
		keys = append(keys, key)
	}
	k.model.mu.Unlock()
	for _, key := range keys {
		k.Offsets++
		o, err := k.client.Offset(offsetTarget(wire.NamedID(key.stream), wire.NamedID(key.topic), key.partition, key.consumer))
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return fmt.Errorf("offset of %s: %w", key.consumer, err)
		}
		if !k.model.mayStore(key, o.StoredOffset, err == nil) {
			k.report("%s/%s/%d: offset of %s is %d (found: %v), want %s", key.stream, key.topic, key.partition,
				key.consumer, o.StoredOffset, err == nil, k.model.offsets[key])
		}
	}
	return nil
}

func (o *storedOffset) String() string {
	return fmt.Sprintf("acknowledged %v %d, sent later %d", o.acked, o.value, o.sent)
}

// streams compares the short-lived streams.
func (k *checker) streams() error {
	list, err := k.client.Streams()
	if err != nil {
		return fmt.Errorf("list streams: %w", err)
	}
	there := map[string]bool{}
	for _, s := range list {
		there[s.Name] = true
	}
	for name, want := range k.model.streams {
		k.Streams++
		if !want.pending && want.exists != there[name] {
			k.report("stream %s: acknowledged as there: %v, found: %v", name, want.exists, there[name])
		}
	}
	return nil
}
