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

// partition reads a partition from its start to its end.
func (k *checker) partition(name topicName, partition uint32) error {
	k.Partitions++
	where := fmt.Sprintf("%s/%s/%d", name.stream, name.topic, partition)
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(0)},
		Stream:   wire.NamedID(name.stream), Topic: wire.NamedID(name.topic), Partition: wire.SelectPartition(partition),
		Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: checkCount,
	}
	for {
		p, err := k.client.Poll(q)
		var code wire.Code
		if errors.As(err, &code) {
			k.report("%s: poll at %d refused: %v", where, q.Strategy.Value, err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: poll at %d: %w", where, q.Strategy.Value, err)
		}
		if p.MessagesCount == 0 {
			k.end(name, partition, where, q.Strategy.Value, p.CurrentOffset)
			return k.groupOffset(name, partition, where, q.Strategy.Value)
		}
		for msg, err := range p.Messages(true) {
			if err == nil && msg.Offset != q.Strategy.Value {
				err = violation("offset %d where %d is due", msg.Offset, q.Strategy.Value)
			}
			if err == nil {
				err = k.message(name, partition, where, msg)
			}
			if err != nil {
				k.report("%s: %v", where, err)
				return nil
			}
			q.Strategy.Value++
		}
	}
}

func (k *checker) message(name topicName, partition uint32, where string, msg client.Message) error {
	k.Messages++
	here := fmt.Sprintf("%s offset %d", where, msg.Offset)
	if there, twice := k.seen[msg.ID.Lo]; twice {
		return violation("message %d stands at %s and at %s", msg.ID.Lo, there, here)
	}
	k.seen[msg.ID.Lo] = here
	return k.model.observe(name, partition, msg)
}

// end judges a partition whose last message stands before next.
func (k *checker) end(name topicName, partition uint32, where string, next, current uint64) {
	if current >= next && current > 0 {
		k.report("%s: says its last offset is %d and gives nothing from %d on", where, current, next)
	}
	if lost := k.model.lost(name, partition, next); len(lost) > 0 {
		k.report("%s: %d acknowledged messages are lost: the partition ends at %d, the first was at %d", where, len(lost), next, lost[0])
	}
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
