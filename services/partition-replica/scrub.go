package partitionreplica

import (
	"errors"
	"time"

	"github.com/whippet-mq/whippet/libs/segment"
)

const scrubStep = 256 << 10 // bytes read at once

// scrub reads every sealed segment of this process again and again, at the configured rate and not more often than
// configured, so that damage is found while other members still have what it took.
func (r *Replica) scrub() {
	buf := make([]byte, scrubStep)
	for {
		for _, p := range r.sealed() {
			if !r.scrubPartition(p, buf) {
				return
			}
		}
		select {
		case <-r.stop:
			return
		case <-time.After(r.config.ScrubPause):
		}
	}
}

// sealed lists the partitions that have a sealed segment.
func (r *Replica) sealed() (all []*Partition) {
	for _, e := range r.engines {
		e.Wait(func() {
			for _, p := range r.of(e) {
				if _, any := p.log.Sealed(1); any {
					all = append(all, p)
				}
			}
		})
	}
	return all
}

// scrubPartition verifies the sealed segments of a partition, oldest first. False: the process stops.
func (r *Replica) scrubPartition(p *Partition, buf []byte) bool {
	const oldest = ^uint64(0)
	for after := oldest; ; {
		var s *segment.Scrub
		if !p.engine.Wait(func() {
			if r.find(p.id) == p && p.fence.Load() == nil {
				s = p.log.ScrubPlan(after)
			}
		}) {
			return false
		}
		if s == nil || after != oldest && s.Last() <= after {
			return true
		}
		stopped := false
		err := s.Run(buf, func(bytes int) bool { stopped = !r.pace(bytes); return !stopped })
		if stopped {
			return false
		}
		r.scrubbed(p, s, err)
		after = s.Last()
	}
}

// pace waits as long as reading so many bytes may take. False: the process stops.
func (r *Replica) pace(bytes int) bool {
	r.metrics.scrubbed.Add(float64(bytes))
	timer := time.NewTimer(time.Duration(float64(bytes) / float64(r.config.ScrubRate) * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stop:
		return false
	}
}

func (r *Replica) scrubbed(p *Partition, s *segment.Scrub, err error) {
	var d *segment.Damage
	switch {
	case err == nil:
		p.engine.Do(func() { p.log.Scrubbed(s, nil) })
	case errors.As(err, &d):
		r.damaged(p, d)
	case !errors.Is(err, segment.ErrTrimmed):
		r.log.Warn("segment can not be read for verification", "group", p.id, "error", err)
	}
}
