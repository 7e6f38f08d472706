package journal

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// SyncInterval is how long written bytes wait for a sync that nobody asked for.
const SyncInterval = time.Second

// Limits of one write and of inline rounds, in bytes of records.
const (
	batchBytes  = 8 << 20
	inlineBytes = 64 << 10
)

// holdBytes of records is how much waits in the queue for the end of a sync. See Writer.
const holdBytes = 512 << 10

// bodySyncs is how many segment files are synced at a time, bodyWrites how many bodies are written:
// the copy into the page cache is most of the work of a large send.
const (
	bodySyncs  = 16
	bodyWrites = 4
)

// Timing is told how long each write of records, and each sync, of a Writer took. It is called on the writer's
// goroutines and on those that submit, and must not block. Nil functions are not called.
type Timing struct {
	Wrote, Synced func(time.Duration)
}

// Writer runs a Journal behind two goroutines.
//
// The writer goroutine takes everything queued: large bodies go to their segment files (and, for
// synced rounds, to the disk) first, then the records of all rounds go out in one write. Rounds that
// do not ask for a sync are done at that point and never wait for one. The others are handed to the
// syncer goroutine, which makes everything written so far durable with one sync and completes them
// together; what is written meanwhile waits for the next. Nothing waits for a timer. Written bytes
// that no round wants synced, large bodies among them, are synced within SyncInterval.
//
// Small rounds that want a sync could not be done before the next one anyway: while a sync runs they
// stay queued, so that one write serves them all, and goroutines that are ready to run have a turn before
// that write. A round that need not wait takes them along at once.
//
// A loop's rounds complete in order, but a written round may complete before an earlier synced one.
//
// After a round that failed with ErrFull every later round fails with it too, so that no record can
// stand above a hole, until the owner, having taken all failures into account, calls Resume. After
// any other error everything fails for good.
type Writer struct {
	j      *Journal
	notify func(Done)

	mu      sync.Mutex
	work    sync.Cond // queue or closing changed
	sync    sync.Cond // toSync, unsynced or closing changed
	queue   []*Round
	queued  int64 // bytes of records in queue or being written
	urgent  int   // rounds in queue that must not wait for a sync
	writing bool
	syncing bool   // the syncer goroutine is at work
	refuse  error  // ErrFull until Resume
	written []Done // of the writer goroutine, or of TryInline while it writes
	toSync  []Done
	stale   bool // bytes were written since the last sync began
	closing bool
	drained bool // the writer goroutine ended
	timer   *time.Timer
	due     bool // the timer asks for a sync

	preparing bool // the journal's next file is being made

	batch  []*Round // of the writer goroutine
	large  []largeWrite
	bodies []vfs.File // of the writer goroutine
	inline [1]*Round  // of the caller of TryInline that set writing
	gone   sync.WaitGroup
	tasks  sync.WaitGroup
}

// NewWriter starts the goroutines. notify is called once per submitted round, on one of them, and
// must not block; it may call Submit.
func NewWriter(j *Journal, notify func(Done)) *Writer {
	w := &Writer{j: j, notify: notify}
	w.work.L, w.sync.L = &w.mu, &w.mu
	w.timer = time.AfterFunc(SyncInterval, w.timeout)
	w.timer.Stop()
	w.gone.Add(2)
	go w.write()
	go w.syncer()
	return w
}

// Submit queues a round, which the writer borrows until its Done. It never blocks. False, without a
// Done to come, means that the writer is closing or that the log is over its budget; reserved rounds
// are taken all the same.
func (w *Writer) Submit(r *Round) bool {
	n := r.bytes()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing || !r.Reserved && w.j.Used()+w.queued+n > w.j.Limit() {
		return false
	}
	w.queue = append(w.queue, r)
	w.queued += n
	if r.urgent() {
		w.urgent++
	}
	if !w.held() {
		w.work.Signal()
	}
	return true
}

// urgent reports whether the round is written even while a sync runs: it wants none, or its write
// is long enough to be worth doing meanwhile.
func (r *Round) urgent() bool { return !r.Sync || len(r.Large) > 0 }

// held reports whether the queue waits for the end of a sync. w.mu is held.
func (w *Writer) held() bool {
	return w.syncing && w.urgent == 0 && w.queued < holdBytes && !w.closing
}

