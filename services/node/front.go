package node

import (
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
)

// openFront starts the listeners.
func (n *node) openFront() (err error) {
	c := n.config
	heartbeat := time.Duration(0)
	if c.Heartbeat.Enabled {
		heartbeat = c.Heartbeat.Interval
	}
	n.front, err = frontdoor.New(frontdoor.Config{
		Address: n.tcp(),
		TLS: frontdoor.TLS{
			Enabled: c.TCP.TLS.Enabled, CertFile: c.TCP.TLS.CertFile, KeyFile: c.TCP.TLS.KeyFile, SelfSigned: c.TCP.TLS.SelfSigned,
		},
		QUIC:            n.quic(),
		WebSocket:       n.webSocket(),
		MaxFrame:        uint32(c.MessageBus.MaxMessageSize),
		MaxConnections:  c.Limits.Connections,
		FrameGrace:      c.Limits.FrameTimeout,
		Heartbeat:       heartbeat,
		TokensPerUser:   c.PersonalAccessToken.MaxTokensPerUser,
		PasswordWorkers: c.Limits.Logins,
		LocalSessions:   max(1, c.Metadata.ClientsTableMax/2),
		ClusterID:       wire.ClusterID(c.Cluster.Name),
		Node:            n.shown(),
		ConfigText:      c.Current,
		DataDir:         c.System.Path,
	}, frontdoor.Deps{
		Metadata:   n.metadata,
		Partitions: func(uint64) link.Service { return n.partition },
		Router:     n.router,
		Roster:     n.clientRoster(),
		Follower:   n.follower, Pool: n.pool, Logger: n.log.Named("front-door"), Registry: n.meter, Events: n.events,
	})
	if err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	if err := n.openHTTP(); err != nil {
		return err
	}
	if err := n.front.Start(); err != nil {
		return err
	}
	if n.http != nil {
		n.http.Serve()
	}
	return nil
}

// shown is how this process appears in a roster; what is empty is left at the default.
func (n *node) shown() (own frontdoor.Node) {
	if n.cluster == nil {
		return own
	}
	own.IP = n.cluster.host
	for i := range n.config.Cluster.Nodes {
		if e := &n.config.Cluster.Nodes[i]; len(n.cluster.roster) > 0 && e.ReplicaID == int(n.cluster.self) {
			own = frontdoor.Node{Name: e.Name, IP: e.IP, TCP: e.Ports.TCP, QUIC: e.Ports.QUIC, HTTP: e.Ports.HTTP, WebSocket: e.Ports.WebSocket}
		}
	}
	return own
}

// bound says where clients and other processes reach the node.
func (n *node) bound() service.Bound {
	b := n.planes.bound()
	if n.front == nil {
		return b
	}
	if a := n.front.Addr(); a != nil {
		b.TCP = a.String()
	}
	if n.http != nil {
		b.HTTP = n.http.Addr().String()
	}
	if a := n.front.QUICAddr(); a != nil {
		b.QUIC = a.String()
	}
	if a := n.front.WebSocketAddr(); a != nil {
		b.WebSocket = a.String()
	}
	return b
}

// root makes the first user.
func (n *node) root() (metadata.RootUser, error) {
	user, err := n.config.RootUser()
	if err != nil {
		return metadata.RootUser{}, err
	}
	hash := frontdoor.HashPassword([]byte(user.Password.Reveal()))
	n.log.Info("root user created", "name", user.Name, "credentials", user.From)
	return metadata.RootUser{Name: user.Name, PasswordHash: hash}, nil
}
