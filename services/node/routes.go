package node

import (
	"net"
	"sync"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// routes are the ways of requests between this process and others: its own service plane, and links to
// the service planes of others, made when they are first needed.
type routes struct {
	node   *node
	server *link.Server

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
	r.server = link.NewServer(link.ServerConfig{Options: r.node.linkOptions(), Service: own{r.node}, Feed: r.node.feed()})
	go func() {
		if err := r.server.Serve(l); err != nil {
			r.node.log.Error("service plane ended", "error", err)
		}
	}()
}

// own answers requests with the roles of this process.
type own struct{ node *node }

// Serve implements link.Service.
func (o own) Serve(c *link.Call) {
	switch {
	case c.Group == wire.MetadataGroup && o.node.metadata != nil:
		o.node.metadata.Serve(c)
	case c.Group != wire.MetadataGroup && o.node.partition != nil:
		o.node.partition.Serve(c)
	default:
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonUnknownGroup)
	}
}

// to is the way to a node, nil while none is known. The same node gives the same value as long as it
// keeps its address.
func (r *routes) to(node uint8) link.Service {
	if node == r.node.cluster.self {
		return own{r.node}
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
	if n.peers != nil {
		if p, ok := n.peers.mesh.Peer(node); ok {
			return p.ServiceAddress
		}
	}
	return ""
}

// feed is what followers of this process's metadata get, nil when it has none or nobody follows.
func (n *node) feed() link.Feed { return nil }