// TryInline writes a small round without large bodies on the caller's goroutine if the writer is
// idle and the round wants no sync. False means that nothing happened: submit it.
func (w *Writer) TryInline(r *Round) (Done, bool) {
	n := r.bytes()
	if r.Sync || len(r.Large) > 0 || n > inlineBytes {
		return Done{}, false
	}
	w.mu.Lock()
	if w.closing || w.writing || len(w.queue) > 0 || w.refuse != nil || w.j.Used()+n > w.j.Limit() {
		w.mu.Unlock()
		return Done{}, false
	}
	w.writing = true
	w.mu.Unlock()
	w.inline[0] = r
	at, err := w.append(w.inline[:])
	w.inline[0] = nil
	w.mu.Lock()
	w.settle(0, err)
	w.mu.Unlock()
	return Done{Seq: r.Seq, LSN: at, Err: err}, true
}

// SyncSoon asks for the background sync within SyncInterval although nothing was written.
func (w *Writer) SyncSoon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stale {
		w.stale = true
		w.timer.Reset(SyncInterval)
	}
}

// Resume ends the refusal of rounds that began with ErrFull.
func (w *Writer) Resume() {
	w.mu.Lock()
	w.refuse = nil
	w.mu.Unlock()
}

// Checkpoint runs Journal.Checkpoint on its own goroutine and calls done there.
func (w *Writer) Checkpoint(at LSN, images []Image, done func(error)) {
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		done(w.j.Checkpoint(at, images))
	}()
}

// Close completes everything submitted, syncs the log and ends the goroutines. The journal stays open.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closing = true
	w.work.Broadcast()
	w.mu.Unlock()
	w.gone.Wait()
	w.tasks.Wait()
	w.timer.Stop()
	return w.j.SyncAll()
}

func (r *Round) bytes() int64 {
	var n int64
	for i := range r.Records {
		n += r.Records[i].diskSize()
	}
	return n
}

// write is the writer goroutine.
func (w *Writer) write() {
	defer w.gone.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.queue) == 0 && !w.closing || w.writing || w.held() {
			w.work.Wait()
		}
		if len(w.queue) == 0 {
			w.drained = true
			w.sync.Broadcast()
			return
		}
		w.writing = true
		w.yield()
		n := w.take()
		refuse := w.refuse
		w.mu.Unlock()
		at, err := LSN(0), refuse
		if refuse == nil {
			at, err = w.writeBatch()
		}
		w.complete(at, err)
		w.mu.Lock()
		w.settle(n, err)
	}
}

// yield lets the goroutines run that are ready to, before a queue of rounds that want a sync is written: what they
// submit shares the write and the sync. On an idle machine it costs nothing. w.mu is held, and given up meanwhile.
func (w *Writer) yield() {
	if w.urgent > 0 || w.closing {
		return
	}
	w.mu.Unlock()
	runtime.Gosched()
	w.mu.Lock()
}

// take moves rounds from the queue into the batch; their bytes stay counted. w.mu is held.
func (w *Writer) take() (bytes int64) {
	w.batch = w.batch[:0]
	for _, r := range w.queue {
		n := r.bytes()
		if len(w.batch) > 0 && bytes+n > batchBytes {
			break
		}
		bytes += n
		if r.urgent() {
			w.urgent--
		}
		w.batch = append(w.batch, r)
	}
	rest := copy(w.queue, w.queue[len(w.batch):])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	return bytes
}

// writeBatch writes the large bodies and then the records of the batch.
func (w *Writer) writeBatch() (LSN, error) {
	files, err := w.writeBodies()
	w.bodies = files
	if err == nil {
		err = w.syncBodies(files)
	}
	clear(files)
	if err != nil {
		return 0, err
	}
	return w.append(w.batch)
}

// append writes the records of rounds.
func (w *Writer) append(rounds []*Round) (LSN, error) {
	wrote := w.j.opt.Timing.Wrote
	if wrote == nil {
		return w.j.AppendRounds(rounds)
	}
	began := time.Now()
	at, err := w.j.AppendRounds(rounds)
	wrote(time.Since(began))
	return at, err
}

// largeWrite is one large body of a batch.
type largeWrite struct {
	body   *LargeBody
	synced bool // the round's Sync
	err    error
}

