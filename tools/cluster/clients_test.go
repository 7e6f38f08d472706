//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

const (
	answerTime = 1200 * time.Millisecond // clients wait no longer, and may wait half as long again
	restTime   = 20 * time.Millisecond   // most of the time between two requests of a client
	filled     = 100_000                 // messages of the partition in which offsets are stored
	logs       = 2                       // partitions that are sent to; the next one has the offsets
	pollCount  = 50
	keyBudget  = 40 // requests on one name before the next is used: the cost of a check is exponential in them
	keyUnknown = 6  // what one with an unknown outcome counts
	keysBack   = 12 // names that are still read
)

// shared is what clients of all nodes work on together.
type shared struct {
	history *history
	message atomic.Uint64
	keys    [2]keys // consumers, streams
}

// keys hands out names, the next one when much was done with the last.
type keys struct {
	mu        sync.Mutex
	used, now int
}

func (k *keys) take() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used++; k.used > keyBudget {
		k.used, k.now = 1, k.now+1
	}
	return k.now
}

// lately is one of the last names, without doing much with it: what was done with it is a while ago.
func (k *keys) lately(random *rand.Rand) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now - random.IntN(min(k.now, keysBack)+1)
}

func (k *keys) spend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used += keyUnknown
}

// person is a client that stays with one node.
type person struct {
	*shared
	id, node int
	address  string
	random   *rand.Rand
	work     func(*person)
	client   *client.Client
	ends     [logs]uint64 // highest offset + 1 it has seen itself: it asks for what is new to it, wherever others are
}

// run works until ctx ends.
func (p *person) run(ctx context.Context) {
	for ctx.Err() == nil {
		if p.client == nil {
			dial, cancel := context.WithTimeout(ctx, answerTime)
			p.client, _ = client.Dial(dial, client.Options{Address: p.address, Username: "iggy", Password: "iggy", RetryFor: -1, Timeout: answerTime})
			cancel()
			if p.client == nil {
				sleep(ctx, restTime)
				continue
			}
		}
		p.work(p)
		sleep(ctx, time.Duration(p.random.Int64N(int64(restTime))))
	}
	p.leave()
}

func (p *person) leave() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}

func (p *person) call(e event) *event {
	e.Client, e.Node = p.id, p.node
	return p.history.call(e)
}

// end judges an answer. With an unknown outcome the client comes back as another one: what it asked for may
// still happen.
func (p *person) end(e *event, err error, negative ...wire.Code) result {
	r := judge(err, negative)
	p.history.end(e, r, err)
	if r == unknown || p.client.Broken() {
		p.leave()
	}
	return r
}

func judge(err error, negative []wire.Code) result {
	code, ok := err.(wire.Code)
	switch {
	case err == nil:
		return done
	case !ok && errors.Is(err, client.ErrNotFound):
		return no
	case !ok && !errors.Is(err, client.ErrProtocol):
		return unknown
	case !ok:
		return wrong
	case code == wire.CodeTransientNotCommitted:
		return unknown
	case code == wire.CodeTransientNotAccepted:
		return refused
	}
	for _, n := range negative {
		if code == n {
			return no
		}
	}
	return wrong
}

// readLogs only reads: it keeps its connection to a node that is cut off, where no other request ends, and
// would see an old log there.
func readLogs(p *person) { p.poll(p.random.IntN(logs)) }

// useLogs sends to partitions and reads what is new in them.
func useLogs(p *person) {
	at := p.random.IntN(logs)
	if p.random.IntN(2) == 0 {
		p.send(at)
		return
	}
	p.poll(at)
}

func (p *person) send(at int) {
	e := p.call(event{Kind: sendKind, Object: logName(at), Value: p.message.Add(1)})
	var b client.Batch
	b.Reset(1)
	b.Add(wire.U128{Lo: e.Value}, strconv.AppendUint(nil, e.Value, 10), nil)
	c, err := p.client.Send(wire.NamedID("s"), wire.NamedID("t"), wire.Partitioning{Kind: wire.PartitioningPartition, Partition: uint32(at)}, b.Seal())
	e.Offset = c.BaseOffset
	if p.end(e, err) == done {
		p.saw(at, e.Offset+1)
	}
}

