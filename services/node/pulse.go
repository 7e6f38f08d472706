package node

import (
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

type pulse struct {
	node  *node
	mu    sync.Mutex
	heard map[uint8]time.Time
	dead  map[uint8]bool
	stop  chan struct{}
}

func (n *node) newPulse() *pulse {
	return &pulse{node: n, heard: map[uint8]time.Time{}, dead: map[uint8]bool{}, stop: make(chan struct{})}
}

func (p *pulse) connected(peer link.Peer) {}

func (p *pulse) receive(from uint8, h *wire.Header, f *buffer.Frame) {
	var ping wire.PingHeader
	if ping.Decode(h[:]) != nil {
		return
	}
	if h.Command() == wire.CommandPong {
		p.node.echoes.Set(from, loopTick(ping.Echo))
		return
	}
	pong := wire.PingHeader{Preamble: wire.Preamble{Command: wire.CommandPong, Cluster: ping.Cluster}, Echo: ping.Sent, Node: p.node.cluster.self}
	b := wire.AppendPing(nil, &pong, &wire.PingBody{})
	var head wire.Header
	copy(head[:], b)
	p.node.peers.mesh.Send(from, link.Control, &head, nil, nil)
	p.mu.Lock()
	p.heard[from] = time.Now()
	was := p.dead[from]
	p.dead[from] = false
	p.mu.Unlock()
	if was {
		for _, e := range p.node.engines() {
			e.NodeAlive(from)
		}
	}
}

func (p *pulse) run() {
	started := time.Now()
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		for node := range p.node.cluster.peers {
			ping := wire.PingHeader{Preamble: wire.Preamble{Command: wire.CommandPing, Cluster: p.node.cluster.node.Cluster}, Sent: uint64(loop.Ticks()), Node: p.node.cluster.self}
			b := wire.AppendPing(nil, &ping, &wire.PingBody{})
			var head wire.Header
			copy(head[:], b)
			p.node.peers.mesh.Send(node, link.Control, &head, nil, nil)
			p.mu.Lock()
			at, ok := p.heard[node]
			if !ok {
				at = started
			}
			die := time.Since(at) > 500*time.Millisecond && !p.dead[node]
			if die {
				p.dead[node] = true
			}
			p.mu.Unlock()
			if die {
				for _, e := range p.node.engines() {
					e.NodeDead(node)
				}
			}
		}
		for _, e := range p.node.engines() {
			e.Watch()
		}
	}
}

func loopTick(v uint64) vsr.Tick { return vsr.Tick(v) }
