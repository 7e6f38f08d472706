package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Time limits of a transfer.
const (
	askAgain  = time.Second // without an answer
	maxStalls = 5           // silences in a row before the peer is given up
	maxWaits  = 1200        // answers that a state is not ready yet: terabytes may have to be hashed
)

// Errors of Fetch.
var (
	// ErrUnavailable: the peer has no state to offer.
	ErrUnavailable = errors.New("transfer: no state is offered")
	// ErrSilent: the peer does not answer any more.
	ErrSilent = errors.New("transfer: the peer is silent")
	// ErrBehind: what is offered does not reach what is needed.
	ErrBehind = fmt.Errorf("%w: the peer is behind", ErrState)
	// ErrWithdrawn: the peer gave its offer up.
	ErrWithdrawn = errors.New("transfer: the offer was withdrawn")
	// ErrState: what was offered is not what it says, or not what is needed.
	ErrState = errors.New("transfer: the state is not usable")
)

// Store takes the files of a state.
type Store interface {
	// Create makes the file of a segment; it is written front to back, once.
	Create(base uint64) (Writer, error)
}

// Writer is a file being received. Close makes it durable.
type Writer interface {
	Write(p []byte) (int, error)
	Close() error
}

// Resumer is a Store that may hold the front of a file already, from a fetch before.
type Resumer interface {
	Store
	// Resume is Create for the file of a segment that is to have length bytes: it is written from have on. hash has
	// been fed what is before. What turns out not to be the front of the file is for the Store to drop.
	Resume(base, length uint64) (w Writer, have uint64, hash *xxh3.Hasher, err error)
}

// Fetched is a state that was received: its files are in the Store, durable.
type Fetched struct {
	Head  wire.PrepareHeader
	State []byte
}

// ClientConfig is what a Client stands on.
type ClientConfig struct {
	Cluster wire.U128
	// Send queues a frame for a node and never blocks.
	Send func(node uint8, h *wire.Header, body []byte) bool
}

// Client fetches states for this process's groups. Its methods may be called on any goroutine.
type Client struct {
	config ClientConfig

	mu      sync.Mutex
	running map[wire.U128]*fetch // by nonce
}

// NewClient returns a client that fetches nothing yet.
func NewClient(config ClientConfig) *Client {
	return &Client{config: config, running: make(map[wire.U128]*fetch)}
}

// fetch is one transfer on its way.
type fetch struct {
	client *Client
	node   uint8
	group  uint64
	want   Want
	nonce  wire.U128
	frames chan frame
}

// frame is an answer; body belongs to the receiver.
type frame struct {
	header wire.Header
	body   []byte
}

// Frame passes an answer on. It copies body and never blocks: what comes too fast is asked for again.
func (c *Client) Frame(node uint8, h *wire.Header, body []byte) {
	var nonce wire.U128
	switch h.Command() {
	case wire.CommandStateTransferTarget, wire.CommandStateChunk:
		nonce = wire.DecodeU128(h[128:])
	default:
		return
	}
	c.mu.Lock()
	f := c.running[nonce]
	c.mu.Unlock()
	if f == nil || f.node != node {
		return
	}
	select {
	case f.frames <- frame{*h, append([]byte(nil), body...)}:
	default:
	}
}

// Want says which state is fetched, and from whom.
type Want struct {
	Node  uint8
	Group uint64
	Self  uint8  // own member index
	Above uint64 // the state must reach this op
	Store Store
	Files func(base uint64) bool // which are fetched; nil: all
	// Pace, if set, is called before so many bytes are asked for, and returns when they may be.
	Pace func(ctx context.Context, bytes int) error
	// Size, if set, learns how many bytes the state has.
	Size func(bytes uint64)
}

// Fetch brings the state of a group from another node.
func (c *Client) Fetch(ctx context.Context, w Want) (*Fetched, error) {
	var random [16]byte
	_, _ = rand.Read(random[:])
	f := &fetch{
		client: c, want: w, node: w.Node, group: w.Group, nonce: wire.DecodeU128(random[:]),
		frames: make(chan frame, 2*window),
	}
	c.mu.Lock()
	c.running[f.nonce] = f
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.running, f.nonce)
		c.mu.Unlock()
	}()
	list, err := f.offer(ctx)
	if err != nil {
		return nil, err
	}
	if w.Size != nil {
		total := uint64(0)
		for i := range list {
			total += list[i].Len
		}
		w.Size(total)
	}
	return f.artifacts(ctx, list)
}

func (f *fetch) preamble(c wire.Command) wire.Preamble {
	return wire.Preamble{Cluster: f.client.config.Cluster, Command: c, Replica: f.want.Self, Size: wire.HeaderSize}
}

