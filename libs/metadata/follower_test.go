package metadata

import (
	"bytes"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

var testCluster = wire.ClusterID("followed")

// feedSource answers a follower from a log, the way a metadata replica does.
type feedSource struct {
	*log
	oldest  uint64 // first op it still has
	served  uint64
	nonce   wire.U128
	offered []byte
	offers  int
}

// sealed is prepare op of the log as it stands in the feed, chained to the one before.
func (s *feedSource) sealed(op uint64) (wire.PrepareHeader, []byte) {
	parent := wire.U128{}
	var h wire.PrepareHeader
	var body []byte
	for i := range op {
		h, body = s.prepares[i].header, s.prepares[i].body
		h.Parent, h.ChecksumBody, h.Command = parent, wire.SealBody(body), wire.CommandRepairPrepare
		h.Checksum = h.Identity()
		parent = h.Checksum
	}
	return h, body
}

type feedFrame struct {
	header wire.Header
	body   []byte
}

// answer is what the source says to one request.
func (s *feedSource) answer(t *testing.T, q wire.Header) (frames []feedFrame) {
	t.Helper()
	preamble := wire.Preamble{Cluster: testCluster}
	switch q.Command() {
	case wire.CommandRequestStateTransfer:
		var h wire.RequestStateTransferHeader
		if err := h.Decode(q[:]); err != nil {
			t.Fatal(err)
		}
		s.offers++
		s.offered = s.v.EncodeSnapshot(nil)
		return append(frames, s.offer(h.Nonce, wire.Artifact{
			Kind: wire.ArtifactMetadataSnapshot, Frontier: s.v.Op, Len: uint64(len(s.offered)), Checksum: wire.Hash64(s.offered),
		}))
	case wire.CommandRequestStateChunk:
		var h wire.RequestStateChunkHeader
		if err := h.Decode(q[:]); err != nil {
			t.Fatal(err)
		}
		body := s.offered[h.Offset : h.Offset+uint64(h.Len)]
		preamble.Size = uint32(wire.HeaderSize + len(body))
		c := wire.StateChunkHeader{Preamble: preamble, Nonce: h.Nonce, Offset: h.Offset, Group: h.Group}
		f := feedFrame{body: body}
		c.Put(f.header[:])
		return append(frames, f)
	case wire.CommandRequestPrepares:
		var h wire.RequestPreparesHeader
		if err := h.Decode(q[:]); err != nil {
			t.Fatal(err)
		}
		s.nonce, s.served = h.Nonce, h.FromOp-1
		return s.news()
	}
	t.Fatalf("request %v", q.Command())
	return nil
}

func (s *feedSource) offer(nonce wire.U128, a wire.Artifact) feedFrame {
	manifest := wire.AppendManifest(nil, []wire.Artifact{a})
	h := wire.StateTransferTargetHeader{
		Preamble: wire.Preamble{Cluster: testCluster, Size: uint32(wire.HeaderSize + len(manifest))},
		Nonce:    nonce, CommitOp: a.Frontier, Group: wire.MetadataGroup, Available: true, CommitMax: a.Frontier,
	}
	f := feedFrame{body: manifest}
	h.Put(f.header[:])
	return f
}

// news are the prepares that were not served yet, then a beacon.
func (s *feedSource) news() (frames []feedFrame) {
	if s.served+1 < s.oldest {
		end := wire.RepairEndHeader{Preamble: wire.Preamble{Cluster: testCluster, Command: wire.CommandRangeEvicted}, Nonce: s.nonce, Op: s.oldest, Group: wire.MetadataGroup}
		f := feedFrame{}
		end.Put(f.header[:])
		return append(frames, f)
	}
	identity := wire.U128{}
	for s.served < s.v.Op {
		s.served++
		h, body := s.sealed(s.served)
		f := feedFrame{body: body}
		h.Put(f.header[:])
		frames = append(frames, f)
		identity = h.Checksum
	}
	return append(frames, s.beacon(s.v.Op, identity))
}

func (s *feedSource) beacon(commit uint64, identity wire.U128) feedFrame {
	c := wire.CommitHeader{Preamble: wire.Preamble{Cluster: testCluster}, Commit: commit, CommitChecksum: identity, Group: wire.MetadataGroup}
	f := feedFrame{}
	c.Put(f.header[:])
	return f
}

// deliver gives the follower frames and the source its requests, until neither has anything to say.
func (s *feedSource) deliver(t *testing.T, f *Follower, frames ...feedFrame) (sum Progress) {
	t.Helper()
	for len(frames) > 0 {
		asked, progress, err := f.Frame(&frames[0].header, frames[0].body, nil)
		if err != nil {
			t.Fatalf("%v: %v", frames[0].header.Command(), err)
		}
		frames = frames[1:]
		sum.Advanced, sum.Current = sum.Advanced || progress.Advanced, progress.Current
		for _, q := range asked {
			frames = append(frames, s.answer(t, q)...)
		}
	}
	return sum
}

// connect lets the follower begin with the source.
func (s *feedSource) connect(t *testing.T, f *Follower) Progress {
	t.Helper()
	sum := Progress{}
	for _, q := range f.Connected(nil) {
		sum = s.deliver(t, f, s.answer(t, q)...)
	}
	return sum
}

// equal fails the test unless the follower's state is the log's.
func (s *feedSource) equal(t *testing.T, f *Follower) {
	t.Helper()
	if f.View().Op != s.v.Op || !bytes.Equal(f.View().EncodeSnapshot(nil), s.v.EncodeSnapshot(nil)) {
		t.Fatalf("the follower at op %d is not the log at op %d", f.View().Op, s.v.Op)
	}
}

// A follower starts with a state transfer, takes the prepares behind it and needs no other transfer
// when it comes back to where it was.
func TestFollower(t *testing.T) {
	s := &feedSource{log: newLog(t)}
	f := NewFollower(testCluster, Limits{})
	if p := s.connect(t, f); !p.Advanced || !p.Current || s.offers != 1 {
		t.Fatalf("%+v after %d offers", p, s.offers)
	}
	root := s.session(1, RootID)
	root.must(wire.OpCreateStream, createStream("a"))
	before := f.View()
	if p := s.deliver(t, f, s.news()...); !p.Advanced || !p.Current {
		t.Fatalf("%+v", p)
	}
	s.equal(t, f)
	if before.StreamCount() != 0 {
		t.Error("an older view changed")
	}
	root.must(wire.OpCreateTopic, createTopic("a", "t", 3))
	if p := s.connect(t, f); !p.Current || s.offers != 1 {
		t.Fatalf("%+v after %d offers", p, s.offers)
	}
	s.equal(t, f)
	if p := s.deliver(t, f, s.beacon(f.View().Op+1, wire.U128{})); p.Current {
		t.Error("current although an op is missing")
	}
}

// A snapshot larger than what is asked for at a time comes in pieces.
func TestFollowerOfALargeState(t *testing.T) {
	s := &feedSource{log: large(t)}
	f := NewFollower(testCluster, Limits{})
	for _, q := range f.Connected(nil) {
		frames := s.answer(t, q)
		asked, _, err := f.Frame(&frames[0].header, frames[0].body, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.offered) <= 5*chunkSize || len(asked) != chunkWindow {
			t.Fatalf("%d chunks asked for of %d bytes", len(asked), len(s.offered))
		}
		for len(asked) > 0 {
			var more []wire.Header
			for _, one := range s.answer(t, asked[0]) {
				if one.header.Command() != wire.CommandStateChunk {
					continue
				}
				if more, _, err = f.Frame(&one.header, one.body, more); err != nil {
					t.Fatal(err)
				}
			}
			if asked = append(asked[1:], more...); asked[0].Command() == wire.CommandRequestPrepares {
				break
			}
		}
	}
	s.equal(t, f)
}

// Ops that the source no longer has are replaced by a state transfer.
func TestFollowerBehindTheRange(t *testing.T) {
	s := &feedSource{log: newLog(t)}
	f := NewFollower(testCluster, Limits{})
	s.connect(t, f)
	root := s.session(1, RootID)
	root.must(wire.OpCreateStream, createStream("a"))
	s.oldest = 2
	if p := s.deliver(t, f, s.news()...); !p.Advanced || s.offers != 2 {
		t.Fatalf("%+v after %d offers", p, s.offers)
	}
	s.equal(t, f)
}

// A follower whose last op is not the parent of the next one takes the state anew, and so does one
// whose last op is another one than the source's.
func TestFollowerOfAnotherHistory(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		old := &feedSource{log: newLog(t)}
		f := NewFollower(testCluster, Limits{})
		old.connect(t, f)
		old.session(1, RootID).must(wire.OpCreateStream, createStream("lost"))
		old.deliver(t, f, old.news()...)
		s := &feedSource{log: newLog(t)}
		root := s.session(1, RootID)
		root.must(wire.OpCreateStream, createStream("kept"))
		if !quiet {
			root.must(wire.OpCreateStream, createStream("next"))
		}
		identity, _ := s.sealed(s.v.Op)
		for _, q := range f.Connected(nil) {
			frames := s.answer(t, q)
			if quiet {
				frames = []feedFrame{s.beacon(s.v.Op, identity.Checksum)}
			}
			if p := s.deliver(t, f, frames...); !p.Advanced || s.offers != 1 {
				t.Fatalf("quiet %v: %+v after %d offers", quiet, p, s.offers)
			}
		}
		s.equal(t, f)
	}
}

