package node

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

// clientRoster is what the nodes of a roster tell clients of each other (client-semantics.md §9.1).
type clientRoster struct {
	node    *node
	entries []rosterEntry
}

// rosterEntry is a node, and the networks that know it under another address.
type rosterEntry struct {
	node     wire.ClusterNode
	id       uint8
	networks []clientNetwork
}

type clientNetwork struct {
	prefix  netip.Prefix
	address string
}

// clientRoster tells clients of all nodes. It is nil where a process answers for itself alone: whoever asks
// a front-door is where it should be.
func (n *node) clientRoster() func(client string) wire.ClusterMetadata {
	if n.cluster == nil || len(n.cluster.roster) == 0 {
		return nil
	}
	r := &clientRoster{node: n}
	for i := range n.config.Cluster.Nodes {
		r.entries = append(r.entries, newRosterEntry(&n.config.Cluster.Nodes[i]))
	}
	return r.show
}

func newRosterEntry(c *service.ClusterNode) rosterEntry {
	address := c.AdvertisedAddress
	if address == "" {
		address = c.IP
	}
	e := rosterEntry{id: uint8(c.ReplicaID), node: wire.ClusterNode{
		Name: c.Name, Address: canonical(address), TCP: c.Ports.TCP, QUIC: c.Ports.QUIC, HTTP: c.Ports.HTTP, WebSocket: c.Ports.WebSocket,
		Status: wire.NodeHealthy,
	}}
	for _, a := range c.AdvertisedAddresses {
		if prefix, err := netip.ParsePrefix(a.ClientCIDR); err == nil {
			e.networks = append(e.networks, clientNetwork{prefix.Masked(), canonical(a.Address)})
		}
	}
	return e
}

// canonical is an address the way clients compare it as text.
func canonical(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(address)
}

// show is the roster for a client at ip:port, or somewhere unknown. At most one node is the leader: none
// while this one would be it and does not lead yet, or any more.
func (r *clientRoster) show(client string) wire.ClusterMetadata {
	from := netip.Addr{}
	if at, err := netip.ParseAddrPort(client); err == nil {
		from = at.Addr().Unmap().WithZone("")
	}
	leader, led := r.leader()
	m := wire.ClusterMetadata{Name: r.node.config.Cluster.Name, Nodes: make([]wire.ClusterNode, len(r.entries))}
	for i := range r.entries {
		e := &r.entries[i]
		m.Nodes[i] = e.node
		m.Nodes[i].Address = e.address(from)
		if m.Nodes[i].Role = wire.NodeFollower; led && e.id == leader {
			m.Nodes[i].Role = wire.NodeLeader
		}
	}
	return m
}

// leader is the node that leads the metadata as far as this one knows.
func (r *clientRoster) leader() (node uint8, ok bool) {
	g, self := r.node.metadata.Group(), r.node.cluster.self
	if node, ok = g.Leader(); !ok {
		return self, true // a cluster of one
	}
	return node, node != self || g.Primary()
}

// address is where a client at from reaches the node: the longest network that holds it says so.
func (e *rosterEntry) address(from netip.Addr) string {
	best, bits := e.node.Address, -1
	for _, n := range e.networks {
		if n.prefix.Bits() > bits && n.prefix.Contains(from) {
			best, bits = n.address, n.prefix.Bits()
		}
	}
	return best
}

// bindRoster moves the listeners for clients to the ports under which the roster tells of them. Their own
// settings say on which interface.
func bindRoster(c *service.Config, ports service.NodePorts) {
	for _, l := range []struct {
		address *string
		port    uint16
	}{{&c.TCP.Address, ports.TCP}, {&c.QUIC.Address, ports.QUIC}, {&c.HTTP.Address, ports.HTTP}, {&c.WebSocket.Address, ports.WebSocket}} {
		if host, _, err := net.SplitHostPort(*l.address); err == nil && l.port != 0 {
			*l.address = net.JoinHostPort(host, strconv.Itoa(int(l.port)))
		}
	}
}