// writeBodies is Journal.WriteBodies with several bodies written side by side.
func (w *Writer) writeBodies() ([]vfs.File, error) {
	w.large = w.large[:0]
	for _, r := range w.batch {
		for i := range r.Large {
			w.large = append(w.large, largeWrite{body: &r.Large[i], synced: r.Sync})
		}
	}
	if len(w.large) < 2 {
		clear(w.large)
		return w.j.WriteBodies(w.batch, w.bodies[:0])
	}
	var next atomic.Int32
	write := func() {
		for i := int(next.Add(1)) - 1; i < len(w.large); i = int(next.Add(1)) - 1 {
			l := &w.large[i]
			l.err = w.j.writeBody(l.body, l.synced)
		}
	}
	var others sync.WaitGroup
	for range min(len(w.large), bodyWrites) - 1 {
		others.Go(write)
	}
	write()
	others.Wait()
	files, err := w.bodies[:0], error(nil)
	for i := range w.large {
		l := &w.large[i]
		if l.err != nil && (err == nil || errors.Is(err, ErrFull)) {
			err = l.err
		}
		if (l.synced || l.body.Sync) && !slices.Contains(files, l.body.File) {
			files = append(files, l.body.File)
		}
	}
	clear(w.large)
	return files, err
}

// syncBodies syncs segment files side by side: the disk takes their writes together.
func (w *Writer) syncBodies(files []vfs.File) error {
	if len(files) == 0 {
		return nil
	}
	errs := make([]error, len(files))
	var some sync.WaitGroup
	limit := make(chan struct{}, bodySyncs)
	for i, f := range files {
		limit <- struct{}{}
		some.Go(func() {
			errs[i] = f.Sync()
			<-limit
		})
	}
	some.Wait()
	if err := errors.Join(errs...); err != nil {
		return w.j.Fail(err)
	}
	return nil
}

// settle ends a write. w.mu is held.
func (w *Writer) settle(bytes int64, err error) {
	w.queued -= bytes
	w.writing = false
	if len(w.queue) > 0 || w.closing {
		w.work.Signal()
	}
	switch {
	case errors.Is(err, ErrFull):
		w.refuse = err
	case err == nil && !w.stale:
		w.stale = true
		w.timer.Reset(SyncInterval)
	}
}

// complete hands the batch's synced rounds to the syncer and reports the others. The next write
// waits for it, which keeps completions in order.
func (w *Writer) complete(at LSN, err error) {
	w.mu.Lock()
	written := w.written[:0]
	for i, r := range w.batch {
		done := Done{Seq: r.Seq, LSN: at, Err: err}
		w.batch[i] = nil
		if r.Sync && err == nil {
			w.toSync = append(w.toSync, done)
			w.sync.Signal()
		} else {
			written = append(written, done)
		}
	}
	w.written = written
	w.mu.Unlock()
	for _, done := range written {
		w.notify(done)
	}
}

// timeout asks for the background sync.
func (w *Writer) timeout() {
	w.mu.Lock()
	w.due = true
	w.sync.Signal()
	w.mu.Unlock()
}

// syncer is the syncer goroutine.
func (w *Writer) syncer() {
	defer w.gone.Done()
	var batch []Done
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.toSync) == 0 && !w.due && !w.drained {
			w.sync.Wait()
		}
		if len(w.toSync) == 0 && !w.due {
			return
		}
		batch, w.toSync, w.syncing = w.toSync, batch[:0], true
		due := w.due
		w.due = false
		if due {
			w.stale = false
			w.timer.Stop()
		}
		w.mu.Unlock()
		err := w.syncLog(due)
		w.release()
		for _, d := range batch {
			d.Synced, d.Err = err == nil, err
			w.notify(d)
		}
		if err == nil {
			w.idle()
		}
		w.mu.Lock()
		w.prepare()
	}
}

// release lets the rounds go that waited for the end of the sync.
func (w *Writer) release() {
	w.mu.Lock()
	w.syncing = false
	if len(w.queue) > 0 {
		w.work.Signal()
	}
	w.mu.Unlock()
}

// prepare lets the journal make its next file in the background when that is due. w.mu is held.
func (w *Writer) prepare() {
	if w.preparing || w.closing || !w.j.PrepareDue() {
		return
	}
	w.preparing = true
	w.tasks.Go(func() {
		w.j.Prepare()
		w.mu.Lock()
		w.preparing = false
		w.mu.Unlock()
	})
}

// syncLog makes the log durable; the background sync includes the large bodies no round waited for.
func (w *Writer) syncLog(all bool) error {
	if synced := w.j.opt.Timing.Synced; synced != nil {
		began := time.Now()
		defer func() { synced(time.Since(began)) }()
	}
	if all {
		return w.j.SyncAll()
	}
	return w.j.Sync()
}

// idle notes the synced position in the log when no write is about to do so.
func (w *Writer) idle() {
	w.mu.Lock()
	quiet := !w.writing && len(w.queue) == 0
	w.mu.Unlock()
	if quiet {
		_ = w.j.MarkSynced() // its failure is sticky and met by the next round
	}
}
