package link

import (
	"fmt"
	"io"
	"net"

	"github.com/whippet-mq/whippet/libs/wire"
)

// maxIntroduction bounds the first frame in bytes.
const maxIntroduction = 4 << 10

const askMixed = "the peer is an Iggy node or runs in the other mode: set WHIPPET_CLUSTER_MIXED=true on every Whippet node, or on none"

// introduction is the exchange of Ping and Pong that opens a connection between native nodes.
type introduction struct {
	conn net.Conn
	self *Node
	lane Lane
}

// open sends the Ping of the dialing side and judges the Pong of the process whose id was proved; AnyNode
// leaves the id to the Pong.
func (i *introduction) open(proved uint8) (Peer, error) {
	if err := i.send(wire.CommandPing); err != nil {
		return Peer{}, err
	}
	peer, _, err := i.receive(wire.CommandPong, proved)
	return peer, err
}

// answer judges the Ping of the dialing side and sends the Pong: also to a process that is refused,
// which can then tell why.
func (i *introduction) answer(proved uint8) (Peer, Lane, error) {
	peer, lane, err := i.receive(wire.CommandPing, proved)
	if r, ok := err.(*refusal); ok && r.reason == refusedIO {
		return peer, lane, err
	}
	if serr := i.send(wire.CommandPong); err == nil {
		err = serr
	}
	return peer, lane, err
}

func (i *introduction) send(c wire.Command) error {
	h := wire.PingHeader{
		Preamble: wire.Preamble{Cluster: i.self.Cluster, Command: c}, ClusterUUID: i.self.ClusterUUID(), NodeUUID: i.self.UUID,
		Epoch: i.self.Epoch, Features: i.self.Features, Build: i.self.Build, Node: i.self.ID, Lane: uint8(i.lane), Mixed: i.self.Mixed,
	}
	// The numbers of this first frame say nothing yet; their count is what the lanes are made from.
	body := wire.PingBody{Progress: make([]uint64, i.self.loops()), Address: []byte(i.self.ServiceAddress)}
	if _, err := i.conn.Write(wire.AppendPing(nil, &h, &body)); err != nil {
		return refuse(refusedIO, "first frame: %w", err)
	}
	return nil
}

func (i *introduction) receive(c wire.Command, proved uint8) (p Peer, lane Lane, err error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(i.conn, head[:]); err != nil {
		return p, 0, refuse(refusedIO, "no %v as first frame (%w): %s", c, err, askMixed)
	}
	var h wire.PingHeader
	if err := h.Decode(head[:]); err != nil || h.Command != c {
		return p, 0, refuse(refusedIdentity, "%v as first frame, not %v: %s", wire.Command(head[60]), c, askMixed)
	}
	if h.Size > maxIntroduction {
		return p, 0, refuse(refusedIdentity, "first frame of %d bytes", h.Size)
	}
	rest := make([]byte, h.Size-wire.HeaderSize)
	if _, err := io.ReadFull(i.conn, rest); err != nil {
		return p, 0, refuse(refusedIO, "first frame: %w", err)
	}
	var body wire.PingBody
	if err := body.Decode(&h, rest); err != nil {
		return p, 0, refuse(refusedIdentity, "first frame: %w", err)
	}
	p = Peer{
		ID: h.Node, UUID: h.NodeUUID, ClusterUUID: h.ClusterUUID, Epoch: h.Epoch, Loops: h.Loops, Features: h.Features,
		Build: h.Build, ServiceAddress: string(body.Address),
	}
	return p, Lane(h.Lane), i.judge(&h, proved)
}

func (i *introduction) judge(h *wire.PingHeader, proved uint8) error {
	own := i.self.ClusterUUID()
	switch {
	case h.Mixed != i.self.Mixed:
		return refuse(refusedIdentity, "%s", askMixed)
	case proved != AnyNode && h.Node != proved:
		return refuse(refusedIdentity, "node %d says it is node %d", proved, h.Node)
	case h.Cluster != i.self.Cluster:
		return refuse(refusedCluster, "node %d belongs to a cluster of another name", h.Node)
	case !own.IsZero() && !h.ClusterUUID.IsZero() && own != h.ClusterUUID:
		return refuse(refusedCluster, "node %d belongs to another cluster of the same name: its uuid is %s, ours is %s",
			h.Node, uuidText(h.ClusterUUID), uuidText(own))
	}
	return nil
}

func uuidText(u wire.U128) string {
	var b [16]byte
	u.Put(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
