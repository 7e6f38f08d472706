package node

import (
	"errors"
	"net"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/routing"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
)

// planes are the listeners for other processes.
type planes struct{ replica, service net.Listener }

func (p *planes) bound() (b service.Bound) {
	if p.replica != nil {
		b.Replica = p.replica.Addr().String()
	}
	if p.service != nil {
		b.Service = p.service.Addr().String()
	}
	return b
}

// bind takes the ports of the planes. Nobody is answered before meet.
func (n *node) bind() (replica, serviceAddress string, err error) {
	if n.planes.replica, err = net.Listen("tcp", n.cluster.listen); err != nil {
		return "", "", service.WithExit(service.ExitConfig, err)
	}
	if n.planes.service, err = service.Listen(n.config, "service.address", n.config.Service.Address, n.log); err != nil {
		return "", "", service.WithExit(service.ExitConfig, err)
	}
	if replica, err = n.cluster.advertised(n.planes.replica); err != nil {
		return "", "", err
	}
	serviceAddress, err = n.cluster.advertised(n.planes.service)
	return replica, serviceAddress, err
}

// join makes what the replicas of this process need of other processes, and gives a partition replica
// its node id.
func (n *node) join(id *journal.Identity) error {
	replica, address, err := n.bind()
	if err != nil {
		return err
	}
	if err := n.openRoutes(); err != nil {
		return err
	}
	if n.cluster.self == wire.FrontDoorID {
		if err := n.register(id, replica, address); err != nil {
			return err
		}
	}
	var report journal.VoteReport
	if n.votes, report, err = loop.OpenVotes(n.fs, ".", id.Node, n.stepped); err != nil {
		return err
	}
	for _, d := range report.Corrupt {
		n.log.Error("votes are damaged", "file", d.File, "reason", d.Reason, "kept", d.Kept)
	}
	if len(n.cluster.roster) > 0 {
		if n.joined, err = n.openJoined(); err != nil {
			return err
		}
	}
	n.cluster.node = n.introduction(wire.DecodeU128(id.Node[:]), address)
	n.echoes = &loop.Echoes{}
	n.heart, n.peers = n.newHeart(), n.newPeers()
	return nil
}

// openRoutes makes the ways of requests to other processes, and follows the metadata where it is not
// replicated here.
func (n *node) openRoutes() error {
	n.cluster.metrics = link.NewMetrics(n.registry)
	n.cluster.node = n.introduction(wire.U128{}, "")
	n.routes = n.newRoutes()
	n.router = routing.New(routing.Config{
		View: func() *metadata.View { return n.follower.View() }, Dial: n.routes.to,
		Metadata: n.cluster.metadata, Roster: n.cluster.roster,
	})
	if n.roles.Metadata {
		return nil
	}
	n.feed = n.newFollow()
	n.follower = n.feed.client
	select {
	case <-n.feed.client.Ready():
		return nil
	case <-n.ending.Done():
		return errors.New("stopped before any metadata replica answered")
	}
}

// meet begins to talk to the other processes.
func (n *node) meet() {
	n.heart.beat()
	n.peers.serve(n.planes.replica)
	n.routes.serve(n.planes.service)
	if n.metadata != nil {
		go n.takePart()
	}
	if n.registrar != nil {
		go n.keepRegistered()
		go n.watchNodes()
	}
}

// leave hands over what is led here and stops answering other processes.
func (n *node) leave() {
	for _, e := range n.engines() {
		e.Wait(e.Loop.HandOver)
	}
	if n.routes != nil {
		n.routes.close()
	}
}

// part ends the talk of the replica plane: the loops have stopped.
func (n *node) part() error {
	if n.feed != nil {
		n.feed.client.Close()
	}
	if n.peers == nil {
		return nil
	}
	n.heart.close()
	n.peers.mesh.Close()
	return n.votes.Close()
}

// self is the node id, 0 for a process that stands alone.
func (n *node) self() uint8 {
	if n.cluster == nil {
		return 0
	}
	return n.cluster.self
}

// roster are the nodes that host every partition.
func (n *node) roster() []uint8 {
	if n.cluster == nil {
		return nil
	}
	return n.cluster.roster
}

// joinedAt tells the partition replica of a roster which partitions are older than its data.
func (n *node) joinedAt() func() (uint64, bool) {
	if n.joined == nil {
		return nil
	}
	return n.joined.revision
}

// dial is the way to another process, nil while none is known.
func (n *node) dial(node uint8) link.Service { return n.routes.to(node) }

// ask makes a call to the primary of its group, once; nil where there is nobody else to ask.
func (n *node) ask() func(*link.Call) {
	if n.router == nil {
		return nil
	}
	return n.router.Ask
}

// members are the nodes of the metadata group, and the place of this one.
func (n *node) members() (nodes []uint8, self uint8) {
	if n.cluster == nil {
		return nil, 0
	}
	return n.cluster.metadata, n.cluster.index(n.cluster.metadata)
}

// placement says how partitions are spread: in a cluster of services over the nodes that register.
func (n *node) placement() metadatareplica.Placement {
	if n.cluster == nil || len(n.cluster.roster) > 0 {
		return metadatareplica.Placement{}
	}
	return metadatareplica.Placement{Replicas: n.config.Node.ReplicationFactor, Reserved: n.cluster.metadata}
}

// Serve implements link.Service for any partition of the cluster: one attempt at the primary as far as
// it is known.
func (n *node) Serve(c *link.Call) {
	s := n.router.Service(c.Group)
	if s == nil {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonUnknownGroup)
		return
	}
	s.Serve(c)
}

// Refused learns who leads a partition from a call that was refused.
func (n *node) Refused(c *link.Call) { n.router.Refused(c, n.router.Service(c.Group)) }