// offer asks until there is a manifest.
func (f *fetch) offer(ctx context.Context) ([]wire.Artifact, error) {
	q := wire.RequestStateTransferHeader{Preamble: f.preamble(wire.CommandRequestStateTransfer), Nonce: f.nonce, Group: f.group}
	var h wire.Header
	q.Put(h[:])
	for stalls, waits := 0, 0; waits < maxWaits; {
		f.client.config.Send(f.node, &h, nil)
		answer, err := f.next(ctx)
		if errors.Is(err, ErrSilent) && stalls < maxStalls-1 {
			stalls++
			continue
		}
		if err != nil {
			return nil, err
		}
		stalls = 0
		var target wire.StateTransferTargetHeader
		switch err := target.Decode(answer.header[:]); {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		case !target.Available && !target.Transient:
			return nil, ErrUnavailable
		case !target.Available:
			waits++
			if err := pause(ctx, askAgain); err != nil {
				return nil, err
			}
			continue
		case target.CommitOp < f.want.Above:
			return nil, fmt.Errorf("%w: it ends at op %d, %d is needed", ErrBehind, target.CommitOp, f.want.Above)
		}
		list, err := wire.DecodeManifest(answer.body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		return list, nil
	}
	return nil, ErrUnavailable
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// next is the next answer, ErrSilent when there is none for a while.
func (f *fetch) next(ctx context.Context) (frame, error) {
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return frame{}, ctx.Err()
	case <-timer.C:
		return frame{}, ErrSilent
	case answer := <-f.frames:
		return answer, nil
	}
}

// artifacts fetches everything the manifest lists: files first, the image last.
func (f *fetch) artifacts(ctx context.Context, list []wire.Artifact) (*Fetched, error) {
	if len(list) == 0 || list[0].Len < wire.HeaderSize || list[0].Len > maxState {
		return nil, fmt.Errorf("%w: no image", ErrState)
	}
	for i, a := range list[1:] {
		if a.Kind != wire.ArtifactSegmentLog {
			return nil, fmt.Errorf("%w: artifact kind %d", ErrState, a.Kind)
		}
		if f.want.Files != nil && !f.want.Files(a.Frontier) {
			continue
		}
		if err := f.file(ctx, uint32(i+1), a); err != nil {
			return nil, err
		}
	}
	image := &memory{bytes: make([]byte, 0, list[0].Len)}
	if err := f.artifact(ctx, 0, list[0], image, 0, xxh3.New()); err != nil {
		return nil, err
	}
	out := &Fetched{State: image.bytes[wire.HeaderSize:]}
	if err := out.Head.Decode(image.bytes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if out.Head.Group != f.group || out.Head.Op < f.want.Above {
		return nil, fmt.Errorf("%w: group %#x, op %d", ErrState, out.Head.Group, out.Head.Op)
	}
	return out, nil
}

func (f *fetch) file(ctx context.Context, index uint32, a wire.Artifact) error {
	have, hash := uint64(0), xxh3.New()
	var w Writer
	var err error
	store := f.want.Store
	if resumer, ok := store.(Resumer); ok {
		w, have, hash, err = resumer.Resume(a.Frontier, a.Len)
	} else {
		w, err = store.Create(a.Frontier)
	}
	if err != nil {
		return err
	}
	err = f.artifact(ctx, index, a, w, have, hash)
	if closing := w.Close(); err == nil {
		err = closing
	}
	return err
}

// memory is an artifact that is not a file.
type memory struct{ bytes []byte }

func (m *memory) Write(p []byte) (int, error) {
	m.bytes = append(m.bytes, p...)
	return len(p), nil
}

// artifact asks for one artifact from have on, a few pieces ahead, and writes it in order. hash was fed what is before.
func (f *fetch) artifact(ctx context.Context, index uint32, a wire.Artifact, w io.Writer, have uint64, hash *xxh3.Hasher) error {
	asked, stalls := have, 0
	for have < a.Len {
		for asked < a.Len && asked < have+window*chunkSize {
			if f.want.Pace != nil {
				if err := f.want.Pace(ctx, int(min(chunkSize, a.Len-asked))); err != nil {
					return err
				}
			}
			f.askChunk(index, asked)
			asked += chunkSize
		}
		answer, err := f.next(ctx)
		if errors.Is(err, ErrSilent) {
			if stalls++; stalls > maxStalls {
				return err
			}
			asked = have // lost: from here on again
			continue
		}
		if err != nil {
			return err
		}
		if withdrawn(&answer.header) {
			return ErrWithdrawn
		}
		var h wire.StateChunkHeader
		if h.Decode(answer.header[:]) != nil || h.Group != f.group || h.Artifact != index || h.Offset != have {
			continue // of an earlier question
		}
		if len(answer.body) == 0 || uint64(len(answer.body)) > a.Len-have {
			return fmt.Errorf("%w: a piece of %d bytes at %d of %d", ErrState, len(answer.body), have, a.Len)
		}
		stalls = 0
		_, _ = hash.Write(answer.body)
		if _, err := w.Write(answer.body); err != nil {
			return err
		}
		have += uint64(len(answer.body))
	}
	if hash.Sum64() != a.Checksum {
		return fmt.Errorf("%w: artifact %d does not match its checksum", ErrState, index)
	}
	return nil
}

func withdrawn(h *wire.Header) bool {
	var target wire.StateTransferTargetHeader
	return h.Command() == wire.CommandStateTransferTarget && target.Decode(h[:]) == nil && !target.Available
}

func (f *fetch) askChunk(index uint32, offset uint64) {
	q := wire.RequestStateChunkHeader{
		Preamble: f.preamble(wire.CommandRequestStateChunk), Nonce: f.nonce, Group: f.group,
		Artifact: index, Offset: offset, Len: chunkSize,
	}
	var h wire.Header
	q.Put(h[:])
	f.client.config.Send(f.node, &h, nil)
}
