package node

import (
	"net"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/wire"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

// peers is the replica plane of this process: connections to the nodes it shares groups with, and the
// way of their frames into the loops. It implements loop.Peers.
type peers struct {
	node  *node
	mesh  *link.Mesh
	loops [256]atomic.Uint32 // of each connected node

	ready atomic.Bool // the loops run: frames may come in
}

func (n *node) newPeers() *peers {
	p := &peers{node: n}
	p.mesh = link.NewMesh(link.MeshConfig{Options: n.linkOptions(), Receive: p.receive, Up: p.up, Down: p.down})
	return p
}

// serve lets other nodes connect, and connects to them.
func (p *peers) serve(l net.Listener) {
	p.ready.Store(true)
	p.mesh.SetPeers(p.node.cluster.others())
	go func() {
		if err := p.mesh.Serve(l); err != nil {
			p.node.log.Error("replica plane ended", "error", err)
		}
	}()
}

func (p *peers) up(peer link.Peer) {
	p.loops[peer.ID].Store(uint32(peer.Loops))
	go p.node.heart.up(peer.ID) // the connection waits for nobody
	if p.ready.Load() {
		for _, e := range p.node.engines() {
			e.NodeConnected(peer.ID)
		}
	}
	p.node.log.Info("node connected", "node", peer.ID, "epoch", peer.Epoch)
}

func (p *peers) down(peer link.Peer) {
	p.node.log.Info("node disconnected", "node", peer.ID)
}

// Send implements loop.Peers.
func (p *peers) Send(node uint8, f loop.Frame) bool {
	lane := link.Control
	if !link.ControlFrame(f.Header.Command()) {
		lane = link.Data(p.lane(node, f.Group))
	}
	return p.mesh.Send(node, lane, f.Header, f.Body, f.Hold)
}

// lane is the loop of the other node that a group belongs to.
func (p *peers) lane(node uint8, group uint64) uint8 {
	loops := p.loops[node].Load()
	if loops <= 1 || group == wire.MetadataGroup {
		return 0
	}
	return uint8(partitionreplica.LoopOf(group, int(loops)))
}

// receive hands a frame to the loop of its group.
func (p *peers) receive(from uint8, _ link.Lane, h *wire.Header, f *buffer.Frame) {
	switch c := h.Command(); {
	case c == wire.CommandPing || c == wire.CommandPong:
		p.node.heart.receive(from, h, f)
		if f != nil {
			f.Release()
		}
		return
	case !p.ready.Load():
		if f != nil {
			f.Release()
		}
		return
	}
	if group, ok := wire.GroupOf(h); ok {
		if e := p.node.engineOf(group); e != nil {
			e.Receive(from, h, f, wire.HeaderSize)
			return
		}
	}
	if f != nil {
		f.Release()
	}
}

// engineOf is the loop of a group in this process, nil when no role here has it.
func (n *node) engineOf(group uint64) *loop.Engine {
	switch {
	case group == wire.MetadataGroup && n.metadata != nil:
		return n.metadata.Engine()
	case group != wire.MetadataGroup && n.partition != nil:
		return n.partition.Engine(group)
	}
	return nil
}

// engines are all loops of this process.
func (n *node) engines() []*loop.Engine {
	var all []*loop.Engine
	if n.metadata != nil {
		all = append(all, n.metadata.Engine())
	}
	if n.partition != nil {
		all = append(all, n.partition.Engines()...)
	}
	return all
}
