package feed

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// FreshFor is how long a view counts as fresh after the last word of a source that is current. A front-door
// stops authorizing then: what was revoked meanwhile would still be allowed (design-arguments.md 13).
const FreshFor = 5 * time.Second

const (
	tickEvery = 100 * time.Millisecond
	// silence is how long a source may say nothing before another one is tried: some beacons, for neither
	// logins nor changes are answered meanwhile.
	silence = 800 * time.Millisecond
	// lag is how long a source may be behind an op somebody waits for before another one is tried.
	lag = 250 * time.Millisecond
	// pause is how long a source that failed is passed over.
	pause = time.Second
	// grace is how long, after the start, each source waits for the one in front of it to come up.
	grace = 250 * time.Millisecond
	// backlog is how many frames may wait to be applied before the connection is not read on.
	backlog = 256
)

// ClientConfig says whom a Client follows.
type ClientConfig struct {
	Cluster wire.U128
	Limits  metadata.Limits // those of the metadata replicas: apply depends on them
	Sources []uint8         // node ids of the metadata replicas
	Seed    uint64          // different for every process: it says which source is the first choice
	// Ask sends a request to a source, as link.Remote.Ask does; false when it can not leave.
	Ask func(node uint8, q *Request) bool
	Log hclog.Logger
}

// Request is a whole frame: RequestPrepares, RequestStateTransfer or RequestStateChunk.
type Request wire.Header

// Put writes the frame to the first 256 bytes of b.
func (q *Request) Put(b []byte) { copy(b[:wire.HeaderSize], q[:]) }

// Client is the metadata as a process without a replica of it knows it. Connections are others': they
// report with Up and Down, and pass on what comes in with Frame. View, Changed, Wait and Fresh may be used by any
// goroutine, the first three once Ready is closed.
type Client struct {
	config ClientConfig
	follow *metadata.Follower
	log    hclog.Logger

	events chan event
	stop   chan struct{}
	gone   chan struct{}

	// Of the goroutine.
	sources []source // in the order they are tried
	active  int      // index into sources, -1: none
	heard   time.Time
	lagging time.Time // since then the active source owes what somebody waits for, zero: it does not
	asks    []wire.Header

	base      time.Time
	wanted    atomic.Uint64 // highest op that is known to be there
	vouched   atomic.Int64  // when a source last vouched for the view, since base; 0: never
	published atomic.Pointer[metadata.View]
	ready     chan struct{}
	mu        sync.Mutex
	changed   chan struct{}
}

type source struct {
	node  uint8
	up    bool
	after time.Time // not before
}

type event struct {
	kind eventKind
	node uint8
	head wire.Header
	body []byte
	done func()
}

type eventKind uint8

const (
	eventFrame eventKind = iota
	eventUp
	eventDown
)

// NewClient begins to follow as soon as a source is up. Close ends it.
func NewClient(config ClientConfig) *Client {
	c := &Client{
		config: config, follow: metadata.NewFollower(config.Cluster, config.Limits), log: config.Log, active: -1,
		events: make(chan event, backlog), stop: make(chan struct{}), gone: make(chan struct{}), base: time.Now(),
		ready: make(chan struct{}), changed: make(chan struct{}),
	}
	if c.log == nil {
		c.log = hclog.NewNullLogger()
	}
	for _, node := range config.Sources {
		c.sources = append(c.sources, source{node: node})
	}
	if n := uint64(len(c.sources)); n > 0 {
		first := int(config.Seed % n)
		c.sources = slices.Concat(c.sources[first:], c.sources[:first])
	}
	for i := range c.sources {
		c.sources[i].after = c.base.Add(time.Duration(i) * grace)
	}
	go c.run()
	return c
}

// Close ends the client. The last view stays and is soon no longer fresh.
func (c *Client) Close() {
	close(c.stop)
	<-c.gone
}

// Up says that the connection to a node begins, and that the node knows nothing of an earlier one.
func (c *Client) Up(node uint8) { c.post(event{kind: eventUp, node: node}) }

// Down says that the connection to a node ended.
func (c *Client) Down(node uint8) { c.post(event{kind: eventDown, node: node}) }

// Frame takes a frame of a node. The client keeps body until it calls done, which may be nil. Frame
// blocks while too much is waiting to be applied.
func (c *Client) Frame(node uint8, h *wire.Header, body []byte, done func()) {
	c.post(event{kind: eventFrame, node: node, head: *h, body: body, done: done})
}

func (c *Client) post(e event) {
	select {
	case c.events <- e:
	case <-c.stop:
		e.finish()
	}
}

