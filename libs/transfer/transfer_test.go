package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

var cluster = wire.ClusterID("transfer")

// world is a member that has a state, node 1, and one that lacks it, node 2, with a network between.
type world struct {
	source *Source
	client *Client
	offer  func() *Offer
	mu     sync.Mutex
	lose   func(h *wire.Header) bool // runs under mu: both members send
	spoil  func(h *wire.Header, body []byte)
	frames chan func()
	gone   map[uint64]bool // files that can not be read any more, by base
}

func newWorld(t *testing.T) *world {
	w := &world{lose: func(*wire.Header) bool { return false }, spoil: func(*wire.Header, []byte) {}, frames: make(chan func(), 1000), gone: map[uint64]bool{}}
	w.source = NewSource(SourceConfig{
		Cluster: cluster,
		Build:   func(uint64, uint8) (*Offer, uint8) { return w.offer(), 0 },
		Send: func(node uint8, h *wire.Header, body []byte) bool {
			if node != 2 || w.lost(h) {
				return false
			}
			header, body := *h, bytes.Clone(body)
			w.spoil(&header, body)
			w.frames <- func() { w.client.Frame(1, &header, body) }
			return true
		},
	})
	w.client = NewClient(ClientConfig{Cluster: cluster, Send: func(_ uint8, h *wire.Header, _ []byte) bool {
		if w.lost(h) {
			return false
		}
		header := *h
		w.frames <- func() { w.serve(t, &header) }
		return true
	}})
	go func() {
		for deliver := range w.frames {
			deliver()
		}
	}()
	t.Cleanup(func() { w.source.Close(); close(w.frames) })
	return w
}

func (w *world) lost(h *wire.Header) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lose(h)
}

func (w *world) serve(t *testing.T, h *wire.Header) {
	switch h.Command() {
	case wire.CommandRequestStateTransfer:
		var q wire.RequestStateTransferHeader
		if err := q.Decode(h[:]); err != nil {
			t.Error(err)
		}
		w.source.Ask(2, &q)
	case wire.CommandRequestStateChunk:
		var q wire.RequestStateChunkHeader
		if err := q.Decode(h[:]); err != nil {
			t.Error(err)
		}
		w.source.Chunk(2, &q)
	}
}

const group = 7

func head(op uint64) wire.PrepareHeader {
	h := wire.PrepareHeader{Cluster: cluster, Size: wire.HeaderSize, Command: wire.CommandPrepare, Op: op, Group: group, Operation: wire.OpSendMessages}
	h.Checksum = h.Identity()
	return h
}

// readable is a file of an offer, until it is gone.
type readable struct {
	io.ReaderAt
	gone func() bool
}

func (r readable) ReadAt(p []byte, at int64) (int, error) {
	if r.gone() {
		return 0, io.ErrUnexpectedEOF
	}
	return r.ReaderAt.ReadAt(p, at)
}

// content is deterministic bytes of a segment.
func content(base uint64, n int) []byte {
	b := make([]byte, n)
	random := rand.New(rand.NewPCG(base, 1))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// state is an offer with segments of the given sizes, whose bases are 0, 100, 200 and so on.
func (w *world) state(op uint64, sizes ...int) func() *Offer {
	return func() *Offer {
		o := &Offer{Head: head(op), State: content(99, 700<<10)}
		for i, n := range sizes {
			base := uint64(100 * i)
			o.Files = append(o.Files, File{
				Base: base, Len: int64(n),
				ReaderAt: readable{bytes.NewReader(append(content(base, n), "tail that is not offered"...)), func() bool { return w.gone[base] }},
			})
		}
		return o
	}
}

// disk is a Store in memory.
type disk struct{ files, open map[uint64]*bytes.Buffer }

func newDisk() *disk { return &disk{map[uint64]*bytes.Buffer{}, map[uint64]*bytes.Buffer{}} }

type diskFile struct {
	*bytes.Buffer
	disk *disk
	base uint64
}

func (f diskFile) Close() error { f.disk.files[f.base] = f.Buffer; return nil }

func (d *disk) Create(base uint64) (Writer, error) {
	d.open[base] = &bytes.Buffer{}
	return diskFile{d.open[base], d, base}, nil
}

var sizes = []int{3 << 20, 0, chunkSize, 1, 2*chunkSize + 17}

func (w *world) fetch(t *testing.T, above uint64) (*Fetched, *disk, error) {
	t.Helper()
	d := newDisk()
	got, err := w.client.Fetch(context.Background(), Want{Node: 1, Group: group, Self: 1, Above: above, Store: d})
	return got, d, err
}

func (w *world) mustFetch(t *testing.T) {
	t.Helper()
	got, d, err := w.fetch(t, 40)
	if err != nil {
		t.Fatal(err)
	}
	if got.Head != head(42) || !bytes.Equal(got.State, content(99, 700<<10)) {
		t.Errorf("head %+v, state of %d bytes", got.Head, len(got.State))
	}
	for i, n := range sizes {
		base := uint64(100 * i)
		if f := d.files[base]; f == nil || !bytes.Equal(f.Bytes(), content(base, n)) {
			t.Errorf("segment %d is not what was offered", base)
		}
	}
	if len(d.files) != len(sizes) {
		t.Errorf("%d files", len(d.files))
	}
}

func TestFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.offer = w.state(42, sizes...)
		started := time.Now()
		w.mustFetch(t)
		if took := time.Since(started); took > 0 {
			t.Errorf("a fetch without losses waited %v", took)
		}
	})
}

