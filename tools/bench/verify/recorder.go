package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// Options say what a Recorder does.
type Options struct {
	Connect client.Options
	Address func() string // where the server is now; nil means Connect.Address
	Seed    uint64        // of the random choices, and the identity of the run

	Stream     string // "" means verify
	Topics     int    // 0 means 4
	Partitions int    // per topic; 0 means 3
	Producers  int    // 0 means 4
	Members    int    // group members, 0 means 2
	TopicLimit int64  // bytes a topic may hold before it is purged; 0 means 48 MiB
	MaxPayload int    // 0 means MaxPayload
	Fsync      bool   // topics acknowledge synced messages only
}

const (
	segmentSize   = 1 << 20 // of the topics: smallest legal, so that segments roll often
	redialPause   = 20 * time.Millisecond
	attemptTime   = 15 * time.Second // for one answer
	idlePause     = 2 * time.Millisecond
	memberCount   = 200 // messages per poll of a member
	stormProducer = 0   // the producer that sends the large messages
	groupName     = "group"
)

// Recorder produces load and notes every acknowledgement.
type Recorder struct {
	Options
	ledger *Ledger
	topics []*load
	number atomic.Uint64 // next message number
	gate   sync.RWMutex  // held shared by every action, exclusively while the world stands still

	mu           sync.Mutex
	violations   []error
	disturbances []Disturbance
}

// Disturbance is an answer the load did not want, or none: requests are not repeated, so a refusal that clients
// would get over counts too.
type Disturbance struct {
	At      time.Time
	Since   time.Time // when the client connected
	Address string    // to
	Action  string
	Err     error
	Broken  bool // the connection ended, or none came about
}

func (d *Disturbance) String() string {
	how := "answered"
	if d.Broken {
		how = "connection ended"
	}
	return fmt.Sprintf("%s at %s through %s: %s: %v", d.Action, d.At.Format("15:04:05.000"), d.Address, how, d.Err)
}

// load is one topic under load.
type load struct {
	stream, topic wire.Identifier
	name          topicName
	quiet         sync.RWMutex // held shared by what uses the topic, exclusively by a purge
	purging       atomic.Bool  // a purge was sent and has no answer yet
	bytes         atomic.Int64 // acknowledged since the last purge
}

// NewRecorder connects once and makes the topics.
func NewRecorder(ctx context.Context, o Options, ledger *Ledger) (*Recorder, error) {
	o.Stream = orElse(o.Stream, "verify")
	o.Topics, o.Partitions = orElse(o.Topics, 4), orElse(o.Partitions, 3)
	o.Producers, o.Members = orElse(o.Producers, 4), orElse(o.Members, 2)
	o.TopicLimit, o.MaxPayload = orElse(o.TopicLimit, 48<<20), orElse(o.MaxPayload, MaxPayload)
	o.Connect.RetryFor, o.Connect.Timeout = -1, attemptTime
	r := &Recorder{Options: o, ledger: ledger}
	c, err := r.dial(ctx, r.address())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return r, r.setUp(c)
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (r *Recorder) setUp(c *client.Client) error {
	stream := wire.NamedID(r.Stream)
	if _, err := c.CreateStream(r.Stream); err != nil {
		return fmt.Errorf("create stream %s: %w", r.Stream, err)
	}
	for i := range r.Topics {
		name := fmt.Sprintf("topic-%d", i)
		options := wire.AppendOption(nil, "segment_size", wire.KindString, fmt.Append(nil, segmentSize))
		if r.Fsync {
			options = wire.AppendOption(options, "enforce_fsync", wire.KindString, []byte("true"))
		}
		if _, err := c.CreateTopic(wire.CreateTopicRequest{
			Stream: stream, PartitionsCount: uint32(r.Partitions), Name: []byte(name), Options: options,
		}); err != nil {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
		if _, err := c.CreateGroup(wire.CreateGroupRequest{Stream: stream, Topic: wire.NamedID(name), Name: []byte(groupName)}); err != nil {
			return fmt.Errorf("create group of %s: %w", name, err)
		}
		if err := r.ledger.Note(Event{Kind: KindTopic, Stream: r.Stream, Topic: name, Partition: uint32(r.Partitions)}); err != nil {
			return err
		}
		r.topics = append(r.topics, &load{stream: stream, topic: wire.NamedID(name), name: topicName{r.Stream, name}})
	}
	return nil
}

// Run produces load until ctx ends, whatever happens to the server meanwhile.
func (r *Recorder) Run(ctx context.Context) {
	var wg sync.WaitGroup
	actor := func(name string, work func(random *rand.Rand) action) {
		random := rand.New(rand.NewPCG(r.Seed, rand.Uint64()))
		wg.Go(func() { r.act(ctx, name, work(random)) })
	}
	for i := range r.Producers {
		actor("send", func(random *rand.Rand) action { return (&producer{r, random, i, client.Batch{}}).send })
	}
	for i := range r.Members {
		actor("group", func(random *rand.Rand) action { return (&member{Recorder: r, load: r.topics[i%len(r.topics)]}).poll })
	}
	actor("store offset", func(random *rand.Rand) action { return (&storer{r, random}).store })
	actor("purge", func(random *rand.Rand) action { return r.purge })
	actor("delete segments", func(random *rand.Rand) action { return (&trimmer{r, random}).trim })
	actor("make stream", func(random *rand.Rand) action { return (&maker{Recorder: r}).make })
	wg.Wait()
}

// Still keeps every actor from doing anything until resume is called. Actions under way end first.
func (r *Recorder) Still() (resume func()) {
	r.gate.Lock()
	return r.gate.Unlock
}

// Violations are the broken promises seen so far.
func (r *Recorder) Violations() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.violations...)
}

