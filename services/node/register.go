package node

import (
	"context"
	"maps"
	"time"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

// register gives a partition replica its place among the nodes. The id is kept with the data: it is the
// same at the next start, and another one for another disk.
func (n *node) register(id *journal.Identity, replica, address string) error {
	had := wire.NoNode
	if n.evidence.HasIdentity {
		had = id.ID
	}
	n.registrar = partitionreplica.NewRegistrar(wire.Node{
		UUID: wire.DecodeU128(id.Node[:]), ID: had, Role: wire.RolePartition, Epoch: n.evidence.Session.Sequence + 1,
		Zone: []byte(n.config.Node.Zone), Replica: []byte(replica), Service: []byte(address),
	}, n.router.Ask, n.log)
	got, err := n.registrar.Register(n.ending)
	switch {
	case err != nil:
		return err
	case had != wire.NoNode && got != had:
		return service.WithExit(service.ExitFailed, partitionreplica.ErrIDLost)
	}
	if !reach(n.ending, n.follower, n.registrar.Op()) {
		return n.ending.Err()
	}
	n.log.Info("registered", "node", got, "zone", n.config.Node.Zone, "replica", replica, "service", address)
	n.cluster.self, id.ID = got, got
	n.events.Is(got)
	n.sayNode(control.Registered, got)
	n.cluster.setOthers(partners(n.follower.View(), got))
	if n.evidence.HasIdentity {
		return nil
	}
	return journal.WriteIdentity(n.fs, ".", *id)
}

// reach returns once the metadata here has op, or false when the process stops before. A replica must not open
// its partitions earlier: one that the metadata does not know yet would look like one without other members.
func reach(ending context.Context, f follower, op uint64) bool {
	for !f.Wait(op, time.Second) {
		if ending.Err() != nil {
			return false
		}
	}
	return true
}

// keepRegistered says that this node is up until it stops.
func (n *node) keepRegistered() {
	if err := n.registrar.Keep(n.ending); err != nil {
		n.die(service.ExitFailed, err)
	}
}

// partners are the other partition replicas.
func partners(v *metadata.View, self uint8) map[uint8]string {
	all := map[uint8]string{}
	for id, other := range v.Nodes() {
		if id != self && other.Role&wire.RolePartition != 0 {
			all[id] = other.Replica
		}
	}
	return all
}

// watchNodes keeps the mesh in step with the registered nodes.
func (n *node) watchNodes() {
	known := map[uint8]string{}
	for {
		changed := n.follower.Changed()
		if now := partners(n.follower.View(), n.cluster.self); !maps.Equal(now, known) {
			known = now
			n.cluster.setOthers(now)
			n.peers.mesh.SetPeers(now)
			n.heart.setPeers()
		}
		select {
		case <-changed:
		case <-n.ending.Done():
			return
		}
	}
}
