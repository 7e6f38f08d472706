package metadatareplica

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/metadata/feed"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Config is what an operator decides about a metadata replica.
type Config struct {
	Cluster      wire.U128 // stamped on prepares
	Nodes        []uint8   // node ids of the members, this one too; none or one: a group of one
	Self         uint8     // place of this node among them
	Limits       metadata.Limits
	MaxTokens    int
	TokenCleaner time.Duration // between passes over expired tokens; 0 = never
	Rebalance    time.Duration // a revocation is over after this long, whatever is uncommitted
	SessionClaim time.Duration // a session nobody claims after a restart is logged out after this
	// Lived: the node has served before, so that metadata without a trace is lost, not new.
	Lived bool
	// AcceptLoss: the operator takes damaged metadata for what it still is, instead of serving it
	// read-only.
	AcceptLoss bool
	Placement  Placement
	PerTopic   bool // metric series per consumer group
	// Claims: front-doors say which sessions they hold, and the others are ended after SessionClaim.
	Claims bool
	// Feed: processes without a replica follow this one (Replica.Feed).
	Feed bool
	// Current reports whether this replica knows what is committed. It is called on any goroutine and must
	// not block. Nil: it does while enough of the other members answer (Engine.Echoes).
	Current func() bool
	Engine  loop.EngineOptions
}

// Deps are the shared parts of a process.
type Deps struct {
	FS       vfs.FS
	Root     func() (metadata.RootUser, error) // asked once, when no user exists yet
	Log      hclog.Logger
	Registry prometheus.Registerer
	Events   *control.Publisher // nil: nobody is told
	Fatal    func(status int, reason error)
}

// Replica hosts the metadata group. It implements link.Service and loop.Machine, and is the
// follower of everything else in its process.
type Replica struct {
	config  Config
	log     hclog.Logger
	events  *control.Publisher
	metrics *metrics
	engine  *loop.Engine
	group   *loop.Group

	// Partitions answers for polled but uncommitted data; set before Start.
	Partitions link.Service

	transfers *transfer.Exchange // nil in a group of one

	feed   *feed.Source  // nil when nobody follows
	fed    chan struct{} // there is something to feed
	opened time.Time
	known  atomic.Int64 // when it was last known what is committed, since opened

	// Owned by the loop.
	current   *metadata.View
	primary   bool
	told      bool      // that it is the primary
	silent    [256]bool // nodes that were told to be
	nodes     nodes
	copies    map[copyKey]copyState // of partitions that move
	claims    claims
	staged    []stagedOp        // ops that are not applied, in their order
	pipelined map[wire.U128]int // how many of them are a client's
	kept      uint64            // op of the last checkpoint keep has started
	damaged   error             // the log lost acknowledged ops: changes are refused
	unread    error             // the checkpoint can not be read: current is not what it holds

	published atomic.Pointer[metadata.View]
	mu        sync.Mutex
	changed   chan struct{}

	unclaimed map[wire.U128]uint64 // sessions found at start, by epoch
	stop      chan struct{}
	gone      sync.WaitGroup
}

// stagedOp is an op between staging and apply.
type stagedOp struct {
	op      uint64
	client  wire.U128
	members [][]byte // of the partitions it creates
}

const logDir = "metadata"

