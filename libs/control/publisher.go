package control

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// pace is the least time between two messages of a process.
	pace = 100 * time.Millisecond
	// measureEvery is the time between two snapshots, unless they take more than a hundredth of it.
	measureEvery = time.Second
	// closing is how long the last message may take.
	closing = 200 * time.Millisecond
)

// Publisher says what happens in a process. A nil Publisher says nothing.
type Publisher struct {
	config PublisherConfig
	stop   chan struct{}
	gone   chan struct{}
	wake   chan struct{}

	mu       sync.Mutex
	source   Source
	pending  map[Channel]*pending
	order    []Channel // with something to send, the longest first
	snapshot *Snapshot // to send
	closed   bool

	seq uint64 // of the goroutine
}

// PublisherConfig says what a publisher publishes where.
type PublisherConfig struct {
	Source Source // Process and Host are filled in
	Buses  []Bus  // closed with the publisher
	// Measure makes a snapshot. It is called once a second or less, while somebody listens; nil: never.
	Measure func() *Snapshot
	Metrics *Metrics
}

// NewPublisher starts to publish.
func NewPublisher(c PublisherConfig) *Publisher {
	var id [8]byte
	_, _ = rand.Read(id[:])
	c.Source.Process = hex.EncodeToString(id[:])
	c.Source.Host, _ = os.Hostname()
	p := &Publisher{
		config: c, source: c.Source, pending: make(map[Channel]*pending),
		stop: make(chan struct{}), gone: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	go p.run()
	return p
}

// Say notes that something happened; At and Count are filled in. It never waits and may be called on any
// goroutine, a loop's too.
func (p *Publisher) Say(e Event) {
	channel, known := channelOf[e.Kind]
	if p == nil || !known {
		return
	}
	e.bound()
	p.mu.Lock()
	waits := p.pending[channel]
	if waits == nil {
		waits = &pending{}
		p.pending[channel] = waits
	}
	if len(waits.events) == 0 {
		p.order = append(p.order, channel)
	}
	before := waits.dropped
	waits.add(e)
	dropped := waits.dropped - before
	p.mu.Unlock()
	p.config.Metrics.drop(dropped)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Is says which node the process is, once it is known.
func (p *Publisher) Is(node uint8) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source.Node = &node
}

// Close sends what is most important of what is left, and closes the buses. It takes 200 ms at most.
func (p *Publisher) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return
	}
	close(p.stop)
	limit := time.NewTimer(closing)
	defer limit.Stop()
	select {
	case <-p.gone:
	case <-limit.C: // a bus is stuck; it ends with the process
	}
}

// run sends what is noted: one message at a time, and none within pace of another.
func (p *Publisher) run() {
	defer close(p.gone)
	measure := time.NewTimer(measureEvery)
	defer measure.Stop()
	rest := time.NewTimer(pace) // a bus that is about to connect hears the first word too
	defer rest.Stop()
	rested := false
	for {
		select {
		case <-p.stop:
			p.last()
			return
		case <-rest.C:
			rested = true
		case <-measure.C:
			measure.Reset(max(measureEvery, 100*p.measure()))
		case <-p.wake:
		}
		if rested && p.send() {
			rested = false
			rest.Reset(pace)
		}
	}
}

// measure makes a snapshot if anybody listens, and tells how long that took. One that is not sent yet is
// replaced.
func (p *Publisher) measure() time.Duration {
	if p.config.Measure == nil || !slices.ContainsFunc(p.config.Buses, Bus.Listening) {
		return 0
	}
	started := time.Now()
	s := p.config.Measure()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshot == nil {
		p.order = append(p.order, ChannelMetrics)
	}
	p.snapshot = s
	return time.Since(started)
}

// send publishes what waits longest; false: nothing does.
func (p *Publisher) send() bool {
	p.mu.Lock()
	if len(p.order) == 0 {
		p.mu.Unlock()
		return false
	}
	channel := p.order[0]
	m := p.take(channel)
	p.mu.Unlock()
	p.publish(channel, &m)
	return true
}

// last publishes what is said of the process itself: that it stops.
func (p *Publisher) last() {
	p.mu.Lock()
	waits := slices.Contains(p.order, ChannelNode)
	m := p.take(ChannelNode)
	p.mu.Unlock()
	if waits {
		p.publish(ChannelNode, &m)
	}
	for _, b := range p.config.Buses {
		b.Close()
	}
}

// take makes a message of what waits on a channel. The caller holds the lock.
func (p *Publisher) take(c Channel) Message {
	m := Message{V: Version, Source: p.source, At: time.Now().UnixMicro()}
	if c == ChannelMetrics {
		m.Metrics, p.snapshot = p.snapshot, nil
	} else if waits := p.pending[c]; waits != nil {
		m.Events, m.Dropped = waits.events, waits.dropped
		*waits = pending{}
	}
	p.order = slices.DeleteFunc(p.order, func(o Channel) bool { return o == c })
	return m
}

func (p *Publisher) publish(c Channel, m *Message) {
	p.seq++
	m.Seq = p.seq
	payload, err := m.Encode()
	if err != nil {
		p.config.Metrics.drop(1)
		return
	}
	p.config.Metrics.sent()
	for _, b := range p.config.Buses {
		if err := b.Publish(m.Source.Subject(c), payload); err != nil {
			p.config.Metrics.drop(1)
		}
	}
}
