package node

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

// cluster is this process's place among others, nil when it stands alone.
type cluster struct {
	self     uint8            // node id, wire.FrontDoorID without a replica, and before it is known
	metadata []uint8          // node ids of the metadata replicas, in member order
	roster   []uint8          // nodes that host every partition; empty where partitions are placed
	services map[uint8]string // service plane of nodes, where it is known from the start
	listen   string           // own replica plane, "" without a replica
	host     string           // under which others reach this process, "": as it is bound

	mu    sync.Mutex
	peers map[uint8]string // replica plane of the other nodes this one shares groups with

	node    *link.Node
	secret  *link.Secret
	tls     *link.TLS
	metrics *link.Metrics
}

// others are the nodes this one shares groups with, by the address of their replica plane.
func (c *cluster) others() map[uint8]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.peers)
}

func (c *cluster) setOthers(peers map[uint8]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peers = peers
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

// arrange reads from the configuration where this process stands.
func arrange(config *service.Config, roles Roles) (*cluster, error) {
	c := &cluster{self: wire.FrontDoorID, peers: map[uint8]string{}, services: map[uint8]string{}}
	var err error
	switch {
	case roles != allRoles:
		err = c.amongServices(config, roles)
	case config.Cluster.Enabled:
		c.amongNodes(config)
	default:
		return nil, nil
	}
	if err == nil {
		err = c.prove(config, roles != allRoles)
	}
	return c, err
}

// amongNodes: all-role nodes are the configured roster, in id order.
func (c *cluster) amongNodes(config *service.Config) {
	c.self = uint8(config.Node.ReplicaID)
	c.metadata = make([]uint8, len(config.Cluster.Nodes))
	for i := range config.Cluster.Nodes {
		n := &config.Cluster.Nodes[i]
		id := uint8(n.ReplicaID)
		c.metadata[id] = id
		address := net.JoinHostPort(n.IP, strconv.Itoa(int(n.Ports.TCPReplica)))
		if id == c.self {
			c.listen, c.host = address, n.IP
			bindRoster(config, n.Ports)
			reachable(config, n.IP)
		} else {
			c.peers[id] = address
		}
	}
	c.roster = c.metadata
}

// reachable moves the service plane to where the replica plane of a node listens, unless it was given an
// address: others are told to find it there.
func reachable(config *service.Config, host string) {
	if config.Explicit("service.address") {
		return
	}
	if _, port, err := net.SplitHostPort(config.Service.Address); err == nil {
		config.Service.Address = net.JoinHostPort(host, port)
	}
}

// amongServices: metadata replicas are configured everywhere; they know the partition replicas.
func (c *cluster) amongServices(config *service.Config, roles Roles) error {
	roster, err := config.MetadataRoster()
	if err != nil {
		return fmt.Errorf("metadata.roster (WHIPPET_METADATA): %w", err)
	}
	found := false
	for _, p := range roster {
		c.metadata = append(c.metadata, p.ID)
		c.services[p.ID] = p.Service
		switch {
		case roles.Metadata && int(p.ID) == config.Node.ReplicaID:
			c.self, found = p.ID, true
			c.host, _, _ = net.SplitHostPort(p.Replica)
		case roles.Metadata:
			c.peers[p.ID] = p.Replica
		}
	}
	if roles.Metadata && !found {
		return fmt.Errorf("replica_id = %d (%s): which of metadata.roster is this one? Give --replica-id or WHIPPET_REPLICA_ID",
			config.Node.ReplicaID, config.Source("replica_id"))
	}
	if roles.Metadata || roles.Partition {
		c.listen = config.Replica.Address
	}
	if a := config.Node.Advertise; a != "" {
		if c.host, _, err = net.SplitHostPort(a); err != nil {
			return fmt.Errorf("advertise = %q: %w", a, err)
		}
	}
	return nil
}

// prove reads how processes of the cluster prove and hide what they say.
func (c *cluster) prove(config *service.Config, always bool) (err error) {
	auth := config.Cluster.Auth
	if always && !auth.SharedSecret.Given() {
		return errors.New("cluster.auth.shared_secret (WHIPPET_CLUSTER_SECRET) is needed: processes of a cluster prove themselves to each other")
	}
	if auth.Enabled || always {
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

// advertised is how others reach a listener of this process: under the configured host, else the address
// it is bound to, else the name of the machine.
func (c *cluster) advertised(l net.Listener) (string, error) {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "", errNotBound
	}
	host := c.host
	if host == "" && !a.IP.IsUnspecified() {
		host = a.IP.String()
	}
	if host == "" {
		name, err := os.Hostname()
		if err != nil {
			return "", err
		}
		host = name
	}
	return net.JoinHostPort(host, strconv.Itoa(a.Port)), nil
}

// linkOptions are those of all connections to other processes.
func (n *node) linkOptions() link.Options {
	c := n.cluster
	return link.Options{
		Node: c.node, Secret: c.secret, TLS: c.tls, Pool: n.pool, Log: n.log.Named("link"), Metrics: c.metrics,
		MaxFrame: uint32(n.config.MessageBus.MaxMessageSize), Grace: n.config.MessageBus.HandshakeGrace,
	}
}

// introduction is what this process tells others of itself under the id it has now.
func (n *node) introduction(identity wire.U128, serviceAddress string) *link.Node {
	me := &link.Node{
		Cluster: wire.ClusterID(n.config.Cluster.Name), UUID: identity, ID: n.cluster.self, ServiceAddress: serviceAddress,
	}
	if n.evidence != nil {
		me.Epoch = n.evidence.Session.Sequence + 1
	}
	if n.roles.Partition {
		me.Loops = uint8(n.loops())
	}
	return me
}
