package feed

import (
	"fmt"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// offer is a snapshot that followers start from, with everything that has to be said about it.
type offer struct {
	op       uint64
	bytes    []byte
	manifest []byte

	// Of the source's newest offer, under building.
	used  bool // since the last beat
	since time.Time
}

// Transfer answers a request for the state with an offer. It may take as long as a snapshot of the whole
// metadata does. An error says what Subscribe's does.
func (f *Follower) Transfer(q *wire.RequestStateTransferHeader) error {
	if q.Group != wire.MetadataGroup {
		return fmt.Errorf("feed: state transfer: %w", wire.ErrField)
	}
	o := f.source.newest()
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.next, f.nonce, f.offer, f.wanted = 0, q.Nonce, o, nil
	h := wire.StateTransferTargetHeader{
		Preamble: wire.Preamble{Cluster: f.source.cluster, Size: uint32(wire.HeaderSize + len(o.manifest))},
		Nonce:    q.Nonce, CommitOp: o.op, Group: wire.MetadataGroup, Available: true, CommitMax: max(o.op, f.source.recent.last),
	}
	frame := make([]byte, wire.HeaderSize)
	h.Put(frame)
	if !f.sink.Send(frame, o.manifest) {
		return errSlow
	}
	return nil
}

// errSlow: a follower asks for more and does not read what it was sent.
var errSlow = fmt.Errorf("feed: no room for an answer")

// newest is a snapshot from which the range of recent ops goes on: the last one as long as it is good,
// else one of the newest view.
func (s *Source) newest() *offer {
	s.building.Lock()
	defer s.building.Unlock()
	if o := s.offer; o != nil && s.reaches(o.op) {
		o.used = true
		return o
	}
	v := s.view()
	o := &offer{op: v.Op, bytes: v.EncodeSnapshot(nil), used: true}
	o.manifest = wire.AppendManifest(nil, []wire.Artifact{{
		Kind: wire.ArtifactMetadataSnapshot, Frontier: o.op, Len: uint64(len(o.bytes)), Checksum: wire.Hash64(o.bytes),
	}})
	s.offer = o
	return o
}

// reaches reports whether a snapshot at op can be followed, and is not much older than what is there.
func (s *Source) reaches(op uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return op+1 >= s.recent.first && s.recent.last-op <= offerAge
}

// Chunk sends a piece of the offer the follower was made. An error says what Subscribe's does.
func (f *Follower) Chunk(q *wire.RequestStateChunkHeader) error {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	if f.offer == nil || q.Nonce != f.nonce {
		return nil // of a transfer that was given up
	}
	end := q.Offset + uint64(q.Len)
	if q.Artifact != 0 || q.Len > maxChunk || end < q.Offset || end > uint64(len(f.offer.bytes)) || len(f.wanted) == maxWanted {
		return fmt.Errorf("feed: chunk: %w", wire.ErrField)
	}
	f.wanted = append(f.wanted, *q)
	f.serve()
	return nil
}

func (f *Follower) sendChunk(q *wire.RequestStateChunkHeader) bool {
	body := f.offer.bytes[q.Offset : q.Offset+uint64(q.Len)]
	h := wire.StateChunkHeader{
		Preamble: wire.Preamble{Cluster: f.source.cluster, Size: uint32(wire.HeaderSize + len(body))},
		Nonce:    q.Nonce, Offset: q.Offset, Group: wire.MetadataGroup,
	}
	frame := make([]byte, wire.HeaderSize)
	h.Put(frame)
	return f.sink.Send(frame, body)
}