// TestLoss drops frames of both directions: everything is asked for again.
func TestLoss(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.offer = w.state(42, sizes...)
			random := rand.New(rand.NewPCG(seed, 3))
			w.lose = func(*wire.Header) bool { return random.IntN(20) == 0 }
			w.mustFetch(t)
		})
	}
}

// TestWrongBytes: a state that is not what the manifest says is never handed over.
func TestWrongBytes(t *testing.T) {
	for name, spoil := range map[string]func(h *wire.Header, body []byte){
		"segment":  func(h *wire.Header, b []byte) { spoilChunk(h, b, 3) },
		"image":    func(h *wire.Header, b []byte) { spoilChunk(h, b, 0) },
		"manifest": func(h *wire.Header, b []byte) { spoilManifest(h, b) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.offer, w.spoil = w.state(42, sizes...), spoil
				if _, _, err := w.fetch(t, 40); !errors.Is(err, ErrState) {
					t.Error(err)
				}
			})
		})
	}
}

func spoilChunk(h *wire.Header, b []byte, artifact uint32) {
	var c wire.StateChunkHeader
	if c.Decode(h[:]) == nil && c.Artifact == artifact {
		b[0] ^= 1
	}
}

func spoilManifest(h *wire.Header, b []byte) {
	if h.Command() == wire.CommandStateTransferTarget && len(b) > 20 {
		b[20] ^= 1
	}
}

// TestRefusals: a state that is too old, of another group, or not there at all.
func TestRefusals(t *testing.T) {
	w := &world{}
	for name, c := range map[string]struct {
		offer func() *Offer
		want  error
	}{
		"too old":       {w.state(39), ErrState},
		"another group": {func() *Offer { h := head(42); h.Group++; h.Checksum = h.Identity(); return &Offer{Head: h} }, ErrState},
		"none":          {func() *Offer { return nil }, ErrUnavailable},
		"file fails": {func() *Offer {
			return &Offer{Head: head(42), Files: []File{{Len: 5, ReaderAt: bytes.NewReader(nil)}}}
		}, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.offer = c.offer
				if _, _, err := w.fetch(t, 40); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		})
	}
}

// TestSlowOffer: a state of many files takes a while to hash. The peer that works on it says so, and is not
// given up.
func TestSlowOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ready, built := w.state(42, sizes...), 0
		w.offer = func() *Offer {
			built++
			time.Sleep(time.Minute)
			return ready()
		}
		w.mustFetch(t)
		if built != 1 {
			t.Errorf("built %d times", built)
		}
	})
}

// TestSilence: a peer that answers nothing is given up in bounded time, and a fetch that is called off
// ends at once.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.offer, w.lose = w.state(42), func(*wire.Header) bool { return true }
		started := time.Now()
		if _, _, err := w.fetch(t, 40); !errors.Is(err, ErrSilent) || time.Since(started) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(started))
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := w.client.Fetch(ctx, Want{Node: 1, Group: group, Self: 1, Above: 40, Store: newDisk()}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestStopsInTheMiddle: the peer dies while pieces are on their way.
func TestStopsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.offer = w.state(42, sizes...)
		served := 0
		w.lose = func(h *wire.Header) bool {
			if h.Command() == wire.CommandStateChunk {
				served++
			}
			return served > 5
		}
		if _, _, err := w.fetch(t, 40); !errors.Is(err, ErrSilent) {
			t.Error(err)
		}
	})
}

// TestOffersAreLetGo: an offer nobody asks for any more is forgotten; who asks for a piece of it is told.
func TestOffersAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.offer = w.state(42, sizes...)
		w.mustFetch(t)
		w.source.Tick(time.Now().Add(offerIdle / 2))
		if len(w.source.offers) != 1 {
			t.Error("gone while it may still be used")
		}
		w.source.Tick(time.Now().Add(2 * offerIdle))
		if len(w.source.offers) != 0 {
			t.Error("kept for nobody")
		}
	})
}

// TestWithdrawn: a file that goes away while it is fetched ends the fetch at once, not after a silence.
func TestWithdrawn(t *testing.T) {
	for name, strike := range map[string]func(w *world){
		"a file is trimmed":         func(w *world) { w.gone[200] = true },
		"the offer is of last life": func(w *world) { w.source.Tick(time.Now().Add(2 * offerIdle)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.offer = w.state(42, sizes...)
				var served atomic.Int32
				struck := false
				w.lose = func(h *wire.Header) bool {
					if h.Command() == wire.CommandRequestStateChunk {
						served.Add(1)
					}
					return false
				}
				w.spoil = func(h *wire.Header, _ []byte) {
					if h.Command() == wire.CommandStateChunk && served.Load() > 5 && !struck {
						struck = true
						strike(w)
					}
				}
				started := time.Now()
				if _, _, err := w.fetch(t, 40); !errors.Is(err, ErrWithdrawn) || time.Since(started) > 0 {
					t.Errorf("%v after %v", err, time.Since(started))
				}
			})
		})
	}
}