// Open recovers the metadata. Nothing is served before Start.
func Open(config Config, deps Deps) (*Replica, error) {
	r := &Replica{
		config: config, log: deps.Log, events: deps.Events, metrics: newMetrics(deps.Registry),
		copies: make(map[copyKey]copyState), pipelined: make(map[wire.U128]int), changed: make(chan struct{}),
		unclaimed: make(map[wire.U128]uint64), stop: make(chan struct{}), fed: make(chan struct{}, 1), opened: time.Now(), primary: true,
	}
	if config.Feed {
		r.feed = feed.NewSource(config.Cluster, r.View, r.knows)
	}
	options := config.Engine
	options.FS, options.Dir, options.Log, options.Fatal = deps.FS, logDir, deps.Log, deps.Fatal
	options.Metrics = loop.NewMetrics(deps.Registry, "metadata")
	engine, recovered, err := loop.OpenEngine(options)
	if err != nil {
		return nil, fmt.Errorf("metadata replica: %w", err)
	}
	r.engine = engine
	r.nodes.placement = config.Placement
	r.lead()
	switch spec := config.spec(); {
	case len(recovered.Groups) == 0 && config.Lived && spec.Members == 1:
		err = r.withoutImage(spec, &journal.GroupLog{Group: spec.ID, Faults: []journal.Fault{{Kind: journal.FaultImage}}}, recovered, deps, errNoCheckpoint)
	case len(recovered.Groups) == 0:
		err = r.birth(spec, recovered, deps)
	default:
		err = r.restore(spec, &recovered.Groups[0], recovered, deps)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata replica: %w", err)
	}
	r.openTransfers()
	deps.Registry.MustRegister(&groups{replica: r, perTopic: config.PerTopic})
	if len(config.Nodes) <= 1 && !config.Claims { // elsewhere sessions outlive this process
		for id, c := range r.current.Clients() {
			r.unclaimed[id] = c.Epoch
		}
	}
	return r, nil
}

func (c *Config) spec() loop.Spec {
	return loop.Spec{
		ID: wire.MetadataGroup, Cluster: c.Cluster, Members: uint8(max(1, len(c.Nodes))), Self: c.Self, Nodes: c.Nodes,
		Policy: vsr.Policy{SealBody: true, Incarnation: true, Synced: true}, Leased: true,
	}
}

// Start begins to serve and takes up the primary's duties.
func (r *Replica) Start() {
	r.engine.Start()
	if r.config.Engine.Stepped {
		return
	}
	r.gone.Add(2)
	go r.duties()
	go r.feeding()
}

// Stop ends the replica within limit.
func (r *Replica) Stop(limit time.Duration) error {
	close(r.stop)
	r.gone.Wait()
	if r.transfers != nil {
		r.transfers.Close()
	}
	return r.engine.Close(limit)
}

// End is the end of the log after Stop.
func (r *Replica) End() journal.LSN { return r.engine.End() }

// Serve implements link.Service.
func (r *Replica) Serve(c *link.Call) {
	switch {
	case c.Internal != link.InternalNone || c.Header.Operation != wire.OpJoinGroup:
		r.engine.Serve(c)
	case r.config.Engine.Stepped:
		r.askInFlight(c)
		r.engine.Serve(c)
	default:
		go func() {
			r.askInFlight(c)
			r.engine.Serve(c)
		}()
	}
}

// Engine is the loop of the group, for those who drive it step by step.
func (r *Replica) Engine() *loop.Engine { return r.engine }

// View is the newest published view.
func (r *Replica) View() *metadata.View { return r.published.Load() }

// Logged is View with all that stands behind it in the log, committed or not. A restart does not know how far the
// others had committed: whoever has something that was made of an op in between knows that this one was. Valid
// before Start.
func (r *Replica) Logged() *metadata.View {
	v := r.current
	r.group.Logged(func(h *wire.PrepareHeader, body []byte) { v, _ = v.Apply(h, body) })
	return v
}

// Changed is closed when a newer view than the current one is published.
func (r *Replica) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Wait returns once op is applied, or false after limit.
func (r *Replica) Wait(op uint64, limit time.Duration) bool {
	if r.View().Op >= op {
		return true
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		changed := r.Changed()
		if r.View().Op >= op {
			return true
		}
		select {
		case <-changed:
		case <-timeout.C:
			return false
		}
	}
}

func (r *Replica) publish(v *metadata.View) {
	r.published.Store(v)
	r.mu.Lock()
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
}

// Damaged reports why changes are refused, or nil.
func (r *Replica) Damaged() error { return r.damaged }
