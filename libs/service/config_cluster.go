package service

import "time"

// MessageBus bounds frames and server-to-server connections.
type MessageBus struct {
	// Frames in one vectored write.
	MaxBatch int `key:"max_batch" default:"256" range:"1..512" use:"none: writes to a node are as large as what waits"`
	// Largest frame, for clients and nodes alike. A larger one closes the connection.
	MaxMessageSize Size `key:"max_message_size" default:"64 MiB" range:"1 MiB..64 MiB"`
	// Frames waiting for one node.
	PeerQueueCapacity int `key:"peer_queue_capacity" default:"256" range:"1.." use:"none: what waits for a node is bounded in bytes"`
	// Time between two attempts to reach a node.
	ReconnectPeriod time.Duration `key:"reconnect_period" default:"5 s" use:"none: a lost connection is made anew within a second"`
	// Time a connection to a node has to close.
	ClosePeerTimeout time.Duration `key:"close_peer_timeout" default:"2 s" use:"none: closing takes half a second at most"`
	// Time for the last frames of a closing connection.
	CloseGrace time.Duration `key:"close_grace" default:"2 s" use:"none: closing takes half a second at most"`
	// Time a node has to prove who it is.
	HandshakeGrace time.Duration `key:"handshake_grace" default:"10 s"`
}

// Cluster joins this node with others. The roster is the same text on every node.
type Cluster struct {
	// Run as a member of a cluster.
	Enabled bool `key:"enabled" default:"false"`
	// Name of the cluster, hashed into its permanent id. A data directory keeps the name it was made with.
	Name string `key:"name" default:"iggy-cluster" env:"WHIPPET_CLUSTER_NAME"`
	// The cluster also has reference nodes. The same on every node.
	Mixed bool `key:"mixed" own:"" default:"false" use:"refuse: this version runs with nodes of its own kind only"`
	// Silence of the primary after which a view change starts.
	HeartbeatTimeout time.Duration `key:"heartbeat_timeout" default:"5s" range:"2 s.." use:"none: nodes of one kind keep shorter times of their own"`
	// Time between two commit messages of a primary.
	CommitBroadcastInterval time.Duration `key:"commit_broadcast_interval" default:"500ms" range:"10 ms.." use:"none: nodes of one kind keep shorter times of their own"`
	// Time after which an unacknowledged prepare is sent again.
	PrepareRetransmitInterval time.Duration `key:"prepare_retransmit_interval" default:"250ms" range:"10 ms.." use:"none: nodes of one kind keep shorter times of their own"`
	// Time after which a view change message is sent again.
	ViewChangeRetransmitInterval time.Duration `key:"view_change_retransmit_interval" default:"500ms" range:"10 ms.." use:"none: nodes of one kind keep shorter times of their own"`
	// Time after which an unfinished view change moves to the next view.
	ViewChangeStatusTimeout time.Duration `key:"view_change_status_timeout" default:"5s" range:"10 ms.." use:"none: nodes of one kind keep shorter times of their own"`
	// Time after which a rejoining node asks again.
	RequestStartViewRetransmitInterval time.Duration `key:"request_start_view_retransmit_interval" default:"1s" range:"10 ms.." use:"none: nodes of one kind keep shorter times of their own"`
	// Times a rejoining node asks.
	ViewProbeAttemptsMax int `key:"view_probe_attempts_max" default:"5" range:"1..100" use:"none: nodes of one kind keep shorter times of their own"`
	// Time after which a repair request is sent again.
	RepairRetryInterval time.Duration `key:"repair_retry_interval" default:"1s" range:"10 ms.." use:"none: nodes of one kind keep shorter times of their own"`
	// Operations in one repair request.
	RepairChunkMax int `key:"repair_chunk_max" default:"128" range:"1..1024" use:"none: nodes of one kind keep shorter times of their own"`
	// Time without a durable vote after which the process ends with status 3; 0 is never.
	SuperblockWedgedFatalTimeout time.Duration `key:"superblock_wedged_fatal_timeout" default:"2m" use:"none: a failed sync ends the process at once"`
	Coordinator                  Coordinator   `key:"coordinator" use:"none: there are no shards"`
	Auth                         ClusterAuth   `key:"auth"`
	TLS                          ClusterTLS    `key:"tls"`
	Nodes                        []ClusterNode `key:"nodes"`
}

