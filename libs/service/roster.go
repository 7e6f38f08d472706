package service

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Peer is one process of a static roster.
type Peer struct {
	ID      uint8
	Replica string // host:port of its replica plane
	Service string // host:port of its service plane, empty when peers tell each other
}

// MetadataRoster reads metadata.roster: "id=host:port,...". The port is that of the replica plane;
// the service plane of a metadata replica is on the next one.
func (c *Config) MetadataRoster() ([]Peer, error) {
	var roster []Peer
	for entry := range strings.SplitSeq(c.Metadata.Roster, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		p, err := parsePeer(entry)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		for _, other := range roster {
			if other.ID == p.ID || other.Replica == p.Replica {
				return nil, fmt.Errorf("%q: its id or address is there twice", entry)
			}
		}
		roster = append(roster, p)
	}
	switch len(roster) {
	case 1, 3, 5, 7:
		return roster, nil
	}
	return nil, fmt.Errorf("%d metadata replicas, want 1, 3, 5 or 7", len(roster))
}

func parsePeer(entry string) (p Peer, err error) {
	id, address, found := strings.Cut(entry, "=")
	n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 8)
	if err != nil || !found || n > 254 {
		return p, errors.New("want id=host:port with an id of 0..254")
	}
	host, port, err := net.SplitHostPort(strings.TrimSpace(address))
	if err != nil || host == "" {
		return p, errors.New("want id=host:port")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || number == 65535 {
		return p, errors.New("want a port of 1..65534: the next one is the service plane's")
	}
	return Peer{ID: uint8(n), Replica: net.JoinHostPort(host, port), Service: net.JoinHostPort(host, strconv.FormatUint(number+1, 10))}, nil
}

// checkCluster holds the rules of a cluster of all-role nodes.
func (c *Config) checkCluster(bad func(key, value, problem string)) {
	nodes := c.Cluster.Nodes
	if len(nodes) == 0 {
		bad("cluster.nodes", "", "a cluster needs its roster")
		return
	}
	seen := map[int]bool{}
	for i, n := range nodes {
		key := fmt.Sprintf("cluster.nodes.%d", i)
		switch {
		case seen[n.ReplicaID] || n.ReplicaID >= len(nodes):
			bad(key+".replica_id", strconv.Itoa(n.ReplicaID), "ids go from 0 on, without gaps, each once")
		case n.IP == "":
			bad(key+".ip", "", "others need the address of a node")
		case n.Ports.TCPReplica == 0:
			bad(key+".ports.tcp_replica", "0", "others need the port of a node")
		}
		seen[n.ReplicaID] = true
	}
	if !seen[c.Node.ReplicaID] {
		bad("replica_id", strconv.Itoa(c.Node.ReplicaID), "which node of cluster.nodes is this one? Give --replica-id or WHIPPET_REPLICA_ID")
	}
	if auth := c.Cluster.Auth; auth.Enabled && !auth.SharedSecret.Given() {
		bad("cluster.auth.shared_secret", "", "needed with cluster.auth.enabled")
	}
	c.checkClusterTLS(bad)
}

// checkClusterTLS holds the rules of encryption between processes.
func (c *Config) checkClusterTLS(bad func(key, value, problem string)) {
	tls := c.Cluster.TLS
	switch {
	case !tls.Enabled:
	case !c.Cluster.Auth.SharedSecret.Given():
		bad("cluster.tls.enabled", "true", "needs cluster.auth with its secret")
	case tls.SelfSigned:
	case tls.CertFile == "" || tls.KeyFile == "" || tls.CAFile == "":
		bad("cluster.tls.cert_file", tls.CertFile, "certificate, key and authority are needed, or cluster.tls.self_signed")
	}
}