// Disturbances are what clients saw and did not want, up to the first thousand.
func (r *Recorder) Disturbances() []Disturbance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Disturbance(nil), r.disturbances...)
}

// action does one thing on a connection. An error of the connection, or no answer, leads to a new
// connection.
type action func(c *client.Client) error

// act repeats an action, connecting again whenever the connection is gone.
func (r *Recorder) act(ctx context.Context, name string, do action) {
	var c *client.Client
	address, since := "", time.Time{}
	for ctx.Err() == nil {
		r.gate.RLock()
		var err error
		if c == nil {
			address, since = r.address(), time.Now()
			c, err = r.dial(ctx, address)
		}
		if c != nil {
			err = do(c)
		}
		r.gate.RUnlock()
		if err != nil && ctx.Err() == nil {
			r.disturbed(Disturbance{time.Now(), since, address, name, err, c == nil || c.Broken() || isEviction(err)})
		}
		switch {
		case c == nil:
			pause(ctx, redialPause)
		case c.Broken() || isEviction(err):
			c.Close()
			c = nil
		default:
			r.judge(err)
		}
	}
	if c != nil {
		c.Close()
	}
}

func (r *Recorder) disturbed(d Disturbance) {
	const kept = 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.disturbances) < kept {
		r.disturbances = append(r.disturbances, d)
	}
}

func isEviction(err error) bool {
	var e *client.Evicted
	return errors.As(err, &e)
}

// judge keeps what must not happen: a broken promise, or a refusal other than "try again".
func (r *Recorder) judge(err error) {
	var code wire.Code
	if err == nil || errors.As(err, &code) && code.IsTransient() {
		return
	}
	const kept = 20
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.violations) < kept {
		r.violations = append(r.violations, err)
	}
}

func (r *Recorder) address() string {
	if r.Address != nil {
		return r.Address()
	}
	return r.Connect.Address
}

