package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

// cluster is this process's place among others, nil when it stands alone.
type cluster struct {
	self     uint8            // node id
	metadata []uint8          // node ids of the metadata replicas, in member order
	roster   []uint8          // nodes that host every partition; empty where partitions are placed
	peers    map[uint8]string // replica plane of the other nodes known from the start
	services map[uint8]string // service plane of nodes, where it is known from the start
	listen   string           // own replica plane
	host     string           // under which others reach this process

	node    *link.Node
	secret  *link.Secret
	tls     *link.TLS
	metrics *link.Metrics
}

// index is the member index of this node in a list of nodes.
func (c *cluster) index(nodes []uint8) uint8 {
	for i, n := range nodes {
		if n == c.self {
			return uint8(i)
		}
	}
	return 0
}

// arrange reads the configuration of an all-role cluster. Its members are the roster in id order.
func arrange(config *service.Config) (*cluster, error) {
	if !config.Cluster.Enabled {
		return nil, nil
	}
	c := &cluster{self: uint8(config.Node.ReplicaID), peers: map[uint8]string{}, services: map[uint8]string{}}
	c.metadata = make([]uint8, len(config.Cluster.Nodes))
	for i := range config.Cluster.Nodes {
		n := &config.Cluster.Nodes[i]
		id := uint8(n.ReplicaID)
		c.metadata[id] = id
		address := net.JoinHostPort(n.IP, strconv.Itoa(int(n.Ports.TCPReplica)))
		if id == c.self {
			c.listen, c.host = address, n.IP
		} else {
			c.peers[id] = address
		}
	}
	c.roster = c.metadata
	return c, c.prove(config)
}

// prove reads how processes of the cluster prove and hide what they say.
func (c *cluster) prove(config *service.Config) (err error) {
	auth := config.Cluster.Auth
	if auth.Enabled {
		if c.secret, err = link.NewSecret(auth.SharedSecret.Reveal(), auth.PreviousSharedSecret.Reveal()); err != nil {
			return fmt.Errorf("cluster.auth: %w", err)
		}
	}
	t := config.Cluster.TLS
	switch {
	case !t.Enabled:
	case t.SelfSigned:
		c.tls, err = link.NewSelfSignedTLS()
	default:
		var pem [3][]byte
		for i, file := range []string{t.CertFile, t.KeyFile, t.CAFile} {
			if pem[i], err = os.ReadFile(file); err != nil {
				return fmt.Errorf("cluster.tls: %w", err)
			}
		}
		c.tls, err = link.NewTLS(pem[0], pem[1], pem[2])
	}
	if err != nil {
		return fmt.Errorf("cluster.tls: %w", err)
	}
	return nil
}

// errNotBound says that a listener has no TCP address to tell others.
var errNotBound = errors.New("listener has no port")

// advertised is how others reach a listener of this process.
func (c *cluster) advertised(l net.Listener) (string, error) {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "", errNotBound
	}
	return net.JoinHostPort(c.host, strconv.Itoa(a.Port)), nil
}

// options are those of all connections to other processes.
func (n *node) linkOptions() link.Options {
	c := n.cluster
	return link.Options{
		Node: c.node, Secret: c.secret, TLS: c.tls, Pool: n.pool, Log: n.log.Named("link"), Metrics: c.metrics,
		MaxFrame: uint32(n.config.MessageBus.MaxMessageSize), Grace: n.config.MessageBus.HandshakeGrace,
	}
}

// introduce is what this process tells others of itself.
func (n *node) introduce(identity wire.U128, epoch uint64, loops int, serviceAddress string) {
	n.cluster.node = &link.Node{
		Cluster: wire.ClusterID(n.config.Cluster.Name), UUID: identity, ID: n.cluster.self, Epoch: epoch, Loops: uint8(loops),
		ServiceAddress: serviceAddress,
	}
	n.cluster.metrics = link.NewMetrics(n.registry)
}
