package partitionreplica

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// spaceInterval is how often free space is measured.
const spaceInterval = time.Second

// space knows whether the file system is close to full. Between two measurements sends use up what was
// free above the low-water mark: however fast they come, they never reach the space below it.
type space struct {
	fs    vfs.FS
	low   atomic.Bool
	left  atomic.Int64  // bytes sends may still use
	short atomic.Bool   // a send was refused since the last measurement
	again chan struct{} // asks for a measurement now
}

// measure refuses sends below the low-water mark, so that trims, deletes and offset stores keep
// room to work; it is lifted when space returns. owed is what is acknowledged and still needs room in
// segment files; it is asked only when space is short.
func (s *space) measure(c Config, owed func() int64) {
	total, free, err := s.fs.Space()
	if err != nil {
		return
	}
	limit := min(c.LowWaterBytes, uint64(float64(total)*c.LowWaterPercent/100))
	left := int64(min(free, 1<<62)) - int64(limit)
	if limit > 0 && free < 8*limit {
		left -= owed()
	}
	s.low.Store(limit > 0 && left <= 0)
	s.left.Store(left)
}

// take uses up room for a send; false if there is none above the low-water mark. A small batch is
// written twice, to the log and to its segment.
func (s *space) take(c Config, bytes int) bool {
	if s.low.Load() {
		return false
	}
	if c.LowWaterBytes == 0 || s.left.Add(-2*int64(bytes)) > 0 {
		return true
	}
	s.short.Store(true)
	select {
	case s.again <- struct{}{}:
	default:
	}
	return false
}

// maintain runs the duties that have a clock: free space, retention, trash.
func (r *Replica) maintain() {
	defer r.gone.Done()
	space := time.NewTicker(spaceInterval)
	defer space.Stop()
	var cleaner <-chan time.Time
	if r.config.CleanerInterval > 0 {
		t := time.NewTicker(r.config.CleanerInterval)
		defer t.Stop()
		cleaner = t.C
	}
	trash := time.NewTicker(time.Minute)
	defer trash.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-space.C:
			r.watchSpace()
			r.trimHeld()
			r.payOwed()
		case <-r.space.again:
			r.watchSpace()
		case <-cleaner:
			r.clean()
		case <-trash.C:
			r.emptyTrash()
			r.forgetQuiet()
		}
	}
}

// watchSpace measures free space, tells when the disk becomes full and when it is no longer, and
// meanwhile gives back what it can.
func (r *Replica) watchSpace() {
	was, short := r.tight, r.space.short.Swap(false)
	r.space.measure(r.config, r.owed)
	r.tight = r.space.low.Load() || short
	for _, e := range r.engines {
		e.Wait(func() { r.tight = r.tight || e.Full() })
	}
	if r.tight != was {
		r.metrics.diskLow.Set(boolGauge(r.tight))
		r.log.Warn("free space passed the low-water mark", "sends_refused", r.tight)
		if r.diskLow != nil {
			r.diskLow(r.tight)
		}
	}
	if r.tight {
		r.reclaim()
	}
}

// owed is what committed batches still need in segment files.
func (r *Replica) owed() (bytes int64) {
	for _, e := range r.engines {
		e.Wait(func() {
			for _, p := range r.of(e) {
				bytes += p.log.Stats().Unflushed
			}
		})
	}
	return bytes
}

// reclaim frees what nothing needs any more at once instead of after the usual delays: deleted files
// that a checkpoint still counts, and the trash.
func (r *Replica) reclaim() {
	for _, e := range r.engines {
		e.Reclaim(func() {
			e.Background(func() error { return segment.EmptyTrash(r.fs, trashDir, r.seconds()+1) }, func(error) {})
		})
	}
}

// trimHeld looks again at deletions of segments that waited for consumers. It is not done when an
// offset is stored: whoever stores one may still read what it has just passed.
func (r *Replica) trimHeld() {
	for _, p := range r.held.list() {
		p.engine.Do(func() { p.proposeTrim(segment.Retention{}) })
	}
}

// payOwed proposes again the auto-commits there was no room for.
func (r *Replica) payOwed() {
	for _, p := range r.owing.list() {
		r.owing.set(p, false)
		p.payOwed()
	}
}

// forgetQuiet drops what partitions remember of connections that write no more.
func (r *Replica) forgetQuiet() {
	for _, e := range r.engines {
		e.Do(func() {
			for _, p := range r.of(e) {
				p.recent.expire(e.Now())
			}
		})
	}
}

func boolGauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (r *Replica) emptyTrash() {
	before := r.seconds() - int64(r.config.TrashDelay/time.Second)
	if err := segment.EmptyTrash(r.fs, trashDir, before); err != nil {
		r.log.Warn("trash can not be emptied", "error", err)
	}
}

// clean proposes what expiry and size limits let go, partition by partition, and to forget what deleted
// consumer groups stored.
func (r *Replica) clean() {
	v := r.follower.View()
	now := uint64(time.Now().UnixMicro())
	for _, e := range r.engines {
		for _, p := range r.of(e) {
			t, _, ok := v.PartitionByGroupID(p.id)
			if !ok {
				continue
			}
			rt := retention(t, now, int64(r.config.MaxFrame))
			e.Do(func() {
				p.dropDeletedGroups(v) // again: a store may have been ordered before the delete was seen
				p.proposeTrim(rt)
			})
		}
	}
}

// retention is a topic's settings as one partition sees them: the size limit is shared equally and
// never below one segment and one frame (client-semantics.md 7.2).
func retention(t *metadata.Topic, now uint64, maxFrame int64) segment.Retention {
	rt := segment.Retention{Now: now}
	if t.Settings.MessageExpiry != wire.Unlimited && t.Settings.MessageExpiry != 0 {
		rt.Expiry = t.Settings.MessageExpiry
	}
	if t.Settings.MaxTopicSize != wire.Unlimited && t.Settings.MaxTopicSize != 0 && t.Partitions() > 0 {
		share := t.Settings.MaxTopicSize / uint64(t.Partitions())
		rt.MaxBytes = max(int64(min(share, math.MaxInt64)), int64(t.Settings.SegmentSize)+maxFrame)
	}
	return rt
}

func (r *Replica) seconds() int64 { return time.Now().Unix() }
