package feed

import (
	"fmt"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// BeaconEvery is how often a source says that it is current.
const BeaconEvery = 250 * time.Millisecond

// Bounds of what a source keeps.
const (
	recentOps   = 16 << 10
	recentBytes = 16 << 20
	// offerAge is how many ops a snapshot may be behind when another follower is given it.
	offerAge = recentOps / 4
	// offerIdle is how long a snapshot that nobody asks for is kept.
	offerIdle = 30 * time.Second
	// maxWanted bounds the pieces of a snapshot a follower may have asked for and not been sent.
	maxWanted = 16
	maxChunk  = 4 << 20 // bytes
)

// Sink takes the frames for one follower. Send never blocks: false means there is no room now and
// nothing was taken. Neither slice changes afterwards; both may be sent to others too.
type Sink interface {
	Send(header, body []byte) bool
}

// Source serves the feed at a metadata replica. Its methods may be used concurrently, except that Add
// and Publish belong to the loop of the group.
type Source struct {
	cluster wire.U128
	view    func() *metadata.View
	// current reports whether this replica knows what is committed: it leads under its lease, or hears the
	// one that does. No beacon leaves while it does not.
	current func() bool

	mu       sync.Mutex
	recent   recent
	followed map[*Follower]struct{}
	beats    uint64

	building sync.Mutex // one snapshot at a time; taken before mu
	offer    *offer
}

// Follower is one follower as its source sees it.
type Follower struct {
	source *Source
	sink   Sink

	// Under the source's mutex.
	next   uint64 // op to send next, 0: not subscribed
	told   uint64 // commit point of the last beacon
	nonce  wire.U128
	offer  *offer // that it transfers
	wanted []wire.RequestStateChunkHeader
}

// NewSource serves the views that view returns, the newest each time, which is never nil. A nil current
// means always.
func NewSource(cluster wire.U128, view func() *metadata.View, current func() bool) *Source {
	if current == nil {
		current = func() bool { return true }
	}
	return &Source{cluster: cluster, view: view, current: current, followed: make(map[*Follower]struct{})}
}

// Add takes an applied prepare, before view returns what it led to. Nobody is sent it before Publish.
func (s *Source) Add(h *wire.PrepareHeader, body []byte) {
	frame := make([]byte, wire.HeaderSize+len(body))
	served := *h
	served.Command = wire.CommandRepairPrepare
	served.Put(frame)
	copy(frame[wire.HeaderSize:], body)
	s.mu.Lock()
	s.recent.push(h.Op, frame)
	s.mu.Unlock()
}

// Publish sends everybody what was added, and a beacon behind it.
func (s *Source) Publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.reach(s.view().Op)
	for f := range s.followed {
		f.serve()
	}
}

// Beat sends a beacon to everybody who has everything, and more to who was short of room. It is to be
// called every BeaconEvery.
func (s *Source) Beat(now time.Time) {
	s.mu.Lock()
	s.recent.reach(s.view().Op)
	for f := range s.followed {
		f.told = 0
		f.serve()
	}
	s.mu.Unlock()
	s.building.Lock()
	defer s.building.Unlock()
	switch o := s.offer; {
	case o == nil:
	case o.used:
		o.used, o.since = false, now
	case now.Sub(o.since) > offerIdle:
		s.offer = nil
	}
}

// Followers is how many there are.
func (s *Source) Followers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.followed)
}

// Open begins to serve a follower, which gets nothing before it asks.
func (s *Source) Open(sink Sink) *Follower {
	f := &Follower{source: s, sink: sink}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed[f] = struct{}{}
	if s.recent.first == 0 {
		s.recent.start(s.view().Op) // nothing was applied since the process started
	}
	return f
}

// Close forgets the follower.
func (f *Follower) Close() {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	delete(f.source.followed, f)
}

// Writable says that the sink has room again after a Send that had not.
func (f *Follower) Writable() {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.serve()
}

// Subscribe sends every op from q.FromOp on as it is applied. An error says that the other side is no
// follower of the metadata and should be disconnected.
func (f *Follower) Subscribe(q *wire.RequestPreparesHeader) error {
	if q.Group != wire.MetadataGroup || q.ToOp != ^uint64(0) {
		return fmt.Errorf("feed: subscription: %w", wire.ErrField)
	}
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.next, f.told, f.nonce, f.offer, f.wanted = q.FromOp, 0, q.Nonce, nil, nil
	f.serve()
	return nil
}

// serve sends what there is and the sink takes: pieces of the snapshot, prepares, a beacon when
// nothing is missing. The source's mutex is held.
func (f *Follower) serve() {
	s := f.source
	for len(f.wanted) > 0 {
		if !f.sendChunk(&f.wanted[0]) {
			return
		}
		f.wanted = f.wanted[1:]
	}
	if f.next == 0 {
		return
	}
	for f.next <= s.recent.last {
		frame := s.recent.at(f.next)
		if frame == nil {
			f.evicted()
			return
		}
		if !f.sink.Send(frame[:wire.HeaderSize], frame[wire.HeaderSize:]) {
			return
		}
		f.next++
	}
	if f.told <= s.recent.last && s.current() {
		f.beacon()
	}
}

// beacon says what is committed; told is one above, so that op 0 counts too.
func (f *Follower) beacon() {
	s := f.source
	s.beats++
	h := wire.CommitHeader{
		Preamble: wire.Preamble{Cluster: s.cluster}, CommitChecksum: s.recent.identity(), TimestampMonotonic: s.beats,
		Commit: s.recent.last, Group: wire.MetadataGroup,
	}
	frame := make([]byte, wire.HeaderSize)
	h.Put(frame)
	if f.sink.Send(frame, nil) {
		f.told = s.recent.last + 1
	}
}

// evicted ends a subscription whose next op is gone: the follower starts anew with a snapshot.
func (f *Follower) evicted() {
	s := f.source
	h := wire.RepairEndHeader{
		Preamble: wire.Preamble{Cluster: s.cluster, Command: wire.CommandRangeEvicted}, Nonce: f.nonce, Op: s.recent.first,
		Group: wire.MetadataGroup,
	}
	frame := make([]byte, wire.HeaderSize)
	h.Put(frame)
	if f.sink.Send(frame, nil) {
		f.next = 0
	}
}
