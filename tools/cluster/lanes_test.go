package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

// lane is one client that asks for the same thing at a fixed rate. An answer is measured from when the
// request was due, so that what waits behind a slow one counts too.
type lane struct {
	kind  string
	home  local.Member // the door it uses while that is open
	every time.Duration
	do    func(c *client.Client) error

	acks   []ack
	errors []error
}

// ack is one answer.
type ack struct{ due, done time.Time }

// lanes are clients at work until still.
type lanes struct {
	cluster *local.Cluster
	doors   []local.Member
	shut    atomic.Int64 // index + 1 into doors of the one that was killed
	all     []*lane
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// addresses are looked up once: a door that was killed answers nothing, and looking would take time.
func (l *lanes) start(t *testing.T) {
	t.Helper()
	addresses := map[int]string{}
	for _, d := range l.doors {
		addresses[d.ID] = l.cluster.Process(d).TCP
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	var connected sync.WaitGroup
	for _, one := range l.all {
		connected.Add(1)
		l.done.Go(func() {
			var ready sync.Once
			address := func() string {
				if i := int(l.shut.Load()); i > 0 && l.doors[i-1].ID == one.home.ID {
					return addresses[l.doors[i%len(l.doors)].ID]
				}
				return addresses[one.home.ID]
			}
			one.run(ctx, address, func() { ready.Do(connected.Done) })
			ready.Do(connected.Done)
		})
	}
	connected.Wait()
}

func (l *lanes) still() { l.stop(); l.done.Wait() }

// run works until ctx ends.
func (l *lane) run(ctx context.Context, address func() string, connected func()) {
	var c *client.Client
	var due time.Time
	for ctx.Err() == nil {
		if c == nil {
			c, _ = client.Dial(ctx, client.Options{Address: address(), Username: "iggy", Password: "iggy", RetryFor: -1, Timeout: 15 * time.Second})
			if c == nil {
				sleep(ctx, 5*time.Millisecond)
				continue
			}
			if connected(); due.IsZero() {
				due = time.Now()
			}
		}
		sleep(ctx, time.Until(due))
		if ctx.Err() != nil {
			break
		}
		switch err := l.do(c); {
		case err == nil:
			l.acks = append(l.acks, ack{due, time.Now()})
			due = due.Add(l.every)
		case c.Broken():
			c.Close()
			c = nil // asked again elsewhere: the gap goes on
		default:
			l.errors = append(l.errors, err)
			due = due.Add(l.every)
		}
	}
	if c != nil {
		c.Close()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sends is a lane that sends one small message at a time to partition 0 of a topic.
func sends(stream, topic string) func(*client.Client) error {
	var b client.Batch
	number := uint64(0)
	return func(c *client.Client) error {
		number++
		b.Reset(1)
		b.Add(wire.U128{Lo: number}, []byte("small"), nil)
		_, err := c.Send(wire.NamedID(stream), wire.NamedID(topic), wire.Partitioning{Kind: wire.PartitioningPartition}, b.Seal())
		return err
	}
}

// polls is a lane that reads the last message of partition 0 of a topic.
func polls(stream, topic string) func(*client.Client) error {
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID(stream), Topic: wire.NamedID(topic),
		Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyLast}, Count: 1,
	}
	return func(c *client.Client) error { _, err := c.Poll(q); return err }
}

// changes is a lane that makes a stream and deletes it in turn. An answer that went with the connection
// leaves it open what there is: neither is an error then.
func changes(name string) func(*client.Client) error {
	exists := false
	return func(c *client.Client) error {
		var err error
		if exists {
			err = c.DeleteStream(wire.NamedID(name))
		} else {
			_, err = c.CreateStream(name)
		}
		if err == nil || errors.Is(err, wire.CodeStreamNameAlreadyExists) || errors.Is(err, wire.CodeStreamIdNotFound) {
			exists = !exists
			return nil
		}
		return err
	}
}

// pings is a lane that needs no other process than its door: what it sees is the machine's doing.
func pings(c *client.Client) error { return c.Ping() }

// span is a window of time in which lanes are looked at.
type span struct{ from, to time.Time }

// seen is what clients of one kind saw in a span.
type seen struct {
	count     int
	gap       time.Duration // longest time in which a lane had no answer
	p50, p99  time.Duration
	errors    int
	firstWord string // of the errors
}

// look sums up the lanes of a kind. A gap that began before the span counts as far as it reaches into it.
func look(all []*lane, kind string, s span) (sum seen) {
	var waits []time.Duration
	for _, l := range all {
		if l.kind != kind {
			continue
		}
		last := s.from
		for _, a := range l.acks {
			if a.done.Before(s.from) {
				continue
			}
			sum.gap = max(sum.gap, minTime(a.done, s.to).Sub(last))
			last = minTime(a.done, s.to)
			if a.due.After(s.from) && a.due.Before(s.to) {
				waits = append(waits, a.done.Sub(a.due))
			}
		}
		sum.gap = max(sum.gap, s.to.Sub(last))
		sum.errors += len(l.errors)
		for _, err := range l.errors {
			sum.firstWord = err.Error()
		}
	}
	sum.count = len(waits)
	slices.Sort(waits)
	if n := len(waits); n > 0 {
		sum.p50, sum.p99 = waits[n/2], waits[min(n-1, n*99/100)]
	}
	return sum
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// kinds are those of the lanes, in the order in which they were made.
func (l *lanes) kinds() (all []string) {
	for _, one := range l.all {
		if !slices.Contains(all, one.kind) {
			all = append(all, one.kind)
		}
	}
	return all
}

func (l *lanes) add(kind string, home local.Member, rate int, do func(*client.Client) error) {
	l.all = append(l.all, &lane{kind: kind, home: home, every: time.Second / time.Duration(rate), do: do})
}

// row is a line of the table of a test.
func row(what, kind string, spans ...seen) string {
	text := fmt.Sprintf("%-26s %-18s", what, kind)
	for _, s := range spans {
		text += fmt.Sprintf(" | %5d %6s %6s %6s", s.count, millis(s.gap), millis(s.p50), millis(s.p99))
	}
	return text
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000)
}
