package link

import (
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Node is what this process tells others about itself. All connections of a process share one. Fields
// are set before the first use and not changed after it; the cluster uuid may come later.
type Node struct {
	Cluster        wire.U128 // wire.ClusterID of the cluster's name
	UUID           wire.U128 // of the data directory; 0 for a front-door
	ID             uint8     // 0..254, or wire.FrontDoorID without a replica role
	Epoch          uint64    // grows with each start of the process
	Loops          uint8     // event loops; those beyond wire.MaxLoops share the lanes of the first
	Mixed          bool      // the cluster has reference nodes: no Ping is ever sent, one lane per peer
	Features       uint64
	Build          uint32 // version word
	ServiceAddress string // host:port of the service plane as others reach it; may be empty

	clusterUUID atomic.Pointer[wire.U128]
}

// SetClusterUUID tells connections made from now on the uuid of the cluster, once it is known.
func (n *Node) SetClusterUUID(u wire.U128) { n.clusterUUID.Store(&u) }

// ClusterUUID is the uuid that was set, or 0.
func (n *Node) ClusterUUID() wire.U128 {
	if u := n.clusterUUID.Load(); u != nil {
		return *u
	}
	return wire.U128{}
}

// loops is the number of loops that others are told of.
func (n *Node) loops() uint8 { return min(n.Loops, wire.MaxLoops) }

// Peer is the process at the other end of a connection. ID is what the handshake proved; the rest is
// what the process said of itself in its first frame, and zero for a reference node.
type Peer struct {
	ID             uint8
	UUID           wire.U128
	ClusterUUID    wire.U128 // 0 while the peer does not know it
	Epoch          uint64
	Loops          uint8
	Features       uint64
	Build          uint32
	ServiceAddress string
}