// Coordinator places the reference's sockets.
type Coordinator struct {
	// Keep node connections off the first shard.
	SkipShardZeroForReplicas bool `key:"skip_shard_zero_for_replicas" default:"true"`
	// Keep client connections off the first shard.
	SkipShardZeroForClients bool `key:"skip_shard_zero_for_clients" default:"false"`
}

// ClusterAuth proves nodes to each other.
type ClusterAuth struct {
	// Nodes prove that they hold the shared secret.
	Enabled bool `key:"enabled" default:"false"`
	// Secret of the cluster, 32 bytes or more.
	SharedSecret Secret `key:"shared_secret" env:"WHIPPET_CLUSTER_SECRET"`
	// Secret that is accepted too while the secret is changed.
	PreviousSharedSecret Secret `key:"previous_shared_secret"`
}

// ClusterTLS encrypts connections between nodes.
type ClusterTLS struct {
	// Use TLS 1.3 between nodes; needs `cluster.auth`.
	Enabled bool `key:"enabled" default:"false"`
	// Accept any certificate; the shared secret alone proves the node.
	SelfSigned bool `key:"self_signed" default:"false"`
	// Certificate chain, PEM.
	CertFile string `key:"cert_file"`
	// Private key, PEM.
	KeyFile string `key:"key_file"`
	// Authorities that sign the nodes' certificates, PEM.
	CAFile string `key:"ca_file"`
}

// ClusterNode is one member of the roster.
type ClusterNode struct {
	// Name of the node.
	Name string `key:"name"`
	// Address on which the node listens for others.
	IP string `key:"ip" form:"ip"`
	// Address given to clients; empty is `ip`.
	AdvertisedAddress string `key:"advertised_address"`
	// Id of the node: from 0 on, without gaps.
	ReplicaID           int                 `key:"replica_id" range:"0..254"`
	AdvertisedAddresses []AdvertisedAddress `key:"advertised_addresses"`
	Ports               NodePorts           `key:"ports"`
}

// AdvertisedAddress is the address given to clients of one network; the longest matching prefix wins.
type AdvertisedAddress struct {
	// Network of the client.
	ClientCIDR string `key:"client_cidr" form:"cidr"`
	// Address given to clients of that network.
	Address string `key:"address"`
}

// NodePorts are the ports of a roster entry; 0 is not served.
type NodePorts struct {
	// TCP.
	TCP uint16 `key:"tcp"`
	// QUIC.
	QUIC uint16 `key:"quic"`
	// HTTP.
	HTTP uint16 `key:"http"`
	// WebSocket.
	WebSocket uint16 `key:"websocket"`
	// Node to node.
	TCPReplica uint16 `key:"tcp_replica"`
}

// Plane is the listener of the service plane.
type Plane struct {
	// Listener for front-doors and metadata followers of other processes. If it is not given, a node of a roster listens under its address there; and if the port is taken, a free port is used.
	Address string `key:"address" own:"" default:"127.0.0.1:9091" form:"hostport"`
}

// ReplicaPlane is the listener of the replica plane.
type ReplicaPlane struct {
	// Listener for members of this node's groups.
	Address string `key:"address" own:"" default:"127.0.0.1:9090" form:"hostport"`
}

// NATS is the control plane: events for people, and metric snapshots. Nothing waits for it.
type NATS struct {
	// NATS servers that carry events and figures, `nats://host:port` or `tls://host:port`, separated by commas. Empty: they stay in the process.
	URL string `key:"url" own:""`
	// User of this process at the NATS server.
	User string `key:"user" own:""`
	// Its password.
	Password Secret `key:"password" own:""`
	// Seed of an nkey (`SU…`) instead of user and password.
	NKey Secret `key:"nkey" own:""`
	// Authorities that sign the certificates of the NATS servers, PEM. Given: connections are encrypted.
	CAFile string `key:"ca_file" own:""`
}
