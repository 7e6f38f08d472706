package node

import (
	"net"
	"sync"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata/feed"
	"github.com/whippet-mq/whippet/libs/wire"
)

// routes are the ways of requests between this process and others: its own service plane, and links to
// the service planes of others, made when they are first needed.
type routes struct {
	node   *node
	server *link.Server
	own    *served // for requests of this process's own front-door

	mu      sync.RWMutex
	remotes map[uint8]*remote
	closed  bool
}

// remote is the link to one node at the address it was last known under.
type remote struct {
	address string
	link    *link.Remote
}

func (n *node) newRoutes() *routes {
	return &routes{node: n, remotes: make(map[uint8]*remote)}
}

// serve answers other processes on l.
func (r *routes) serve(l net.Listener) {
	config := link.ServerConfig{Options: r.node.linkOptions(), Service: &served{node: r.node}}
	if r.node.partition != nil {
		config.Service = &served{r.node, r.node.partition.Routed()}
	}
	if r.node.metadata != nil && r.node.metadata.Feed() != nil {
		config.Feed = feed.NewPlane(r.node.metadata.Feed())
	}
	r.server = link.NewServer(config)
	go func() {
		if err := r.server.Serve(l); err != nil {
			r.node.log.Error("service plane ended", "error", err)
		}
	}()
}

// served answers requests with the roles of this process.
type served struct {
	node       *node
	partitions link.Service // nil without the role
}

// Serve implements link.Service.
func (s *served) Serve(c *link.Call) {
	switch {
	case c.Group == wire.MetadataGroup && s.node.metadata != nil:
		s.node.metadata.Serve(c)
	case c.Group != wire.MetadataGroup && s.partitions != nil:
		s.partitions.Serve(c)
	default:
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonUnknownGroup)
	}
}

// to is the way to a node, nil while none is known. The same node gives the same value as long as it
// keeps its address.
func (r *routes) to(node uint8) link.Service {
	if node == r.node.cluster.self {
		return r.local()
	}
	address := r.node.serviceAddress(node)
	r.mu.RLock()
	at := r.remotes[node]
	r.mu.RUnlock()
	if at != nil && (address == "" || at.address == address) {
		return at.link
	}
	if address == "" {
		return nil
	}
	return r.dial(node, address)
}

// local is the way to the roles of this process: no socket, no copy.
func (r *routes) local() link.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		r.own = &served{node: r.node}
		if r.node.partition != nil {
			r.own.partitions = r.node.partition
		}
	}
	return r.own
}

// keep has a link that was made elsewhere used for a node.
func (r *routes) keep(node uint8, address string, l *link.Remote) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remotes[node] = &remote{address, l}
}

// remote is the link that was made for a node, nil once the links are closed.
func (r *routes) remote(node uint8) *link.Remote {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if at := r.remotes[node]; at != nil {
		return at.link
	}
	return nil
}

func (r *routes) dial(node uint8, address string) link.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.remotes[node]
	switch {
	case r.closed:
		return nil
	case at != nil && at.address == address:
		return at.link
	case at != nil:
		go at.link.Close()
	}
	at = &remote{address, link.Dial(link.RemoteConfig{Options: r.node.linkOptions(), Address: address, Expect: node})}
	r.remotes[node] = at
	return at.link
}

// close ends the links and the own service plane.
func (r *routes) close() {
	r.mu.Lock()
	r.closed = true
	remotes := r.remotes
	r.remotes = map[uint8]*remote{}
	r.mu.Unlock()
	if r.server != nil {
		r.server.Close()
	}
	for _, at := range remotes {
		at.link.Close()
	}
}

// serviceAddress is where a node's service plane is, "" while nobody has said so.
func (n *node) serviceAddress(node uint8) string {
	if a := n.cluster.services[node]; a != "" {
		return a
	}
	if n.follower != nil {
		if known := n.follower.View().Node(node); known != nil {
			return known.Service
		}
	}
	if n.peers != nil {
		if p, ok := n.peers.mesh.Peer(node); ok {
			return p.ServiceAddress
		}
	}
	return ""
}
