package node

import (
	"math/rand/v2"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/metadata/feed"
	"github.com/whippet-mq/whippet/libs/wire"
)

// follow is the metadata of a process without a replica of it.
type follow struct{ client *feed.Client }

// newFollow connects to every metadata replica; the client chooses whom to follow.
func (n *node) newFollow() *follow {
	f := &follow{}
	ready := make(chan struct{})
	f.client = feed.NewClient(feed.ClientConfig{
		Cluster: wire.ClusterID(n.config.Cluster.Name), Limits: metadata.Limits{Clients: n.config.Metadata.ClientsTableMax},
		Sources: n.cluster.metadata, Seed: rand.Uint64(), Log: n.log.Named("feed"),
		Ask: func(node uint8, q *feed.Request) bool {
			<-ready
			l := n.routes.remote(node)
			return l != nil && l.Ask(q)
		},
	})
	for _, id := range n.cluster.metadata {
		o := link.RemoteConfig{
			Options: n.linkOptions(), Address: n.cluster.services[id], Expect: id, Feed: f.client.Receive(id),
			Up: func(link.Peer) { f.client.Up(id) }, Down: func(link.Peer) { f.client.Down(id) },
		}
		n.routes.keep(id, o.Address, link.Dial(o))
	}
	close(ready)
	return f
}
