package loop

import (
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// EngineOptions say how a loop lives in a process.
type EngineOptions struct {
	FS      vfs.FS
	Dir     string // of the journal
	Owner   journal.Owner
	Suspect bool                       // the page cache may have been lost since the log was written (rule D5)
	Durable func(loop int) journal.LSN // end of a loop's log at a clean stop, 0 if there was none
	Log     hclog.Logger
	Fatal   func(status int, reason error)

	Limits    Limits
	FileSize  int64 // bytes of a journal file
	Budget    int64 // bytes of journal the loop may hold
	Reserve   int64 // bytes kept free for ops that make room
	Workers   int   // goroutines for file work
	Heartbeat time.Duration
	Metrics   *Metrics // nil: nothing is measured

	// What groups of several members need.
	Peers    Peers
	Votes    *Votes
	Evidence *journal.Evidence
	Echoes   *Echoes

	// Stepped: the engine starts no goroutine. A turn writes its own rounds, file work waits for
	// Step, ticks and background syncs for Advance: a test decides what happens in which order.
	Stepped bool
	Clock   func() uint64   // µs since the Unix epoch; nil: the wall clock
	Ticks   func() vsr.Tick // monotonic, µs; nil: that of the process
	Random  func() uint64   // nil: that of the system
}

// writer is how rounds reach the journal.
type writer interface {
	TryInline(*journal.Round) (journal.Done, bool)
	Submit(*journal.Round) bool
	Resume()
	SyncSoon()
	Checkpoint(journal.LSN, []journal.Image, func(error))
	Close() error
}

// Engine is one loop in a process with what it needs: its journal and writer, a pool for file
// work, checkpoints.
type Engine struct {
	*Runner
	// Fresh gives a group of several members an empty machine in place of one whose Ready failed; nil:
	// there is none. Set before Replay.
	Fresh func(g *Group, damage error) Machine

	journal   *journal.Journal
	writer    writer
	options   EngineOptions
	work      chan job
	jobs      sync.WaitGroup        // jobs that were not run yet
	restoring map[uint64]*restoring // groups between Host and the end of Replay

	steps   []job         // of a stepped engine, oldest first
	random  *rand.ChaCha8 // owned by the loop
	readers sync.Pool     // of the journal
	started vsr.Tick
	// Owned by the loop: what waits for the checkpoint after the one under way, and what the next tick
	// wants one for.
	waiting   []func(error)
	insisting []func()

	checkpointing bool   // owned by the loop
	kept          int64  // bytes the journal held after the last checkpoint; owned by the loop
	failing       bool   // a round failed; logged once until one succeeds
	fullAt        uint64 // when one last failed for lack of space
}

type job struct {
	run  func() error
	done func(error)
}

// OpenEngine opens the journal and returns what it holds. Groups are added with Recover and Born,
// then Start begins to serve.
func OpenEngine(o EngineOptions) (*Engine, *journal.Recovered, error) {
	if err := o.FS.MkdirAll(o.Dir); err != nil {
		return nil, nil, fmt.Errorf("loop: %w", err)
	}
	j, recovered, err := journal.Open(journal.Options{
		FS: o.FS, Dir: o.Dir, Owner: o.Owner, Suspect: o.Suspect, Durable: o.durable(), FileSize: o.FileSize, Budget: o.Budget, Reserve: o.Reserve,
		Timing: o.Metrics.timing(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("loop: %w", err)
	}
	e := &Engine{journal: j, options: o, work: make(chan job, 1024), restoring: make(map[uint64]*restoring)}
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:])
	e.random = rand.NewChaCha8(seed)
	e.started = e.Tick()
	e.Runner = newRunner(New(e, o.Limits))
	e.Loop.Echoes = o.Echoes
	if o.Evidence != nil {
		e.Loop.epoch = o.Evidence.Epoch
	}
	// Everything recovered is replayed before the first turn, so the first checkpoint covers it.
	e.Loop.reached, e.Loop.newest = j.Position(), j.Position()
	e.Loop.Failed = e.roundFailed
	o.Metrics.watch(e)
	e.Loop.Ticked, e.Loop.tight = e.checkpointDue, e.tight
	if o.Stepped {
		e.Runner.stepped, e.writer = true, journal.NewInline(j)
	} else {
		e.writer = journal.NewWriter(j, e.Notify)
	}
	for _, d := range recovered.Corrupt {
		o.Log.Error("journal is damaged", "dir", o.Dir, "file", d.File, "position", d.Pos, "bytes", d.Len, "reason", d.Reason, "kept", d.Kept)
	}
	return e, recovered, nil
}

// Start begins to serve.
func (e *Engine) Start() {
	e.writer.SyncSoon()
	if e.options.Stepped {
		e.Runner.kick()
		return
	}
	for range max(1, e.options.Workers) {
		go e.worker()
	}
	e.Runner.Start()
}

func (e *Engine) worker() {
	for j := range e.work {
		err := j.run()
		e.Do(func() { j.done(err) })
		e.jobs.Done()
	}
}

// Now implements Env.
func (e *Engine) Now() uint64 {
	if e.options.Clock != nil {
		return e.options.Clock()
	}
	return uint64(time.Now().UnixMicro())
}

// Tick implements Env.
func (e *Engine) Tick() vsr.Tick {
	if e.options.Ticks != nil {
		return e.options.Ticks()
	}
	return Ticks()
}

// Rand implements Env.
func (e *Engine) Rand() uint64 {
	if e.options.Random != nil {
		return e.options.Random()
	}
	return e.random.Uint64()
}

// Submit implements Env: a small unsynced round is written by the turn itself when the writer is idle.
func (e *Engine) Submit(r *journal.Round) (done journal.Done, now, ok bool) {
	if done, ok := e.writer.TryInline(r); ok {
		return done, true, true
	}
	return journal.Done{}, false, e.writer.Submit(r)
}

// Resume implements Env.
func (e *Engine) Resume() { e.writer.Resume() }

// Go implements Env.
func (e *Engine) Go(run func() error, done func(error)) {
	if e.options.Stepped {
		e.steps = append(e.steps, job{run, done})
		return
	}
	e.jobs.Add(1)
	select {
	case e.work <- job{run, done}:
	default:
		go func() { e.work <- job{run, done} }()
	}
}

// Background runs file work of a machine; done is called in a turn.
func (e *Engine) Background(run func() error, done func(error)) { e.Go(run, done) }

// Owe makes the next background sync include a file with large bodies that Replay found.
func (e *Engine) Owe(f vfs.File) { e.journal.Owe(f) }

// fullPause is how long, in microseconds, sends are refused after the disk was full: what frees or
// bounds space, and offsets, must not share their rounds.
const fullPause = 1_000_000

// Full reports that the journal has no room for sends until a checkpoint, or somebody else, frees some.
// Called in a turn.
func (e *Engine) Full() bool {
	return e.journal.Used() > e.journal.Limit()/10*9 || e.fullAt > 0 && e.Now() < e.fullAt+fullPause
}

func (e *Engine) roundFailed(err error) {
	if !e.failing {
		e.failing = true
		e.options.Log.Error("journal write failed", "dir", e.options.Dir, "error", err)
	}
	if errors.Is(err, journal.ErrFull) {
		e.fullAt = e.Now()
	}
	if errors.Is(err, journal.ErrFailed) && e.options.Fatal != nil {
		e.options.Fatal(3, err)
	}
}

// End is where the log ends after Close.
func (e *Engine) End() journal.LSN { return e.journal.Position() }

func (o *EngineOptions) durable() journal.LSN {
	if o.Durable == nil {
		return 0
	}
	return o.Durable(int(o.Owner.Loop))
}

// Close finishes what is admitted, writes a last checkpoint and closes the journal.
func (e *Engine) Close(limit time.Duration) error {
	for e.Step() {
	}
	e.Runner.Close(limit)
	err := e.Checkpoint()
	if werr := e.writer.Close(); err == nil {
		err = werr
	}
	e.jobs.Wait() // the checkpoint lets go of files
	close(e.work)
	return err
}

// Spec describes a group to host.
type Spec struct {
	ID        uint64
	Cluster   wire.U128
	Self      uint8
	Members   uint8
	Policy    vsr.Policy
	Nodes     []uint8 // node id of each member, when there are several
	TimeFloor uint64  // µs; no op of the group is older
	// Lost: this member may have acted before, with data that is gone. Without a log and a vote it is then
	// not new to the group (rule D5).
	Lost bool
	// Leased: reads are answered under the lease of the primary (Group.Leased).
	Leased bool
}

func (s *Spec) group() vsr.Group {
	return vsr.Group{ID: s.ID, Cluster: s.Cluster, Self: s.Self, Members: s.Members, Policy: s.Policy}
}
