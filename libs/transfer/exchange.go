package transfer

import (
	"context"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Bounds of an exchange.
const (
	piecesWaiting = 64
	offersEvery   = 5 * time.Second // between looks for offers nobody needs any more
	firstDelay    = 500 * time.Millisecond
	lastDelay     = 10 * time.Second // between two attempts for a group
)

// Config is what an Exchange stands on.
type Config struct {
	Cluster wire.U128
	Peers   loop.Peers
	// Build makes an offer of a hosted group for another node, see SourceConfig.
	Build func(group uint64, node uint8) (o *Offer, self uint8)
	// Fetches run at once; more wait.
	Fetches int
}

// Exchange is both sides of one process, a Source and a Client, and the goroutines they need: no loop waits for a
// file or for a peer.
type Exchange struct {
	source *Source
	client *Client
	pieces chan func() // to be read and sent
	room   chan struct{}

	stop context.Context
	end  func()
	gone sync.WaitGroup

	mu     sync.Mutex
	failed map[uint64]time.Duration // by group: how long the next attempt waits
}

// NewExchange returns an exchange that serves until Close.
func NewExchange(config Config) *Exchange {
	x := &Exchange{
		pieces: make(chan func(), piecesWaiting), room: make(chan struct{}, config.Fetches), failed: map[uint64]time.Duration{},
	}
	x.stop, x.end = context.WithCancel(context.Background())
	send := func(node uint8, h *wire.Header, body []byte) bool {
		group, _ := wire.GroupOf(h)
		return config.Peers.Send(node, loop.Frame{Group: group, Header: h, Body: body})
	}
	x.source = NewSource(SourceConfig{Cluster: config.Cluster, Build: config.Build, Send: send})
	x.client = NewClient(ClientConfig{Cluster: config.Cluster, Send: send})
	x.gone.Go(x.serve)
	return x
}

// Close ends every transfer.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.end()
	x.mu.Unlock()
	x.gone.Wait()
	x.source.Close()
}

// serve reads the pieces others asked for, and lets go of what they do not ask for any more.
func (x *Exchange) serve() {
	idle := time.NewTicker(offersEvery)
	defer idle.Stop()
	for {
		select {
		case read := <-x.pieces:
			read()
		case now := <-idle.C:
			x.source.Tick(now)
		case <-x.stop.Done():
			return
		}
	}
}

// Frame takes a frame of a transfer (22 to 25), and owns it. Called in a turn: nothing is read here.
func (x *Exchange) Frame(f *loop.PeerFrame) {
	defer f.Release()
	from := f.From
	switch f.Header.Command() {
	case wire.CommandRequestStateTransfer:
		var q wire.RequestStateTransferHeader
		if q.Decode(f.Header[:]) == nil {
			x.source.Ask(from, &q)
		}
	case wire.CommandRequestStateChunk:
		var q wire.RequestStateChunkHeader
		if q.Decode(f.Header[:]) != nil {
			return
		}
		select {
		case x.pieces <- func() { x.source.Chunk(from, &q) }:
		default: // it is asked for again
		}
	default:
		x.client.Frame(from, &f.Header, f.Body())
	}
}

// Fetch brings a state in the background and hands it, or the error, to done: on a goroutine that may work with
// files, while it counts as a fetch. What done returns is how the whole attempt ended. After one that failed the
// next one for the group waits, longer each time: a full disk or a peer without a state is not asked at full speed.
// Once the exchange ends, done may not be called.
func (x *Exchange) Fetch(w Want, done func(*Fetched, error) error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stop.Err() != nil {
		return
	}
	x.gone.Go(func() {
		if !x.wait(w.Group) {
			return
		}
		select {
		case x.room <- struct{}{}:
			defer func() { <-x.room }()
		case <-x.stop.Done():
			return
		}
		fetched, err := x.client.Fetch(x.stop, w)
		x.note(w.Group, done(fetched, err))
	})
}

// Copy brings a state and returns it. It counts as no fetch: whoever copies bounds it.
func (x *Exchange) Copy(ctx context.Context, w Want) (*Fetched, error) {
	x.mu.Lock()
	if x.stop.Err() != nil {
		x.mu.Unlock()
		return nil, x.stop.Err()
	}
	x.gone.Add(1)
	x.mu.Unlock()
	defer x.gone.Done()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(x.stop, end)()
	return x.client.Fetch(ctx, w)
}

// wait lets the time pass that earlier failures ask for; false when the exchange ends.
func (x *Exchange) wait(group uint64) bool {
	x.mu.Lock()
	delay := x.failed[group]
	x.mu.Unlock()
	return pause(x.stop, delay) == nil
}

func (x *Exchange) note(group uint64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		delete(x.failed, group)
		return
	}
	x.failed[group] = min(max(firstDelay, 2*x.failed[group]), lastDelay)
}
