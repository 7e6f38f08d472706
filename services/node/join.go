package node

import (
	"net"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/routing"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
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

// join binds the planes and makes what the loops need of other processes. Nothing is said to anybody
// before meet.
func (n *node) join(id journal.Identity) (err error) {
	if n.planes.replica, err = net.Listen("tcp", n.cluster.listen); err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	if n.planes.service, err = service.Listen(n.config, "service.address", n.config.Service.Address, n.log); err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	address, err := n.cluster.advertised(n.planes.service)
	if err != nil {
		return err
	}
	var report journal.VoteReport
	if n.votes, report, err = loop.OpenVotes(n.fs, ".", id.Node, n.stepped); err != nil {
		return err
	}
	for _, d := range report.Corrupt {
		n.log.Error("votes are damaged", "file", d.File, "reason", d.Reason, "kept", d.Kept)
	}
	n.introduce(wire.DecodeU128(id.Node[:]), n.evidence.Session.Sequence+1, n.loops(), address)
	n.echoes = &loop.Echoes{}
	n.heart, n.peers, n.routes = n.newHeart(), n.newPeers(), n.newRoutes()
	n.router = n.findPrimaries()
	return nil
}

// meet begins to talk to the other processes.
func (n *node) meet() {
	n.heart.beat()
	n.peers.serve(n.planes.replica)
	n.routes.serve(n.planes.service)
}

// leave hands over what is led here and stops answering other processes.
func (n *node) leave() {
	for _, e := range n.engines() {
		e.Wait(e.Loop.HandOver)
	}
	n.routes.close()
}

// part ends the talk of the replica plane: the loops have stopped.
func (n *node) part() error {
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

// members are the nodes of the metadata group, and the place of this one.
func (n *node) members() (nodes []uint8, self uint8) {
	if n.cluster == nil {
		return nil, 0
	}
	return n.cluster.metadata, n.cluster.index(n.cluster.metadata)
}

// findPrimaries makes the router; views come from the metadata replica once it is open.
func (n *node) findPrimaries() *routing.Router {
	return routing.New(routing.Config{
		View: func() *metadata.View { return n.metadata.View() }, Dial: n.routes.to,
		Metadata: n.cluster.metadata, Roster: n.cluster.roster,
	})
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
