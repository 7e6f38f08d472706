package metadata

import (
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Errors with which a Follower gives its source up: another one, or the same one later, may do better.
var (
	// ErrSource: the source said what no correct source of this cluster says.
	ErrSource = errors.New("metadata: feed does not fit")
	// ErrUnavailable: the source has no state to offer now.
	ErrUnavailable = errors.New("metadata: no state offered")
)

// Bounds of a state transfer.
const (
	chunkSize    = 1 << 20 // bytes of a chunk asked for
	chunkWindow  = 4       // chunks asked for ahead
	maxStateSize = 1 << 30 // bytes of a snapshot
	openEnd      = ^uint64(0)
)

// Follower keeps a View in step with a metadata group that runs elsewhere. It is the whole protocol of
// the feed as a function of frames: what comes in, what to ask for. It starts with a state transfer,
// goes on with the prepares the source has applied, and falls back to a transfer whenever the two do
// not meet: the range is gone from the source's memory, or the next prepare's parent is not the last
// one applied here (design-arguments.md 6, 28). Views never go back.
//
// A Follower is used by one goroutine. The Views it hands out may go anywhere.
type Follower struct {
	cluster wire.U128
	limits  Limits

	view     *View
	identity wire.U128 // of the prepare at view.Op, zero while unknown: a snapshot does not carry it
	nonce    uint64    // of the latest request; answers to earlier ones are passed over
	phase    phase
	transfer transfer // in phaseTransfer
}

// phase says what a follower waits for.
type phase uint8

const (
	phaseIdle     phase = iota // a source
	phaseAsking                // an offer
	phaseTransfer              // chunks
	phaseFollow                // prepares
)

// transfer is a snapshot on its way.
type transfer struct {
	op       uint64
	size     uint64 // bytes
	checksum uint64
	bytes    []byte
	asked    uint64 // bytes asked for
}

// Progress is what a frame brought.
type Progress struct {
	Advanced bool // View is a newer one
	// Current: the source vouched that View holds everything that was committed a moment ago.
	Current bool
}

// NewFollower follows the metadata group of a cluster. It has no view before the first transfer.
func NewFollower(cluster wire.U128, limits Limits) *Follower {
	return &Follower{cluster: cluster, limits: limits}
}

// View is the newest view, nil before the first state transfer has ended.
func (f *Follower) View() *View { return f.view }

// Connected begins with a source that knows nothing of this follower yet. It appends to out what to
// ask it.
func (f *Follower) Connected(out []wire.Header) []wire.Header {
	if f.view == nil {
		return f.askState(out)
	}
	return f.subscribe(out)
}

// Frame takes a frame of the source, header and body, and appends to out what to ask next. It keeps
// neither. An error, ErrSource or ErrUnavailable, ends the work with this source.
func (f *Follower) Frame(h *wire.Header, body []byte, out []wire.Header) ([]wire.Header, Progress, error) {
	switch h.Command() {
	case wire.CommandRepairPrepare:
		return f.prepare(h, body, out)
	case wire.CommandCommit:
		return f.beacon(h, out)
	case wire.CommandStateTransferTarget:
		return f.offer(h, body, out)
	case wire.CommandStateChunk:
		return f.chunk(h, body, out)
	case wire.CommandRangeEvicted:
		var end wire.RepairEndHeader
		if err := end.Decode(h[:]); err != nil {
			return out, Progress{}, source(err)
		}
		if f.stale(end.Nonce) {
			return out, Progress{}, nil
		}
		return f.askState(out), Progress{}, nil
	case wire.CommandRepairDone: // a subscription goes on
		return out, Progress{}, nil
	}
	return out, Progress{}, source(wire.ErrCommand)
}

func source(err error) error { return fmt.Errorf("%w: %w", ErrSource, err) }

// request numbers the next request.
func (f *Follower) request() wire.U128 {
	f.nonce++
	return wire.U128{Lo: f.nonce}
}

func (f *Follower) stale(nonce wire.U128) bool { return nonce != (wire.U128{Lo: f.nonce}) }

func (f *Follower) preamble() wire.Preamble { return wire.Preamble{Cluster: f.cluster} }

// subscribe asks for every prepare behind the view as it is applied.
func (f *Follower) subscribe(out []wire.Header) []wire.Header {
	f.phase, f.transfer = phaseFollow, transfer{}
	q := wire.RequestPreparesHeader{
		Preamble: f.preamble(), Nonce: f.request(), FromOp: f.view.Op + 1, ToOp: openEnd, Group: wire.MetadataGroup,
	}
	var h wire.Header
	q.Put(h[:])
	return append(out, h)
}

// askState asks for an offer of the whole state.
func (f *Follower) askState(out []wire.Header) []wire.Header {
	f.phase, f.transfer = phaseAsking, transfer{}
	q := wire.RequestStateTransferHeader{Preamble: f.preamble(), Nonce: f.request(), Group: wire.MetadataGroup}
	var h wire.Header
	q.Put(h[:])
	return append(out, h)
}

// prepare applies the op behind the view. Earlier ones were applied already; later ones leave a gap
// that no correct source leaves.
func (f *Follower) prepare(b *wire.Header, body []byte, out []wire.Header) ([]wire.Header, Progress, error) {
	var h wire.PrepareHeader
	if err := h.Decode(b[:]); err != nil {
		return out, Progress{}, source(err)
	}
	if f.phase != phaseFollow || h.Op <= f.view.Op {
		return out, Progress{}, nil
	}
	switch {
	case h.Group != wire.MetadataGroup || h.Cluster != f.cluster || h.BodySize() != len(body):
		return out, Progress{}, source(wire.ErrField)
	case h.Op != f.view.Op+1:
		return out, Progress{}, source(wire.ErrOrder)
	}
	if err := h.Verify(); err != nil {
		return out, Progress{}, source(err)
	}
	if h.ChecksumBody != wire.SealBody(body) {
		return out, Progress{}, source(wire.ErrSeal)
	}
	if !f.identity.IsZero() && h.Parent != f.identity {
		return f.askState(out), Progress{}, nil
	}
	f.view, _ = f.view.Apply(&h, body)
	f.identity = h.Checksum
	return out, Progress{Advanced: true}, nil
}

// beacon takes the source's word for what is committed. It names the identity of that op, so that a
// follower of another history is found out even when nothing happens.
func (f *Follower) beacon(b *wire.Header, out []wire.Header) ([]wire.Header, Progress, error) {
	var h wire.CommitHeader
	if err := h.Decode(b[:]); err != nil {
		return out, Progress{}, source(err)
	}
	switch {
	case h.Group != wire.MetadataGroup || h.Cluster != f.cluster:
		return out, Progress{}, source(wire.ErrField)
	case f.phase != phaseFollow || h.Commit > f.view.Op:
		return out, Progress{}, nil
	case h.Commit == f.view.Op && !h.CommitChecksum.IsZero():
		if !f.identity.IsZero() && f.identity != h.CommitChecksum {
			return f.askState(out), Progress{}, nil
		}
		f.identity = h.CommitChecksum
	}
	return out, Progress{Current: true}, nil
}

// offer begins a transfer. An older state than the view's is none: views do not go back.
func (f *Follower) offer(b *wire.Header, body []byte, out []wire.Header) ([]wire.Header, Progress, error) {
	var h wire.StateTransferTargetHeader
	if err := h.Decode(b[:]); err != nil {
		return out, Progress{}, source(err)
	}
	switch {
	case f.phase != phaseAsking || f.stale(h.Nonce):
		return out, Progress{}, nil
	case h.Group != wire.MetadataGroup || h.Cluster != f.cluster:
		return out, Progress{}, source(wire.ErrField)
	case !h.Available || f.view != nil && h.CommitOp < f.view.Op:
		return out, Progress{}, ErrUnavailable
	}
	list, err := wire.DecodeManifest(body)
	switch {
	case err != nil:
		return out, Progress{}, source(err)
	case len(list) != 1 || list[0].Kind != wire.ArtifactMetadataSnapshot || list[0].Frontier != h.CommitOp:
		return out, Progress{}, source(wire.ErrKind)
	case list[0].Len == 0 || list[0].Len > maxStateSize:
		return out, Progress{}, source(wire.ErrSize)
	}
	f.phase, f.transfer = phaseTransfer, transfer{op: h.CommitOp, size: list[0].Len, checksum: list[0].Checksum}
	for range chunkWindow {
		out = f.askChunk(out)
	}
	return out, Progress{}, nil
}

// askChunk asks for the next piece that was not asked for.
func (f *Follower) askChunk(out []wire.Header) []wire.Header {
	t := &f.transfer
	n := min(t.size-t.asked, chunkSize)
	if n == 0 {
		return out
	}
	q := wire.RequestStateChunkHeader{
		Preamble: f.preamble(), Nonce: wire.U128{Lo: f.nonce}, Offset: t.asked, Group: wire.MetadataGroup, Len: uint32(n),
	}
	t.asked += n
	var h wire.Header
	q.Put(h[:])
	return append(out, h)
}

// chunk takes a piece of the snapshot. Pieces come in the order they were asked for.
func (f *Follower) chunk(b *wire.Header, body []byte, out []wire.Header) ([]wire.Header, Progress, error) {
	var h wire.StateChunkHeader
	if err := h.Decode(b[:]); err != nil {
		return out, Progress{}, source(err)
	}
	t := &f.transfer
	if f.phase != phaseTransfer || f.stale(h.Nonce) {
		return out, Progress{}, nil
	}
	have := uint64(len(t.bytes))
	if h.Offset != have || h.Artifact != 0 || len(body) == 0 || have+uint64(len(body)) > t.asked {
		return out, Progress{}, source(wire.ErrOrder)
	}
	t.bytes = append(t.bytes, body...)
	if uint64(len(t.bytes)) < t.size {
		return f.askChunk(out), Progress{}, nil
	}
	if wire.Hash64(t.bytes) != t.checksum {
		return out, Progress{}, source(wire.ErrTrailer)
	}
	v, err := DecodeSnapshot(t.bytes, f.limits)
	switch {
	case err != nil:
		return out, Progress{}, source(err)
	case v.Op != t.op:
		return out, Progress{}, source(wire.ErrField)
	}
	f.view, f.identity = v, wire.U128{}
	return f.subscribe(out), Progress{Advanced: true}, nil
}
