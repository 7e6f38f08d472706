package frontdoor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// maxEntering is how many logins and logouts of lost connections are with the metadata primary at once. More
// than it queues would be refused and come again, at the cost of everybody else; here they wait their turn.
const maxEntering = 48

// Core is what the sessions of one front-door share. It touches no socket.
type Core struct {
	cfg       Config
	deps      Deps
	log       hclog.Logger
	clients   *Clients
	metrics   *metrics
	passwords *Passwords
	facts     *facts
	removed   *removed
	index     *readIndex // nil in a process that has everything
	floors    *floors    // nil there too
	voucher   voucher    // nil when the view is never old
	host      *host
	gate      *gate
	entering  chan struct{} // one token for each login that is being registered
	archiving atomic.Bool
	stopping  atomic.Bool
	stopBy    atomic.Int64 // while stopping, unix nanoseconds: from then on refusals are passed on at once
	process   uint64       // random half of every connection number of this process

	mu       sync.Mutex
	balanced map[metadata.TopicKey]*atomic.Uint64
}

func newCore(cfg Config, deps Deps) *Core {
	cfg.fill()
	c := &Core{
		cfg: cfg, deps: deps, log: deps.Logger, clients: newClients(), metrics: newMetrics(deps.Registry),
		host: newHost(time.Now(), cfg.DataDir), process: randomUint64(), balanced: make(map[metadata.TopicKey]*atomic.Uint64),
	}
	if c.log == nil {
		c.log = hclog.NewNullLogger()
	}
	c.removed = newRemoved()
	c.gate = newGate()
	c.entering = make(chan struct{}, maxEntering)
	c.voucher, _ = deps.Follower.(voucher)
	if router := deps.Router; router != nil {
		deps.Partitions, c.deps.Partitions = router.Service, router.Service
		c.index, c.floors = &readIndex{core: c}, newFloors()
	}
	c.facts = newFacts(deps.Partitions, cfg.FactsFor)
	if deps.Router != nil {
		c.facts.elsewhere = deps.Router.Refused
		c.facts.op = func() uint64 { return deps.Follower.View().Op }
	}
	c.metrics.events = deps.Events
	c.metrics.registry.MustRegister(&objects{core: c})
	return c
}

// counter is the round robin of balanced sends to a topic. It starts at 0 with the process.
func (c *Core) counter(topic metadata.TopicKey) *atomic.Uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.balanced[topic]
	if n == nil {
		n = new(atomic.Uint64)
		c.balanced[topic] = n
	}
	return n
}

// metadataService is the service that reaches the metadata primary, nil when none is known.
func (c *Core) metadataService() link.Service {
	if c.deps.Router != nil {
		return c.deps.Router.Service(wire.MetadataGroup)
	}
	return c.deps.Metadata
}

// askMetadata makes a call to the metadata primary, once, and waits for the answer.
func (c *Core) askMetadata(call *link.Call) {
	call.Group = wire.MetadataGroup
	if c.deps.Router != nil {
		c.deps.Router.Ask(call)
		return
	}
	c.deps.Metadata.Serve(call)
	<-call.Done()
}

// partitionService is the service that reaches a partition's primary, nil when none is known.
func (c *Core) partitionService(group uint64) link.Service { return c.deps.Partitions(group) }

// drainShare is the part of the time to stop in which requests in progress are still repeated: the rest is for
// their answers.
const drainShare = 2. / 3

// stop begins to stop: what is in progress has until then.
func (c *Core) stop(deadline time.Time) {
	now := time.Now()
	c.stopBy.Store(now.Add(time.Duration(float64(deadline.Sub(now)) * drainShare)).UnixNano())
}

// hurried reports whether requests are to be answered with what there is, because the process ends.
func (c *Core) hurried(now time.Time) bool {
	return c.stopping.Load() && now.UnixNano() >= c.stopBy.Load()
}
