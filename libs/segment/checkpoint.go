package segment

import (
	"io"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// hintStep is how many bytes the hint file of the growing segment may lag: what a first touch after
// a restart walks.
const hintStep = 4 << 20

// Checkpoint is the log at one commit point on its way into a checkpoint. State counts nothing that
// Run has not written and synced.
type Checkpoint struct {
	State State

	flush     *Flush
	extents   []extent
	condemned int // removals the state accounts for
}

// Checkpoint captures the log at its commit point. Run the result on any goroutine; only after Run
// returned nil may State enter a checkpoint. When that checkpoint is durable, and before journal
// records of what it counts go, give it to Checkpointed on the loop.
func (l *Log) Checkpoint() *Checkpoint {
	c := &Checkpoint{flush: l.flush(), condemned: len(l.condemned)}
	c.State = State{Generation: l.generation, Start: l.start, Next: l.commit, Time: l.timeFrom, SegmentSize: l.opt.SegmentSize}
	c.extents = append(c.extents, l.sealed...)
	if l.active.seg != nil {
		c.extents = append(c.extents, l.active)
	}
	c.State.Segments = make([]SegmentState, len(c.extents))
	for i := range c.extents {
		x := &c.extents[i]
		c.State.Segments[i] = SegmentState{
			Base: x.seg.base, Next: x.next, Length: x.length, Last: x.last,
			FirstTime: x.firstTime, LastTime: x.lastTime, Hash: x.hash,
		}
	}
	return c
}

// Run writes the small batches that wait, syncs every file written since the last sync with its
// name, and refreshes the index hints. A failed hint is no error.
func (c *Checkpoint) Run() error {
	if err := c.flush.Run(); err != nil {
		return err
	}
	for i := range c.extents {
		x := &c.extents[i]
		s := x.seg
		if s.isGone() {
			continue
		}
		sealed := i < len(c.extents)-1
		if s.dirty.Load() || !s.named.Load() {
			if sealed {
				if err := x.trimFile(); err != nil {
					return err
				}
			}
			if err := s.sync(vfs.SyncPaced); err != nil {
				return err
			}
		}
		if lag := x.length - s.hinted.Load(); lag >= hintStep || sealed && lag > 0 {
			_ = x.writeHint()
		}
	}
	return nil
}

// Write writes the small batches that wait, so that the files hold all that State counts. It makes nothing durable: for
// those who read the files, not for a checkpoint.
func (c *Checkpoint) Write() error { return c.flush.Run() }

// File reads the file of State.Segments[i], which Run has completed, through the cache of open files. One that a
// trim took away meanwhile reads as ErrTrimmed.
func (c *Checkpoint) File(i int) io.ReaderAt { return c.extents[i].seg }

// trimFile drops what an append that was cut, or an earlier life of the process, left behind the end
// of a sealed segment: equal logs are equal files.
func (x *extent) trimFile() error {
	size, err := x.seg.Size()
	if err == ErrTrimmed {
		return nil
	}
	if err != nil || size <= x.length {
		return err
	}
	return x.seg.Truncate(x.length)
}

// writeHint stores the index of x for the next start.
func (x *extent) writeHint() error {
	cold, ok := x.warm()
	if !ok {
		if err := x.load(false); err != nil {
			return err
		}
		cold, _ = x.warm()
	}
	ix := index{entries: append(append([]entry(nil), cold...), x.hot...), length: x.length}
	var b [headerSize]byte
	if _, err := x.seg.ReadAt(b[:], x.last); err != nil {
		return err
	}
	if err := writeHint(x.seg.life.fs, x.seg.indexPath(), encodeHint(x.seg.base, &ix, x.next, parseHeader(b[:]).checksum)); err != nil {
		return err
	}
	x.seg.hinted.Store(x.length)
	x.seg.lying.Store(false)
	return nil
}

// Checkpointed learns that the checkpoint with c.State is durable, or err. It returns the removals
// that waited for it, to be run on any goroutine, nil if none did. The indexes of sealed segments leave memory: their hint
// files have them now.
func (l *Log) Checkpointed(c *Checkpoint, err error) *Removal {
	if err != nil {
		return nil
	}
	l.coolSealed()
	l.flushedTo(c.flush.to)
	done := l.condemned[:c.condemned]
	l.condemned = append([]*Removal(nil), l.condemned[c.condemned:]...)
	if len(done) == 0 {
		return nil
	}
	for i, r := range done[1:] {
		done[i].then = r
	}
	return done[0]
}

// coolSealed replaces the in-memory index of sealed segments by their hint file.
func (l *Log) coolSealed() {
	var cooled []extent
	for i := range l.sealed {
		x := &l.sealed[i]
		if len(x.hot) == 0 || x.seg.hinted.Load() != x.length {
			continue
		}
		if cooled == nil {
			cooled = append([]extent(nil), l.sealed...) // views hold the old ones
		}
		cooled[i].coldLen, cooled[i].hot = x.length, nil
	}
	if cooled != nil {
		l.sealed = cooled
		l.publish()
	}
}
