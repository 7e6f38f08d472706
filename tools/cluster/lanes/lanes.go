package lanes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/tools/client"
)

const (
	answerTime  = 15 * time.Second // clients wait no longer, and may wait half as long again
	redialPause = 5 * time.Millisecond
)

// Lanes are clients at work between Start and Still.
type Lanes struct {
	// Connect is how lanes connect, but for the address; Timeout and RetryFor are theirs.
	Connect client.Options

	doors []string     // addresses that serve all the same
	shut  atomic.Int64 // index + 1 of the door that is about to go
	all   []*lane
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// New makes lanes for a cluster that serves at these addresses.
func New(connect client.Options, doors ...string) *Lanes {
	return &Lanes{Connect: connect, doors: doors}
}

// Add makes a lane of a kind that asks through a door, so often a second. It must not be called after Start.
func (l *Lanes) Add(kind string, door, rate int, do Request) {
	l.all = append(l.all, &lane{kind: kind, door: door, every: time.Second / time.Duration(rate), do: do})
}

// Shut tells the lanes that a door is about to go, as a load balancer would notice: they use the next one.
func (l *Lanes) Shut(door int) { l.shut.Store(int64(door) + 1) }

// Start returns when every lane is connected, or ctx has ended.
func (l *Lanes) Start(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	var connected sync.WaitGroup
	for _, one := range l.all {
		connected.Add(1)
		l.done.Go(func() {
			var ready sync.Once
			one.run(ctx, l, func() { ready.Do(connected.Done) })
			ready.Do(connected.Done)
		})
	}
	connected.Wait()
}

// Still ends the work. What the lanes saw can be looked at from then on.
func (l *Lanes) Still() { l.stop(); l.done.Wait() }

// dial connects at a door, or at the next one while that is shut or refuses.
func (l *Lanes) dial(ctx context.Context, door int) *client.Client {
	o := l.Connect
	o.RetryFor, o.Timeout = -1, answerTime
	for i := range l.doors {
		at := (door + i) % len(l.doors)
		if int(l.shut.Load()) == at+1 {
			continue
		}
		o.Address = l.doors[at]
		if c, err := client.Dial(ctx, o); err == nil {
			return c
		}
	}
	return nil // tried again until it answers
}

// lane is one client that asks for the same thing at a fixed rate. An answer is measured from when the
// request was due, so that what waits behind a slow one counts too.
type lane struct {
	kind  string
	door  int
	every time.Duration
	do    Request

	acks   []ack
	errors []failure
	breaks []time.Time // a request had no answer: its connection ended
}

// ack is one answer.
type ack struct{ due, done time.Time }

// failure is an answer that nobody wants.
type failure struct {
	at  time.Time
	err error
}

// run works until ctx ends.
func (l *lane) run(ctx context.Context, all *Lanes, connected func()) {
	var c *client.Client
	var due time.Time
	for ctx.Err() == nil {
		if c == nil {
			if c = all.dial(ctx, l.door); c == nil {
				rest(ctx, redialPause)
				continue
			}
			if connected(); due.IsZero() {
				due = time.Now()
			}
		}
		rest(ctx, time.Until(due))
		if ctx.Err() != nil {
			break
		}
		switch err := l.do(c); {
		case err == nil:
			l.acks = append(l.acks, ack{due, time.Now()})
			due = due.Add(l.every)
		case c.Broken():
			l.breaks = append(l.breaks, time.Now())
			c.Close()
			c = nil // asked again elsewhere: the gap goes on
		default:
			l.errors = append(l.errors, failure{time.Now(), err})
			due = due.Add(l.every)
		}
	}
	if c != nil {
		c.Close()
	}
}

func rest(ctx context.Context, d time.Duration) {
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