func (p *person) poll(at int) {
	from := p.ends[at]
	from -= min(from, p.random.Uint64N(pollCount/2))
	e := p.call(event{Kind: pollKind, Object: logName(at), Value: from, Count: pollCount})
	found, first, err := pollFrom(p.client, at, from, pollCount)
	e.Found, e.Offset = found, first
	if p.end(e, err) == done && len(found) > 0 {
		p.saw(at, first+uint64(len(found)))
	}
}

func (p *person) saw(at int, end uint64) { p.ends[at] = max(p.ends[at], end) }

// pollFrom reads messages, all of which must say what they are twice and stand in a row.
func pollFrom(c *client.Client, at int, from uint64, count uint32) (found []uint64, first uint64, err error) {
	poll, err := c.Poll(wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"),
		Partition: wire.SelectPartition(uint32(at)), Strategy: wire.Strategy{Kind: wire.StrategyOffset, Value: from}, Count: count,
	})
	if err != nil {
		return nil, 0, err
	}
	for m, err := range poll.Messages(true) {
		switch {
		case err != nil:
			return found, first, err
		case string(m.Payload) != strconv.FormatUint(m.ID.Lo, 10):
			return found, first, fmt.Errorf("%w: message %d says %q", client.ErrProtocol, m.ID.Lo, m.Payload)
		case len(found) == 0:
			first = m.Offset
		case m.Offset != first+uint64(len(found)):
			return found, first, fmt.Errorf("%w: offset %d behind %d", client.ErrProtocol, m.Offset, first+uint64(len(found))-1)
		}
		found = append(found, m.ID.Lo)
	}
	return found, first, nil
}

func logName(at int) string { return fmt.Sprintf("partition %d", at) }

// useOffsets stores and reads offsets of a consumer, each offset once.
func useOffsets(p *person) {
	key := p.keys[0].take()
	if p.random.IntN(2) == 0 {
		p.offset(key)
		return
	}
	e := p.call(event{Kind: storeKind, Object: consumerName(key), Value: 1 + p.message.Add(1)%(filled-1)})
	if p.end(e, p.client.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: offsetOf(key), Offset: e.Value, Ack: wire.AckQuorum})) == unknown {
		p.keys[0].spend()
	}
}

func (p *person) offset(key int) {
	e := p.call(event{Kind: offsetKind, Object: consumerName(key)})
	r, err := p.client.Offset(offsetOf(key))
	e.Offset = r.StoredOffset
	p.end(e, err)
}

// readOffsets only reads, also those of consumers that stored a while ago.
func readOffsets(p *person) { p.offset(p.keys[0].lately(p.random)) }

func consumerName(key int) string { return fmt.Sprintf("consumer %d", key) }

func offsetOf(key int) wire.OffsetTarget {
	return wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(uint32(key + 10))}, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"),
		Partition: wire.SelectPartition(logs),
	}
}

// useStreams makes a stream, deletes it and looks for it.
func useStreams(p *person) {
	key := p.keys[1].take()
	name, r := streamName(key), done
	switch p.random.IntN(4) {
	case 0:
		e := p.call(event{Kind: createKind, Object: name})
		_, err := p.client.CreateStream(name)
		r = p.end(e, err, wire.CodeStreamNameAlreadyExists)
	case 1:
		e := p.call(event{Kind: deleteKind, Object: name})
		r = p.end(e, p.client.DeleteStream(wire.NamedID(name)), wire.CodeStreamIdNotFound)
	default:
		p.exists(key)
	}
	if r == unknown {
		p.keys[1].spend()
	}
}

func (p *person) exists(key int) {
	e := p.call(event{Kind: existsKind, Object: streamName(key)})
	_, err := p.client.Stream(wire.NamedID(e.Object))
	p.end(e, err, wire.CodeStreamIdNotFound)
}

// readStreams only looks, for those made or deleted a while ago too.
func readStreams(p *person) { p.exists(p.keys[1].lately(p.random)) }

func streamName(key int) string { return fmt.Sprintf("stream-%d", key) }