func (r *Recorder) dial(ctx context.Context, address string) (*client.Client, error) {
	o := r.Connect
	o.Address = address
	return client.Dial(ctx, o)
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// producer sends batches of all shapes to all partitions.
type producer struct {
	*Recorder
	random *rand.Rand
	index  int
	batch  client.Batch
}

// shape draws how many messages of about which size come next.
func (p *producer) shape() (count, size int) {
	switch n := p.random.IntN(100); {
	case n < 30:
		return 1, 1 + p.random.IntN(64)
	case n < 75:
		return 1 + p.random.IntN(50), 1 + p.random.IntN(2<<10)
	case n < 92:
		return 1 + p.random.IntN(8), 1 + p.random.IntN(32<<10)
	case n < 98 || p.index != stormProducer:
		return 1 + p.random.IntN(3), 1 + p.random.IntN(256<<10)
	}
	return 1, 1<<20 + p.random.IntN(MaxPayload-1<<20+1)
}

func (p *producer) send(c *client.Client) error {
	t := p.topics[p.random.IntN(len(p.topics))]
	count, size := p.shape()
	size = min(size, p.MaxPayload)
	done, ok := t.use()
	if !ok {
		return nil
	}
	defer done()
	e := Event{
		Kind: KindSend, Stream: t.name.stream, Topic: t.name.topic, Count: count,
		Partition: uint32(p.random.IntN(p.Partitions)), Number: p.number.Add(uint64(count)) - uint64(count),
	}
	p.batch.Reset(uint64(time.Now().UnixMicro()))
	for i := range uint64(count) {
		payload := p.ledger.Model.content.payload(e.Number+i, size)
		p.batch.Add(p.ledger.Model.content.id(e.Number+i), payload, nil)
		e.Hashes = binary.LittleEndian.AppendUint64(e.Hashes, wire.Hash64(payload))
	}
	to := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: e.Partition}
	at, err := c.Send(t.stream, t.topic, to, p.batch.Seal())
	if err != nil {
		return err
	}
	if at.Partition != e.Partition {
		return violation("%s/%s: sent to partition %d, acknowledged on %d", e.Stream, e.Topic, e.Partition, at.Partition)
	}
	t.bytes.Add(int64(p.batch.Size()))
	e.Offset = at.BaseOffset
	return p.ledger.Note(e)
}

// purge empties a topic that has grown large. Nothing else touches the topic until the purge is
// acknowledged, however often it takes: only then is it known what the topic holds.
func (r *Recorder) purge(c *client.Client) error {
	for _, t := range r.topics {
		if t.purging.Load() || t.bytes.Load() > r.TopicLimit {
			return r.purgeTopic(c, t)
		}
	}
	time.Sleep(idlePause)
	return nil
}

func (r *Recorder) purgeTopic(c *client.Client, t *load) error {
	t.quiet.Lock()
	defer t.quiet.Unlock()
	e := Event{Kind: KindPurging, Stream: t.name.stream, Topic: t.name.topic}
	if !t.purging.Swap(true) {
		if err := r.ledger.Note(e); err != nil {
			return err
		}
	}
	if err := c.PurgeTopic(t.stream, t.topic); err != nil {
		return err
	}
	t.bytes.Store(0)
	t.purging.Store(false)
	e.Kind, e.Number = KindPurge, r.number.Load()
	return r.ledger.Note(e)
}

// trimPause is how often a partition is trimmed.
const trimPause = 50 * time.Millisecond

// trimmer deletes sealed segments.
type trimmer struct {
	*Recorder
	random *rand.Rand
}

func (m *trimmer) trim(c *client.Client) error {
	time.Sleep(trimPause)
	t := m.topics[m.random.IntN(len(m.topics))]
	done, ok := t.use()
	if !ok {
		return nil
	}
	defer done()
	e := Event{Kind: KindTrimming, Stream: t.name.stream, Topic: t.name.topic, Partition: uint32(m.random.IntN(m.Partitions))}
	if err := m.ledger.Note(e); err != nil {
		return err
	}
	return c.DeleteSegments(wire.DeleteSegmentsRequest{
		Stream: t.stream, Topic: t.topic, Partition: e.Partition, Count: 1 + m.random.Uint32N(3),
	})
}

// use keeps purges away from t until done is called; false when one is under way.
func (t *load) use() (done func(), ok bool) {
	t.quiet.RLock()
	if t.purging.Load() {
		t.quiet.RUnlock()
		time.Sleep(idlePause)
		return nil, false
	}
	return t.quiet.RUnlock, true
}
