package loop

import (
	"errors"
	"slices"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vfs"
)

// snapshot is a checkpoint being made: one image per group, taken in one turn.
type snapshot struct {
	at     journal.LSN
	images []journal.Image
	states []Image
}

// image captures every group. Everything below at is applied or covered by an image. A damaged group
// keeps its log, whose next reading may be a better one, unless the journal is tight: then that log is
// kept aside and the group stays fenced.
func (l *Loop) image(at journal.LSN) *snapshot {
	tight := l.tight != nil && l.tight()
	for _, g := range l.clustered {
		if g.tail.count > 0 { // not applied: its records stay in the log
			at = min(at, g.tail.at(g.tail.first).floor)
		}
	}
	ids := make([]uint64, 0, len(l.groups))
	for id := range l.groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	s := &snapshot{at: at, images: make([]journal.Image, 0, len(ids))}
	for _, id := range ids {
		g := l.groups[id]
		img := journal.Image{Group: id, Op: g.Applied(), Commit: g.Applied(), Settled: g.tail.count == 0 && !g.damage.found}
		if img.Op > 0 {
			g.applied.Put(img.Head[:])
		}
		if p := g.peers; p != nil {
			img.Adopted, img.AdoptView = p.adopted, p.adoptView
			img.Settled = img.Settled && p.stale == 0
		}
		state := Image{}
		d := &g.damage
		d.fenced = d.fenced || d.found && tight
		if d.image != nil {
			img = *d.image
			img.Settled = false
		} else {
			state = g.Machine.Image()
		}
		img.Fenced = img.Fenced || d.fenced
		s.images = append(s.images, img)
		s.states = append(s.states, state)
	}
	return s
}

// run makes durable what the images count, then encodes them.
func (s *snapshot) run() error {
	var errs []error
	for i := range s.states {
		if s.states[i].Run == nil {
			continue
		}
		if err := s.states[i].Run(); err != nil {
			errs = append(errs, err)
			continue
		}
		s.images[i].State = s.states[i].Encode(nil)
	}
	return errors.Join(errs...)
}

func (s *snapshot) done(err error) {
	for i := range s.states {
		if s.states[i].Done != nil {
			s.states[i].Done(err)
		}
	}
}

// checkpointBytes is how far the journal grows beyond the last checkpoint: a restart reads it all, at
// some hundred megabytes a second.
const checkpointBytes = 512 << 20

// checkpointDue starts a checkpoint when the journal has grown, or holds half of its budget. Called
// in a turn.
func (e *Engine) checkpointDue() {
	insisting := e.insisting
	e.insisting = nil
	for _, then := range insisting {
		e.insist(then)
	}
	if !e.checkpointing && (e.tight() || e.journal.Used()-e.kept >= checkpointBytes) {
		e.startCheckpoint(nil)
	}
}

// tight reports that the journal needs room.
func (e *Engine) tight() bool { return e.journal.Used() >= e.journal.Limit()/2 }

// startCheckpoint captures the images now and writes them in the background.
func (e *Engine) startCheckpoint(then func(error)) {
	e.checkpointing = true
	s := e.Loop.image(e.Loop.reached)
	e.Go(func() error { return e.write(s) }, func(err error) {
		s.done(err)
		e.checkpointing, e.kept = false, e.journal.Used()
		if err != nil {
			e.options.Log.Error("checkpoint failed, the log keeps everything", "dir", e.options.Dir, "error", err)
		}
		if then != nil {
			then(err)
		}
		if waiting := e.waiting; len(waiting) > 0 && !e.checkpointing {
			e.waiting = nil
			e.startCheckpoint(func(err error) {
				for _, then := range waiting {
					then(err)
				}
			})
		}
	})
}

// write makes a checkpoint durable. On a full disk the journal's reserve makes room for it: what a
// purge, a trim or a delete frees is freed only by a checkpoint.
func (e *Engine) write(s *snapshot) error {
	err := s.run()
	if err == nil {
		err = e.writeCheckpoint(s)
	}
	if !vfs.IsFull(err) || e.journal.LendReserve() != nil {
		return err
	}
	if err = s.run(); err == nil {
		err = e.writeCheckpoint(s)
	}
	return err
}

func (e *Engine) writeCheckpoint(s *snapshot) error {
	done := make(chan error, 1)
	e.writer.Checkpoint(s.at, s.images, func(err error) { done <- err })
	return <-done
}

// Checkpoint writes a checkpoint while nothing else runs: before Start and after the last turn.
func (e *Engine) Checkpoint() error {
	e.Loop.reached, e.Loop.newest = e.journal.Position(), e.journal.Position() // a restart writes by itself
	s := e.Loop.image(e.Loop.reached)
	err := e.write(s)
	s.done(err)
	return err
}
