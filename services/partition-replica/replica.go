package partitionreplica

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Config is what an operator decides about a partition replica.
type Config struct {
	Cluster wire.U128 // stamped on prepares
	Node    uint8     // id of this node
	Roster  []uint8   // nodes that host every partition without members of its own; none or one: groups of one
	// Joined is the metadata revision at which this data directory became part of the roster: of older
	// partitions the node may have had data that is lost. False while it is not known; then nothing is hosted
	// anew. Nil: a lost disk is a new node.
	Joined func() (revision uint64, known bool)
	// Dial is the way to another node.
	Dial func(node uint8) link.Service
	// Ask makes a call to the primary of its group, once, and returns with the answer.
	Ask             func(*link.Call)
	MoveRate        int64         // bytes a second that copies of moving partitions take together, 0: no bound
	MovesAtOnce     int           // copies of moving partitions at once
	Loops           int           // event loops for a new data directory
	MaxPoll         int           // bytes of a poll reply, at least one batch
	MaxFrame        int           // bytes of the largest frame, part of the size retention floor
	MaxOffsets      int           // stored consumer offsets per partition and kind
	CleanerInterval time.Duration // between retention passes; 0 = no cleaner
	TrashDelay      time.Duration // before removed files are unlinked
	ScrubRate       int64         // bytes a second that are verified in the background; 0 = none
	ScrubPause      time.Duration // between two rounds
	LowWaterBytes   uint64        // free bytes of the file system below which sends are refused
	LowWaterPercent float64       // the same as a share of its size; the smaller of both counts
	PerTopic        bool          // metric series per partition
	Engine          loop.EngineOptions
}

// Follower is the metadata as this process knows it.
type Follower interface {
	View() *metadata.View
	// Changed is closed when a view newer than the current one is there.
	Changed() <-chan struct{}
}

// Deps are the shared parts of a process.
type Deps struct {
	FS       vfs.FS
	Follower Follower
	// Logged may be newer than the view of Follower: it says what partitions are that the log knows. Nil: it is not.
	Logged   *metadata.View
	Pool     *buffer.Pool
	Log      hclog.Logger
	Registry prometheus.Registerer
	Events   *control.Publisher // nil: nobody is told
	// DiskLow is told when sends begin to be refused for lack of space, and when they no longer are.
	DiskLow func(bool)
	// Fatal ends the process with a status: its log can not be trusted any more.
	Fatal func(status int, reason error)
}

// Replica hosts the partitions of this process. It implements link.Service.
type Replica struct {
	config    Config
	fs        vfs.FS
	follower  Follower
	pool      *buffer.Pool
	log       hclog.Logger
	events    *control.Publisher
	metrics   *metrics
	files     *segment.Files
	engines   []*loop.Engine
	space     space
	tight     bool // of maintain: sends are refused for lack of space
	diskLow   func(bool)
	fatal     func(status int, reason error)
	seen      *metadata.View     // last view Follow looked at
	logged    *metadata.View     // Deps.Logged while Open runs
	transfers *transfer.Exchange // nil where every group has one member
	held      duty               // a DeleteSegments waits for consumers to pass its segments
	owing     duty               // auto-commits wait for room in the log
	moves     *moves

	mu         sync.RWMutex
	partitions map[uint64]*Partition

	started atomic.Bool // the loops run
	stop    chan struct{}
	gone    sync.WaitGroup
}

// Directories below the data root.
const (
	groupsDir = "partitions"
	trashDir  = "trash"
)

// Open recovers every partition the logs know. Nothing is served before Start.
func Open(config Config, deps Deps) (*Replica, error) {
	r := &Replica{
		config: config, fs: deps.FS, follower: deps.Follower, pool: deps.Pool, log: deps.Log, events: deps.Events,
		logged: deps.Logged, diskLow: deps.DiskLow, fatal: deps.Fatal, metrics: newMetrics(deps.Registry), files: segment.NewFiles(512),
		partitions: make(map[uint64]*Partition), stop: make(chan struct{}),
	}
	r.space.fs, r.space.again = deps.FS, make(chan struct{}, 1)
	r.moves = newMoves(r, deps.Registry)
	if err := deps.FS.RemoveAll(copiesDir); err != nil {
		return nil, fmt.Errorf("partition replica: %w", err)
	}
	for _, dir := range []string{groupsDir, trashDir} {
		if err := deps.FS.MkdirAll(dir); err != nil {
			return nil, fmt.Errorf("partition replica: %w", err)
		}
	}
	if err := r.openEngines(deps); err != nil {
		return nil, err
	}
	r.logged = nil
	r.dropStrays()
	r.openTransfers()
	deps.Registry.MustRegister(&survey{replica: r, perTopic: config.PerTopic})
	return r, nil
}

// Start begins to serve, to follow the metadata and to clean up.
func (r *Replica) Start() {
	for _, e := range r.engines {
		e.Start()
	}
	r.started.Store(true)
	r.space.measure(r.config, r.owed)
	if r.config.Engine.Stepped {
		return
	}
	r.gone.Add(2)
	go r.follow()
	go r.maintain()
	if r.config.ScrubRate > 0 {
		r.gone.Go(r.scrub)
	}
	if r.config.Engine.Peers != nil {
		r.metrics.unsettled.Set(float64(len(r.partitions) + 1)) // until they were looked at
		r.gone.Go(r.watchGroups)
		r.gone.Go(r.moves.watch)
	}
}

