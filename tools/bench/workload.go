package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// Workload says what to do to a server.
type Workload struct {
	Connect client.Options

	Producers int // each on its own connection, pinned to one partition
	Consumers int // likewise; with Groups they share partitions as members
	Groups    int // consumer groups per topic, 0 for plain consumers

	Streams    int // names are Prefix-1, Prefix-2, …
	Topics     int // per stream
	Partitions int // per topic
	Prefix     string
	Keep       bool // leave the streams behind
	Fsync      bool // topics acknowledge synced messages only
	Segment    uint64

	Batch     int // messages per send
	Size      int // bytes of a payload, or the smallest
	MaxSize   int // the largest; 0 means Size
	PollCount int // messages per poll; 0 means Batch

	Rate     float64 // messages per second over all producers; 0 means as fast as answers come
	Duration time.Duration
	Count    int64 // or: messages over all producers, then stop
	Warmup   time.Duration
	Preload  int64 // messages stored before the measurement, over all partitions

	OnOpen, OnClose func() // called when the measurement begins and ends, when set
}

// MaxPayload is the largest payload a workload may ask for.
const MaxPayload = 32 << 20

// check fills defaults in and refuses what cannot run.
func (w *Workload) check() error {
	for _, v := range []*int{&w.Streams, &w.Topics, &w.Partitions, &w.Batch} {
		*v = max(*v, 1)
	}
	if w.MaxSize == 0 {
		w.MaxSize = w.Size
	}
	if w.PollCount == 0 {
		w.PollCount = w.Batch
	}
	if w.Prefix == "" {
		w.Prefix = "bench"
	}
	switch {
	case w.Producers < 0 || w.Consumers < 0 || w.Producers+w.Consumers == 0:
		return errors.New("nobody to do anything: give producers or consumers")
	case w.Size < 0 || w.MaxSize < w.Size || w.MaxSize > MaxPayload:
		return fmt.Errorf("message size %d..%d: want 0 <= smallest <= largest <= %d", w.Size, w.MaxSize, MaxPayload)
	case w.Batch*(w.MaxSize+64) > wire.MaxFrameSize-4096:
		return fmt.Errorf("%d messages of up to %d bytes do not fit a frame of %d", w.Batch, w.MaxSize, wire.MaxFrameSize)
	case w.Producers > 0 && (w.Duration > 0) == (w.Count > 0), w.Producers == 0 && w.Duration <= 0:
		return errors.New("give either a duration or, with producers, a count")
	case w.Groups > 0 && w.Consumers == 0:
		return errors.New("groups without consumers")
	}
	return nil
}

// slot is one partition of the workload.
type slot struct {
	stream, topic wire.Identifier
	partition     uint32
}

// slots lists all partitions, topics apart first, so that few actors spread widely.
func (w *Workload) slots() []slot {
	var out []slot
	for p := range w.Partitions {
		for t := range w.Topics {
			for s := range w.Streams {
				out = append(out, slot{w.stream(s), w.topic(t), uint32(p)})
			}
		}
	}
	return out
}

func (w *Workload) stream(i int) wire.Identifier {
	return wire.NamedID(fmt.Sprintf("%s-%d", w.Prefix, i+1))
}

func (w *Workload) topic(i int) wire.Identifier { return wire.NamedID(fmt.Sprintf("topic-%d", i+1)) }

func (w *Workload) group(i int) wire.Identifier { return wire.NamedID(fmt.Sprintf("group-%d", i+1)) }

// setUp makes the streams afresh.
func (w *Workload) setUp(c *client.Client) error {
	if err := w.tearDown(c); err != nil {
		return err
	}
	for s := range w.Streams {
		stream := w.stream(s)
		if _, err := c.CreateStream(string(stream.Name)); err != nil {
			return fmt.Errorf("create stream %s: %w", stream.Name, err)
		}
		for t := range w.Topics {
			if err := w.createTopic(c, stream, w.topic(t)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Workload) createTopic(c *client.Client, stream, topic wire.Identifier) error {
	q := wire.CreateTopicRequest{Stream: stream, PartitionsCount: uint32(w.Partitions), Name: topic.Name}
	if w.Fsync {
		q.Options = wire.AppendOption(q.Options, "enforce_fsync", wire.KindString, []byte("true"))
	}
	if w.Segment != 0 {
		q.Options = wire.AppendOption(q.Options, "segment_size", wire.KindString, fmt.Append(nil, w.Segment))
	}
	if _, err := c.CreateTopic(q); err != nil {
		return fmt.Errorf("create topic %s/%s: %w", stream.Name, topic.Name, err)
	}
	for g := range w.Groups {
		q := wire.CreateGroupRequest{Stream: stream, Topic: topic, Name: w.group(g).Name}
		if _, err := c.CreateGroup(q); err != nil {
			return fmt.Errorf("create group %s: %w", q.Name, err)
		}
	}
	return nil
}

func (w *Workload) tearDown(c *client.Client) error {
	for s := range w.Streams {
		if err := c.DeleteStream(w.stream(s)); err != nil && !errors.Is(err, wire.CodeStreamIdNotFound) {
			return fmt.Errorf("delete stream %s: %w", w.stream(s).Name, err)
		}
	}
	return nil
}