// A snapshot does not carry the identity of its op; the beacon that follows tells it.
func TestFollowerLearnsIdentity(t *testing.T) {
	s := &feedSource{log: newLog(t)}
	s.session(1, RootID)
	f := NewFollower(testCluster, Limits{})
	s.connect(t, f)
	h, _ := s.sealed(1)
	if p := s.deliver(t, f, s.beacon(1, h.Checksum)); !p.Current {
		t.Fatal("not current")
	}
	s.deliver(t, f, s.beacon(1, wire.U128{Lo: 1}))
	if s.offers != 2 {
		t.Errorf("%d offers: another op 1 went unnoticed", s.offers)
	}
}

// What no correct source sends ends the work with it and changes nothing.
func TestFollowerRefuses(t *testing.T) {
	s := &feedSource{log: newLog(t)}
	f := NewFollower(testCluster, Limits{})
	s.connect(t, f)
	root := s.session(1, RootID)
	root.must(wire.OpCreateStream, createStream("a"))
	h1, b1 := s.sealed(1)
	h2, b2 := s.sealed(2)
	frame := func(h wire.PrepareHeader, body []byte) feedFrame {
		f := feedFrame{body: body}
		h.Put(f.header[:])
		return f
	}
	foreign := h1
	foreign.Cluster.Lo++
	foreign.Checksum = foreign.Identity()
	partition := h1
	partition.Group = 1
	partition.Checksum = partition.Identity()
	unsealed := h1
	unsealed.Checksum = wire.U128{}
	for name, bad := range map[string]feedFrame{
		"a gap":             frame(h2, b2),
		"another cluster":   frame(foreign, b1),
		"another group":     frame(partition, b1),
		"no identity":       frame(unsealed, b1),
		"a longer body":     frame(h1, append(b1[:len(b1):len(b1)], 0)),
		"another plane":     {header: wire.Header{60: byte(wire.CommandPing)}},
		"a torn beacon":     {header: wire.Header{60: byte(wire.CommandCommit)}},
		"a torn offer":      {header: wire.Header{60: byte(wire.CommandStateTransferTarget)}},
		"a torn chunk":      {header: wire.Header{60: byte(wire.CommandStateChunk)}},
		"a torn range":      {header: wire.Header{60: byte(wire.CommandRangeEvicted)}},
		"a torn prepare":    {header: wire.Header{60: byte(wire.CommandRepairPrepare), 62: 1}},
		"a foreign beacon":  foreignBeacon(),
		"a reordered start": frame(h2, b2),
	} {
		if _, p, err := f.Frame(&bad.header, bad.body, nil); !errors.Is(err, ErrSource) || p.Advanced {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
	body := bytes.Clone(b2)
	body[len(body)-1] ^= 1
	good := frame(h1, b1)
	if _, _, err := f.Frame(&good.header, good.body, nil); err != nil {
		t.Fatal(err)
	}
	spoiled := frame(h2, body)
	if _, _, err := f.Frame(&spoiled.header, spoiled.body, nil); !errors.Is(err, ErrSource) {
		t.Errorf("a spoiled body: %v", err)
	}
	s.deliver(t, f, frame(h2, b2))
	s.equal(t, f)
}

func foreignBeacon() feedFrame {
	c := wire.CommitHeader{Group: wire.MetadataGroup}
	f := feedFrame{}
	c.Put(f.header[:])
	return f
}

// Offers that are older than the view, absent or not of a snapshot are no reason to go back.
func TestFollowerRefusesOffers(t *testing.T) {
	s := &feedSource{log: newLog(t)}
	f := NewFollower(testCluster, Limits{})
	s.session(1, RootID)
	s.connect(t, f)
	old := f.View()
	nonce := wire.U128{Lo: f.nonce}
	f.phase = phaseAsking
	none := wire.StateTransferTargetHeader{Preamble: wire.Preamble{Cluster: testCluster}, Nonce: nonce, Group: wire.MetadataGroup, Transient: true}
	var absent feedFrame
	none.Put(absent.header[:])
	snapshot := wire.ArtifactMetadataSnapshot
	for name, c := range map[string]struct {
		frame feedFrame
		want  error
	}{
		"absent":   {absent, ErrUnavailable},
		"older":    {s.offer(nonce, wire.Artifact{Kind: snapshot, Frontier: 0, Len: 9}), ErrUnavailable},
		"empty":    {s.offer(nonce, wire.Artifact{Kind: snapshot, Frontier: 9}), ErrSource},
		"too long": {s.offer(nonce, wire.Artifact{Kind: snapshot, Frontier: 9, Len: maxStateSize + 1}), ErrSource},
		"segments": {s.offer(nonce, wire.Artifact{Kind: wire.ArtifactSegmentLog, Frontier: 9, Len: 9}), ErrSource},
	} {
		if _, _, err := f.Frame(&c.frame.header, c.frame.body, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if stale := s.offer(wire.U128{Lo: 99}, wire.Artifact{}); true {
		if _, _, err := f.Frame(&stale.header, stale.body, nil); err != nil {
			t.Errorf("stale: %v", err)
		}
	}
	if f.View() != old {
		t.Error("the view changed")
	}
}
