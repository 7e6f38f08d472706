package routing

import (
	"sync"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Router finds the primaries of groups. The members of a group never change (design-arguments.md 2), so
// it keeps them, with the newest view it has heard of: the primary of view v is member v mod n. A
// refusal brings news of the view. One that does not, or no answer at all, has the members tried in
// turn. It starts with view 0, as groups do, and never asks anybody for hints. All methods may be used
// concurrently.
type Router struct {
	config Config

	mu     sync.RWMutex
	places map[uint64]*place
}

// place is where a group lives. The list does not change.
type place struct {
	members []byte
	aim     atomic.Uint64 // view of the primary aimed at, and by how many members it was passed over
}

const (
	aimSkipBits = 8
	// maxPlaces bounds what is remembered: groups that were deleted are forgotten with all others.
	maxPlaces = 1 << 17
)

func aim(view uint32, skip uint64) uint64 { return uint64(view)<<aimSkipBits | skip }

// index is the member to ask, out of n.
func (p *place) index() int {
	a := p.aim.Load()
	return int((a>>aimSkipBits + a&(1<<aimSkipBits-1)) % uint64(len(p.members)))
}

// Config describes the cluster a Router works in.
type Config struct {
	// View returns the newest metadata, never nil.
	View func() *metadata.View
	// Dial returns the way to a node, nil while none is known. It is called for every request: the same
	// node gives the same value each time.
	Dial func(node uint8) link.Service
	// Metadata are the node ids of the metadata replicas in member order.
	Metadata []byte
	// Roster are the nodes that host the partitions without a member list of their own: all-role
	// clusters place nothing, every node has everything.
	Roster []byte
}

// New makes a router for one process.
func New(c Config) *Router { return &Router{config: c, places: make(map[uint64]*place)} }

// Service is the way to the group's primary as far as it is known, or to another member while there is
// no way to that one. Nil when nobody is known.
func (r *Router) Service(group uint64) link.Service {
	p := r.place(group)
	if p == nil {
		return nil
	}
	first := p.index()
	for i := range p.members {
		if s := r.config.Dial(p.members[(first+i)%len(p.members)]); s != nil {
			return s
		}
	}
	return nil
}

// Ask makes a call to the primary of its group, once, and waits for the answer. A refusal is learned from.
func (r *Router) Ask(c *link.Call) {
	service := r.Service(c.Group)
	if service == nil {
		c.Status, c.Reason = wire.CodeTransientNotAccepted, link.ReasonUnreachable
		return
	}
	service.Serve(c)
	<-c.Done()
	if c.Status.IsTransient() {
		r.Refused(c, service)
	}
}

// Refused learns from a call that was refused with a transient status by service, or not answered.
func (r *Router) Refused(c *link.Call, service link.Service) {
	p := r.place(c.Group)
	if p == nil {
		return
	}
	old := p.aim.Load()
	if c.View > uint32(old>>aimSkipBits) {
		p.aim.CompareAndSwap(old, aim(c.View, 0))
		return
	}
	switch c.Reason {
	case link.ReasonNone, link.ReasonNotPrimary, link.ReasonViewChange, link.ReasonUnreachable, link.ReasonClosing:
	default:
		return // the right one, which has no room or is behind
	}
	if service != r.config.Dial(p.members[p.index()]) {
		return // somebody else is aimed at by now
	}
	skip := (old&(1<<aimSkipBits-1) + 1) % uint64(len(p.members))
	p.aim.CompareAndSwap(old, aim(uint32(old>>aimSkipBits), skip))
}

// place finds the members of a group, nil when the metadata does not know it.
func (r *Router) place(group uint64) *place {
	r.mu.RLock()
	p := r.places[group]
	r.mu.RUnlock()
	if p != nil {
		return p
	}
	members := r.members(group)
	if len(members) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p = r.places[group]; p != nil {
		return p
	}
	if len(r.places) >= maxPlaces {
		clear(r.places)
	}
	p = &place{members: members}
	r.places[group] = p
	return p
}

func (r *Router) members(group uint64) []byte {
	if group == wire.MetadataGroup {
		return r.config.Metadata
	}
	_, partition, ok := r.config.View().PartitionByGroupID(group)
	switch {
	case !ok:
		return nil
	case partition.Placed():
		return partition.Members()
	}
	return r.config.Roster
}