// Close finishes what is admitted, writes a checkpoint and gives everything back.
func (r *Replica) Close(limit time.Duration) error {
	close(r.stop)
	r.moves.close()
	r.gone.Wait()
	if r.transfers != nil {
		r.transfers.Close()
	}
	var first error
	for _, e := range r.engines {
		if err := e.Close(limit); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Ends are the ends of the loops' logs after Close.
func (r *Replica) Ends() []journal.LSN {
	ends := make([]journal.LSN, len(r.engines))
	for i, e := range r.engines {
		ends[i] = e.End()
	}
	return ends
}

// Serve implements link.Service.
func (r *Replica) Serve(c *link.Call) {
	switch {
	case c.Internal != link.InternalNone:
		r.internal(c)
	case c.Header.Operation == wire.OpNonReplicated && c.Header.Code == wire.CmdGetOffset:
		r.storedOffset(c)
	case c.Header.Operation == wire.OpNonReplicated:
		r.poll(c)
	default:
		r.Engine(c.Group).Serve(c)
	}
}

// Engine is the loop that owns a group.
func (r *Replica) Engine(group uint64) *loop.Engine {
	return r.engines[LoopOf(group, len(r.engines))]
}

// LoopOf is the number of the loop, of so many, that owns a group. All incarnations of a partition belong to one
// loop: a group and its successor change places in one turn.
func LoopOf(group uint64, loops int) int {
	if loops == 1 {
		return 0
	}
	var b [8]byte
	stream, topic, partition, _ := wire.SplitGroupID(group)
	binary.LittleEndian.PutUint64(b[:], wire.GroupID(stream, topic, partition, 0))
	return int(wire.Hash64(b[:]) % uint64(loops))
}

// view is the metadata that says what a partition is.
func (r *Replica) view() *metadata.View {
	if r.logged != nil {
		return r.logged
	}
	return r.follower.View()
}

func (r *Replica) find(group uint64) *Partition {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.partitions[group]
}

// internal answers the cluster's own questions from inside the loops.
func (r *Replica) internal(c *link.Call) {
	ask := func() {
		for _, e := range r.engines {
			if !e.Wait(func() { r.answer(e, c) }) {
				c.Refuse(wire.CodeTransientNotAccepted, link.ReasonClosing)
				return
			}
		}
		c.Finish()
	}
	if r.config.Engine.Stepped {
		ask()
		return
	}
	go ask()
}

// Engines are the loops of this process, for those who drive them step by step.
func (r *Replica) Engines() []*loop.Engine { return r.engines }

func (r *Replica) answer(e *loop.Engine, c *link.Call) {
	switch c.Internal {
	case link.InternalFacts:
		r.answerFacts(e, c)
	case link.InternalSealed:
		r.answerSealed(e, c)
	case link.InternalInFlight:
		r.answerInFlight(e, c)
	case link.InternalViews:
		r.answerViews(e, c)
	case link.InternalCopied:
		r.noteCopied(e, c)
	case link.InternalBegun:
		r.answerBegun(e, c)
	}
}

// answerFacts appends the facts of the asked groups, or of all, that this loop leads.
func (r *Replica) answerFacts(e *loop.Engine, c *link.Call) {
	if len(c.Body) == 0 {
		for _, p := range r.of(e) {
			if p.leads() {
				c.Out = link.AppendFact(c.Out, p.fact())
			}
		}
		return
	}
	for ids := c.Body; len(ids) >= 8; ids = ids[8:] {
		id := binary.LittleEndian.Uint64(ids)
		p := r.find(id)
		switch {
		case r.Engine(id) != e:
		case p != nil && p.leads():
			c.Out = link.AppendFact(c.Out, p.fact())
		case p == nil && r.shared(id):
			r.hostFor(e, id) // somebody has to ask the group who leads
		case p == nil:
			c.Out = link.AppendFact(c.Out, link.Fact{Group: id})
		}
	}
}

func (r *Replica) answerSealed(e *loop.Engine, c *link.Call) {
	if len(c.Body) < 12 {
		return
	}
	p := r.find(binary.LittleEndian.Uint64(c.Body))
	if r.Engine(binary.LittleEndian.Uint64(c.Body)) != e {
		return
	}
	upTo := uint64(0)
	if count := int(binary.LittleEndian.Uint32(c.Body[8:])); p != nil && count > 0 {
		upTo, _ = p.log.Sealed(count)
	}
	c.Out = binary.LittleEndian.AppendUint64(c.Out, upTo)
}

func (r *Replica) answerInFlight(e *loop.Engine, c *link.Call) {
	if len(c.Body) < 4 {
		return
	}
	group := binary.LittleEndian.Uint32(c.Body)
	view := r.follower.View()
	for ids := c.Body[4:]; len(ids) >= 8; ids = ids[8:] {
		id := binary.LittleEndian.Uint64(ids)
		p := r.find(id)
		if p == nil || p.engine != e {
			continue
		}
		if !p.leads() { // it was not asked for what it does not know
			c.Status, c.Reason, c.View = wire.CodeTransientNotAccepted, link.ReasonNotPrimary, p.group.View()
			return
		}
		g := view.GroupByKey(metadata.GroupKey{Stream: p.stream, Topic: p.topic, Group: group})
		if g == nil {
			continue
		}
		if owner := g.Owner(p.number); owner != nil && p.offsets.inFlight(group, owner.Client) {
			c.Out = binary.LittleEndian.AppendUint64(c.Out, id)
		}
	}
}

// of lists the partitions of one loop in group id order.
func (r *Replica) of(e *loop.Engine) []*Partition {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*Partition, 0, len(r.partitions))
	for _, p := range r.partitions {
		if p.engine == e {
			all = append(all, p)
		}
	}
	sortByID(all)
	return all
}