func (e *event) finish() {
	if e.done != nil {
		e.done()
	}
}

// View is the newest view.
func (c *Client) View() *metadata.View { return c.published.Load() }

// Ready is closed once there is a view.
func (c *Client) Ready() <-chan struct{} { return c.ready }

// Fresh reports whether a source vouched for the view within FreshFor.
func (c *Client) Fresh() bool {
	at := c.vouched.Load()
	return at > 0 && time.Since(c.base)-time.Duration(at) < FreshFor
}

// Changed is closed when a newer view than the current one is published.
func (c *Client) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Want says that the metadata group has op: a source that does not bring it soon is left for another one.
func (c *Client) Want(op uint64) {
	for w := c.wanted.Load(); op > w && !c.wanted.CompareAndSwap(w, op); {
		w = c.wanted.Load()
	}
}

// Wait wants op and returns true once it is applied, or false after limit.
func (c *Client) Wait(op uint64, limit time.Duration) bool {
	if c.View().Op >= op {
		return true
	}
	c.Want(op)
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		changed := c.Changed()
		if c.View().Op >= op {
			return true
		}
		select {
		case <-changed:
		case <-timeout.C:
			return false
		}
	}
}

// run owns the follower.
func (c *Client) run() {
	defer close(c.gone)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			c.tick(time.Now())
		case e := <-c.events:
			c.handle(&e, time.Now())
			e.finish()
			c.settle()
		}
	}
}

func (c *Client) handle(e *event, now time.Time) {
	i := slices.IndexFunc(c.sources, func(s source) bool { return s.node == e.node })
	if i < 0 {
		return
	}
	switch e.kind {
	case eventUp:
		c.sources[i].up = true
		if c.active == i {
			c.active = -1 // a new connection
		}
	case eventDown:
		c.sources[i].up = false
		if c.active == i {
			c.active = -1
		}
	case eventFrame:
		if i == c.active {
			c.frame(e, now)
		}
	}
	c.choose(now)
}

// frame applies a frame of the active source.
func (c *Client) frame(e *event, now time.Time) {
	asks, progress, err := c.follow.Frame(&e.head, e.body, c.asks[:0])
	c.asks, c.heard = asks, now
	if err != nil {
		c.giveUp(now, err)
		return
	}
	if progress.Current {
		c.vouched.Store(int64(max(now.Sub(c.base), 1)))
	}
	c.ask(now)
}

// ask sends what the follower wants of the active source.
func (c *Client) ask(now time.Time) {
	for i := range c.asks {
		if !c.config.Ask(c.sources[c.active].node, (*Request)(&c.asks[i])) {
			c.giveUp(now, errNotSent)
			return
		}
	}
}

var (
	errNotSent = errors.New("feed: a request can not be sent")
	errSilent  = errors.New("feed: nothing is heard")
	errBehind  = errors.New("feed: what is known to be there does not come")
)

// giveUp passes the active source over for a while.
func (c *Client) giveUp(now time.Time, why error) {
	s := &c.sources[c.active]
	c.log.Warn("metadata feed failed, another source is tried", "node", s.node, "error", why)
	s.after = now.Add(pause)
	c.active = -1
}

// choose begins with the first source that is up and was not given up lately. A source that works is
// kept when a better one comes back.
func (c *Client) choose(now time.Time) {
	for i := range c.sources {
		s := &c.sources[i]
		if c.active >= 0 {
			return
		}
		if !s.up || now.Before(s.after) {
			continue
		}
		c.active, c.heard, c.lagging = i, now, time.Time{}
		c.asks = c.follow.Connected(c.asks[:0])
		c.ask(now)
	}
}

func (c *Client) tick(now time.Time) {
	switch v := c.View(); {
	case c.active < 0:
	case now.Sub(c.heard) > silence:
		c.giveUp(now, errSilent)
	case v == nil || v.Op >= c.wanted.Load():
		c.lagging = time.Time{}
	case c.lagging.IsZero():
		c.lagging = now
	case now.Sub(c.lagging) >= lag:
		c.wanted.Store(0) // one change of sources for each wish: what is there may not be committed yet
		c.giveUp(now, errBehind)
	}
	c.choose(now)
}

// settle publishes the follower's view if it is a new one.
func (c *Client) settle() {
	v := c.follow.View()
	old := c.published.Load()
	if v == old {
		return
	}
	c.published.Store(v)
	if old == nil {
		close(c.ready)
	}
	c.mu.Lock()
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
}
