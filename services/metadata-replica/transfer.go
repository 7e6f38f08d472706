package metadatareplica

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// offersEvery is how often offers nobody asks for any more are looked for.
const offersEvery = 5 * time.Second

// transfers moves the whole metadata between the members of the group, when the log no longer reaches
// back to what one of them lacks: as the snapshot a checkpoint holds.
type transfers struct {
	replica *Replica
	source  *transfer.Source
	client  *transfer.Client

	stop context.Context
	end  func()
	gone sync.WaitGroup
}

// openTransfers lets the members exchange their state; not in a group of one.
func (r *Replica) openTransfers() {
	peers := r.config.Engine.Peers
	if len(r.config.Nodes) <= 1 || peers == nil {
		return
	}
	send := func(node uint8, h *wire.Header, body []byte) bool {
		return peers.Send(node, loop.Frame{Group: wire.MetadataGroup, Header: h, Body: body})
	}
	t := &transfers{replica: r}
	t.stop, t.end = context.WithCancel(context.Background())
	t.source = transfer.NewSource(transfer.SourceConfig{Cluster: r.config.Cluster, Build: r.offer, Send: send})
	t.client = transfer.NewClient(transfer.ClientConfig{Cluster: r.config.Cluster, Send: send})
	r.engine.Loop.TransferFrame = func(_ *loop.Group, f *loop.PeerFrame) { t.frame(f) }
	r.engine.Loop.Transfer = func(_ *loop.Group, node uint8, above uint64) {
		t.gone.Go(func() { t.fetch(node, above) })
	}
	t.gone.Go(t.tidy)
	r.transfers = t
}

func (t *transfers) close() {
	t.end()
	t.gone.Wait()
	t.source.Close()
}

func (t *transfers) tidy() {
	idle := time.NewTicker(offersEvery)
	defer idle.Stop()
	for {
		select {
		case now := <-idle.C:
			t.source.Tick(now)
		case <-t.stop.Done():
			return
		}
	}
}

// frame takes a frame of a transfer. Called in a turn; the state is in memory.
func (t *transfers) frame(f *loop.PeerFrame) {
	defer f.Release()
	switch f.Header.Command() {
	case wire.CommandRequestStateTransfer:
		var q wire.RequestStateTransferHeader
		if q.Decode(f.Header[:]) == nil {
			t.source.Ask(f.From, &q)
		}
	case wire.CommandRequestStateChunk:
		var q wire.RequestStateChunkHeader
		if q.Decode(f.Header[:]) == nil {
			t.source.Chunk(f.From, &q)
		}
	default:
		t.client.Frame(f.From, &f.Header, f.Body())
	}
}

// offer is the metadata as applied here.
func (r *Replica) offer(_ uint64, node uint8) (*transfer.Offer, uint8) {
	if !slices.Contains(r.config.Nodes, node) {
		return nil, 0
	}
	o := &transfer.Offer{}
	var view *metadata.View
	r.engine.Wait(func() { o.Head, view = r.group.Last(), r.current })
	if o.Head.Op == 0 {
		return nil, 0
	}
	o.State = view.EncodeSnapshot(nil)
	return o, r.config.Self
}

// fetch brings the metadata from another member and has it installed.
func (t *transfers) fetch(node uint8, above uint64) {
	r := t.replica
	r.log.Info("metadata is fetched from another member", "node", node, "op", above)
	fetched, err := t.client.Fetch(t.stop, node, wire.MetadataGroup, r.config.Self, above, noFiles{})
	var view *metadata.View
	if err == nil {
		view, err = metadata.DecodeSnapshot(fetched.State, r.config.Limits)
	}
	if err != nil {
		r.log.Warn("metadata could not be fetched", "node", node, "error", err)
		r.engine.Do(func() { r.engine.Loop.TransferFailed(r.group) })
		return
	}
	r.engine.Do(func() {
		r.engine.Install(r.group, fetched.Head, func() error {
			r.current, r.unread = view, nil
			r.log.Info("metadata is installed", "op", view.Op)
			return nil
		})
	})
}

// noFiles is the Store of a state without files.
type noFiles struct{}

// Create implements transfer.Store.
func (noFiles) Create(uint64) (transfer.Writer, error) { return nil, transfer.ErrState }
