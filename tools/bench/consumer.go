package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

const (
	emptyPause  = time.Millisecond // after a poll that found nothing
	batchHeader = 256
	perMessage  = 48
)

// consumer reads one partition from its start, or, as a member of a group, the partitions it is
// given.
type consumer struct {
	*recorder
	client  *client.Client
	from    slot
	group   *wire.GroupTarget
	count   uint32
	number  uint32          // as a plain consumer
	live    bool            // producers run: wait at the end instead of starting over
	drained <-chan struct{} // closed when the producers are done
}

func (c *consumer) run(ctx context.Context) error {
	err := c.readAll(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		c.counts.errors.Add(1)
	}
	return err
}

func (c *consumer) readAll(ctx context.Context) error {
	if c.group != nil {
		return c.readGroup(ctx)
	}
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(c.number)},
		Stream:   c.from.stream, Topic: c.from.topic, Partition: wire.SelectPartition(c.from.partition),
		Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: c.count,
	}
	for ctx.Err() == nil {
		last := c.isDrained()
		n, err := c.poll(q)
		if err != nil {
			return err
		}
		q.Strategy.Value += n
		if n > 0 {
			continue
		}
		switch {
		case !c.live && q.Strategy.Value == 0:
			return fmt.Errorf("partition %d of %s is empty: preload messages first", c.from.partition, c.from.topic.Name)
		case !c.live:
			q.Strategy.Value = 0
		case last:
			return nil
		default:
			sleepUntil(ctx, time.Now().Add(emptyPause))
		}
	}
	return nil
}

func (c *consumer) isDrained() bool {
	select {
	case <-c.drained:
		return true
	default:
		return false
	}
}

// poll asks once and returns how many messages came.
func (c *consumer) poll(q wire.PollMessagesRequest) (uint64, error) {
	asked := time.Now()
	p, err := c.client.Poll(q)
	if err != nil {
		return 0, fmt.Errorf("poll: %w", err)
	}
	now := time.Now()
	if p.Partition == wire.PartitionResync {
		return 0, errResync
	}
	if p.MessagesCount == 0 {
		return 0, nil
	}
	bytes, err := c.tally(p, now)
	if err != nil {
		return 0, err
	}
	c.record(now, now.Sub(asked), int64(p.MessagesCount), bytes)
	return uint64(p.MessagesCount), nil
}

var errResync = errors.New("not the owner of the partition")

// tally walks the batches' headers: bytes of payload, and how long the messages travelled.
func (c *consumer) tally(p client.Polled, now time.Time) (bytes int64, err error) {
	found := uint32(0)
	for rest := p.Batches; len(rest) > 0; {
		if len(rest) < batchHeader {
			return 0, fmt.Errorf("poll: batch of %d bytes", len(rest))
		}
		length, count := binary.LittleEndian.Uint64(rest[32:]), binary.LittleEndian.Uint32(rest[48:])
		if length < batchHeader || length > uint64(len(rest)) {
			return 0, fmt.Errorf("poll: batch length %d with %d bytes left", length, len(rest))
		}
		bytes += int64(length) - batchHeader - perMessage*int64(count)
		found += count
		if c.live {
			origin := time.UnixMicro(int64(binary.LittleEndian.Uint64(rest[24:])))
			c.arrived(now.Sub(origin), int64(count))
		}
		rest = rest[length:]
	}
	if found != p.MessagesCount {
		return 0, fmt.Errorf("poll: %d messages promised, %d found", p.MessagesCount, found)
	}
	return bytes, nil
}

// readGroup joins the group and reads what the group gives it.
func (c *consumer) readGroup(ctx context.Context) error {
	if err := c.client.JoinGroup(*c.group); err != nil {
		return fmt.Errorf("join group %s: %w", c.group.Group.Name, err)
	}
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerGroup, ID: c.group.Group},
		Stream:   c.group.Stream, Topic: c.group.Topic,
		Strategy: wire.Strategy{Kind: wire.StrategyNext}, Count: c.count, AutoCommit: true,
	}
	for ctx.Err() == nil {
		last := c.isDrained()
		owned, err := c.client.SyncGroup(*c.group)
		if err != nil {
			return fmt.Errorf("sync group %s: %w", c.group.Group.Name, err)
		}
		n, err := c.readOwned(ctx, q, owned.Partitions)
		switch {
		case errors.Is(err, errResync):
		case err != nil:
			return err
		case n == 0 && last:
			return c.client.LeaveGroup(*c.group)
		case n == 0:
			sleepUntil(ctx, time.Now().Add(emptyPause))
		}
	}
	return nil
}

// readOwned polls the partitions in turn until all are empty once.
func (c *consumer) readOwned(ctx context.Context, q wire.PollMessagesRequest, owned []uint32) (total uint64, err error) {
	for ctx.Err() == nil {
		found := uint64(0)
		for _, p := range owned {
			q.Partition = wire.SelectPartition(p)
			n, err := c.poll(q)
			if err != nil {
				return total, err
			}
			found += n
		}
		total += found
		if found == 0 {
			break
		}
	}
	return total, nil
}
