package control

import (
	"errors"
	"strings"
	"sync"
)

// Bus carries messages. Publish and Close may be slow; whoever must not wait does not call them.
type Bus interface {
	// Publish sends a payload, which the bus may keep. An error means that it was dropped.
	Publish(subject string, payload []byte) error
	// Subscribe begins to receive what is published on subjects of a pattern: a last part ">" stands for any
	// parts, a part "*" for one.
	Subscribe(pattern string) (*Subscription, error)
	// Listening reports whether a message published now can reach anybody.
	Listening() bool
	Close()
}

// ErrClosed says that the process stops.
var ErrClosed = errors.New("control: closed")

// Delivery is a message as it came in.
type Delivery struct {
	Subject string
	Payload []byte // not to be changed
}

// waiting bounds what a subscriber has not taken yet.
const waiting = 256

// Subscription is a bounded queue of deliveries: a subscriber that is too slow loses the oldest. C is closed when a
// Local bus is.
type Subscription struct {
	C      <-chan Delivery
	queue  chan Delivery
	cancel func()
	once   sync.Once
}

func newSubscription(cancel func()) *Subscription {
	queue := make(chan Delivery, waiting)
	return &Subscription{C: queue, queue: queue, cancel: cancel}
}

// deliver never waits. One goroutine at a time calls it.
func (s *Subscription) deliver(d Delivery) {
	for {
		select {
		case s.queue <- d:
			return
		default:
		}
		select {
		case <-s.queue:
		default:
		}
	}
}

// Close ends the subscription.
func (s *Subscription) Close() { s.once.Do(s.cancel) }

// Local is the bus inside a process.
type Local struct {
	mu     sync.Mutex
	subs   map[*Subscription]string // pattern
	closed bool
}

// NewLocal returns a bus without subscribers.
func NewLocal() *Local { return &Local{subs: make(map[*Subscription]string)} }

// Publish implements Bus.
func (l *Local) Publish(subject string, payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, pattern := range l.subs {
		if matches(pattern, subject) {
			s.deliver(Delivery{subject, payload})
		}
	}
	return nil
}

// Subscribe implements Bus.
func (l *Local) Subscribe(pattern string) (*Subscription, error) {
	var s *Subscription
	s = newSubscription(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.subs, s)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	l.subs[s] = pattern
	return s, nil
}

// Listening implements Bus.
func (l *Local) Listening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.subs) > 0
}

// Close implements Bus. Subscribers still get what was published before.
func (l *Local) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for s := range l.subs {
		delete(l.subs, s)
		close(s.queue)
	}
}

func matches(pattern, subject string) bool {
	for {
		want, patterns, moreWanted := strings.Cut(pattern, ".")
		got, subjects, more := strings.Cut(subject, ".")
		switch {
		case want == ">":
			return true
		case want != "*" && want != got, moreWanted != more:
			return false
		case !more:
			return true
		}
		pattern, subject = patterns, subjects
	}
}
