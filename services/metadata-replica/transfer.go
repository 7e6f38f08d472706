package metadatareplica

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// openTransfers lets the members exchange the whole metadata, as the snapshot a checkpoint holds, when the log no
// longer reaches back to what one of them lacks; not in a group of one.
func (r *Replica) openTransfers() {
	peers := r.config.Engine.Peers
	if len(r.config.Nodes) <= 1 || peers == nil {
		return
	}
	r.transfers = transfer.NewExchange(transfer.Config{Cluster: r.config.Cluster, Peers: peers, Build: r.offer, Fetches: 1})
	r.engine.Loop.TransferFrame = r.transfers.Frame
	r.engine.Loop.Transfer = func(_ *loop.Group, node uint8, above uint64) { r.fetch(node, above) }
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
func (r *Replica) fetch(node uint8, above uint64) {
	r.log.Info("metadata is fetched from another member", "node", node, "op", above)
	r.say(control.Event{Kind: control.TransferBegan, Node: &node})
	want := transfer.Want{Node: node, Group: wire.MetadataGroup, Self: r.config.Self, Above: above, Store: noFiles{}}
	r.transfers.Fetch(want, func(fetched *transfer.Fetched, err error) error {
		var view *metadata.View
		if err == nil {
			view, err = metadata.DecodeSnapshot(fetched.State, r.config.Limits)
		}
		if err != nil {
			r.log.Warn("metadata could not be fetched", "node", node, "error", err)
			r.say(control.Event{Kind: control.TransferFailed, Node: &node, Reason: err.Error()})
			r.engine.Do(func() { r.engine.Loop.TransferFailed(r.group) })
			return err
		}
		r.engine.Do(func() {
			r.engine.Install(r.group, fetched.Head, func() error {
				r.current, r.unread = view, nil
				r.log.Info("metadata is installed", "op", view.Op)
				r.say(control.Event{Kind: control.TransferEnded, Node: &node})
				return nil
			})
		})
		return nil
	})
}

// noFiles is the Store of a state without files.
type noFiles struct{}

// Create implements transfer.Store.
func (noFiles) Create(uint64) (transfer.Writer, error) { return nil, transfer.ErrState }
