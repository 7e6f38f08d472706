package transfer

import (
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Bounds of what a source keeps for others.
const (
	maxBuilding = 2                // offers being built at once
	maxOffers   = 64               // kept at once
	offerIdle   = 10 * time.Second // before an offer nobody asks for goes: longer than a fetch waits for an answer
)

// SourceConfig is what a Source stands on.
type SourceConfig struct {
	Cluster wire.U128
	// Build makes an offer of a hosted group for another node, with the own member index, and decides whether that
	// node may have it. It may take long. A nil offer says that there is none now.
	Build func(group uint64, node uint8) (o *Offer, self uint8)
	// Send queues a frame for a node and never blocks. The body is not changed afterwards.
	Send func(node uint8, h *wire.Header, body []byte) bool
}

// Source offers the states of this process's groups. Its methods may be called on any goroutine.
type Source struct {
	config SourceConfig

	mu       sync.Mutex
	building int
	offers   map[key]*served
	closed   bool
	working  sync.WaitGroup
}

// key is one request for a state: a repeated one finds the same offer.
type key struct {
	node  uint8
	group uint64
	nonce wire.U128
}

// served is an offer, nil artifacts while it is being built.
type served struct {
	offer     *Offer
	artifacts *artifacts
	self      uint8
	used      time.Time
	reading   sync.Mutex // one piece at a time: what is read is in memory until it is sent
}

// NewSource returns a source without offers.
func NewSource(config SourceConfig) *Source {
	return &Source{config: config, offers: make(map[key]*served)}
}

// Ask answers a request for a state.
func (s *Source) Ask(node uint8, q *wire.RequestStateTransferHeader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{node, q.Group, q.Nonce}
	o := s.offers[k]
	switch {
	case s.closed:
	case o != nil && o.artifacts != nil:
		s.offer(k, o)
	case o != nil: // being built
		s.decline(k, true)
	case s.building >= maxBuilding || len(s.offers) >= maxOffers:
		s.decline(k, true)
	default:
		s.building++
		s.offers[k] = &served{}
		s.working.Add(1)
		go s.build(k)
	}
}

func (s *Source) build(k key) {
	defer s.working.Done()
	o, self := s.config.Build(k.group, k.node)
	var list *artifacts
	if o != nil {
		var err error
		if list, err = o.artifacts(); err != nil {
			o = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.building--
	if o == nil || s.closed {
		delete(s.offers, k)
		s.decline(k, s.closed)
		return
	}
	kept := s.offers[k]
	kept.offer, kept.artifacts, kept.self, kept.used = o, list, self, time.Now()
	s.offer(k, kept)
}

func (s *Source) preamble(c wire.Command, self uint8, body int) wire.Preamble {
	return wire.Preamble{Cluster: s.config.Cluster, Command: c, Replica: self, Size: uint32(wire.HeaderSize + body)}
}

func (s *Source) offer(k key, o *served) {
	manifest := wire.AppendManifest(nil, o.artifacts.list)
	target := wire.StateTransferTargetHeader{
		Preamble: s.preamble(wire.CommandStateTransferTarget, o.self, len(manifest)),
		Nonce:    k.nonce, Group: k.group, CommitOp: o.offer.Head.Op, CommitMax: o.offer.Head.Op, Available: true,
	}
	var h wire.Header
	target.Put(h[:])
	s.config.Send(k.node, &h, manifest)
}

func (s *Source) decline(k key, transient bool) {
	target := wire.StateTransferTargetHeader{
		Preamble: s.preamble(wire.CommandStateTransferTarget, 0, 0), Nonce: k.nonce, Group: k.group, Transient: transient,
	}
	var h wire.Header
	target.Put(h[:])
	s.config.Send(k.node, &h, nil)
}

// Chunk sends a piece of an offer. It reads files: not on a goroutine that must not wait.
func (s *Source) Chunk(node uint8, q *wire.RequestStateChunkHeader) {
	s.mu.Lock()
	k := key{node, q.Group, q.Nonce}
	o := s.offers[k]
	switch {
	case s.closed || o != nil && o.artifacts == nil:
		s.mu.Unlock()
		return
	case o == nil: // of another life, or given up
		s.decline(k, true)
		s.mu.Unlock()
		return
	}
	o.used = time.Now()
	s.working.Add(1)
	s.mu.Unlock()
	defer s.working.Done()
	o.reading.Lock()
	defer o.reading.Unlock()
	b, err := o.artifacts.read(q.Artifact, q.Offset, q.Len)
	if err != nil {
		s.withdraw(k)
		return
	}
	chunk := wire.StateChunkHeader{
		Preamble: s.preamble(wire.CommandStateChunk, o.self, len(b)), Nonce: q.Nonce, Offset: q.Offset, Group: q.Group, Artifact: q.Artifact,
	}
	var h wire.Header
	chunk.Put(h[:])
	s.config.Send(node, &h, b)
}

// withdraw gives an offer up that can not be read any more: a file of it was trimmed, or is damaged.
func (s *Source) withdraw(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.offers, k)
	s.decline(k, true)
}

// Tick lets go of the offers nobody asks for any more; due every few seconds.
func (s *Source) Tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, o := range s.offers {
		if o.artifacts != nil && now.Sub(o.used) > offerIdle {
			delete(s.offers, k)
		}
	}
}

// Close gives everything up.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.working.Wait()
}
