package partitionreplica

import (
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// behindFor is how long a call waits for the metadata it was resolved at (design-arguments.md 13).
	behindFor = 3 * time.Second
	// maxBehind bounds the calls that wait, roughly.
	maxBehind = 4096
)

// Routed is the replica as other processes reach it. Their view of the metadata may be newer than the one
// here, then a call waits for it; or older, then a group that is not here is none to them either once
// they know what is known here, which the refusal says.
type Routed struct {
	replica *Replica
	waiting atomic.Int64
}

// Routed returns the service for calls that come over the service plane.
func (r *Replica) Routed() *Routed { return &Routed{replica: r} }

// Serve implements link.Service.
func (s *Routed) Serve(c *link.Call) {
	r := s.replica
	if c.MetadataOp <= r.follower.View().Op {
		s.serve(c)
		return
	}
	if r.config.Engine.Stepped || s.waiting.Load() >= maxBehind {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBehind)
		return
	}
	s.waiting.Add(1)
	go func() {
		defer s.waiting.Add(-1)
		if !r.reach(c.MetadataOp, behindFor) {
			c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBehind)
			return
		}
		s.serve(c)
	}()
}

// serve answers a call that is resolved at an op this node knows.
func (s *Routed) serve(c *link.Call) {
	r := s.replica
	if v := r.follower.View(); c.Internal == link.InternalNone && !r.hosts(v, c.Group) {
		c.MetadataOp = v.Op
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonUnknownGroup)
		return
	}
	r.Serve(c)
}

// hosts reports whether a group belongs on this node.
func (r *Replica) hosts(v *metadata.View, group uint64) bool {
	_, part, ok := v.PartitionByGroupID(group)
	if !ok || !part.Placed() {
		return ok
	}
	_, member := part.MemberIndex(r.config.Node)
	return member
}

// leads reports whether this process may answer for the partition.
func (p *Partition) leads() bool {
	ok, _ := p.group.Serves(p.engine.Tick(), p.replica.config.Engine.Echoes)
	return ok
}

// wanting is a Follower that may have to look elsewhere for what it is told to be there.
type wanting interface{ Want(op uint64) }

// reach returns once the metadata has applied op here, or false after limit.
func (r *Replica) reach(op uint64, limit time.Duration) bool {
	if w, ok := r.follower.(wanting); ok {
		w.Want(op)
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		changed := r.follower.Changed()
		if r.follower.View().Op >= op {
			return true
		}
		select {
		case <-changed:
		case <-timeout.C:
			return false
		case <-r.stop:
			return false
		}
	}
}
