package journal

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// Inline runs a Journal on the goroutine of its caller: a Writer without goroutines and timer, for a
// loop that is driven step by step. It writes in the order of a Writer and follows its rules; the
// background sync happens when Background is called. One goroutine at a time uses it.
type Inline struct {
	j       *Journal
	refuse  error
	closing bool
	one     [1]*Round
	files   []vfs.File
}

// NewInline returns a writer on j.
func NewInline(j *Journal) *Inline { return &Inline{j: j} }

// TryInline writes a round, synced if it asks for that. False: the log is over its budget.
func (w *Inline) TryInline(r *Round) (Done, bool) {
	if w.closing || !r.Reserved && w.j.Used()+r.bytes() > w.j.Limit() {
		return Done{}, false
	}
	at, err := LSN(0), w.refuse
	if err == nil {
		at, err = w.write(r)
	}
	if errors.Is(err, ErrFull) {
		w.refuse = err
	}
	return Done{Seq: r.Seq, LSN: at, Synced: err == nil && r.Sync, Err: err}, true
}

func (w *Inline) write(r *Round) (LSN, error) {
	w.one[0] = r
	files, err := w.j.WriteBodies(w.one[:], w.files[:0])
	w.files = files
	for _, f := range files {
		if err == nil {
			if err = f.Sync(); err != nil {
				err = w.j.Fail(err)
			}
		}
	}
	if err != nil {
		return 0, err
	}
	at, err := w.j.AppendRounds(w.one[:])
	if err == nil && r.Sync {
		if err = w.j.Sync(); err == nil {
			_ = w.j.MarkSynced() // as Writer: its failure is met by the next round
		}
	}
	return at, err
}

// Submit takes nothing: TryInline did not, because the log is over its budget.
func (w *Inline) Submit(*Round) bool { return false }

// SyncSoon does nothing: the caller of Background decides.
func (w *Inline) SyncSoon() {}

// Resume ends the refusal of rounds that began with ErrFull.
func (w *Inline) Resume() { w.refuse = nil }

// Background is the sync that a Writer makes within SyncInterval of a write.
func (w *Inline) Background() error {
	err := w.j.SyncAll()
	if err == nil {
		err = w.j.MarkSynced()
	}
	w.j.Prepare()
	return err
}

// Checkpoint runs Journal.Checkpoint and calls done.
func (w *Inline) Checkpoint(at LSN, images []Image, done func(error)) {
	done(w.j.Checkpoint(at, images))
}

// Close syncs the log. The journal stays open.
func (w *Inline) Close() error {
	w.closing = true
	return w.j.SyncAll()
}
