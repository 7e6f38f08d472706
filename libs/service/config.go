package service

import "time"

// Config is everything a Whippet process reads at start. Each field with a key tag is one setting:
// its key in the TOML file is the path of key tags, its environment name is IGGY_ and that path, or
// WHIPPET_ and that path where the tag own says that only Whippet has it.
//
// Tags: default (in the text form users write), range ("low..high", either side may be empty), one
// (the words allowed), form (hostport, ip, cidr, url, base64), env (further names; a leading "="
// makes the first the only one), use ("none: why" accepts the key without effect, "refuse: why"
// refuses any value but the default).
// The comment of a field is its text in deploy/docs/configuration.md.
type Config struct {
	Node                Node                `key:""`
	Root                Root                `key:"root"`
	TCP                 TCP                 `key:"tcp"`
	QUIC                QUIC                `key:"quic"`
	HTTP                HTTP                `key:"http"`
	WebSocket           WebSocket           `key:"websocket"`
	Ops                 OpsConfig           `key:"ops"`
	Limits              Limits              `key:"limits"`
	Heartbeat           Heartbeat           `key:"heartbeat"`
	ConsumerGroup       ConsumerGroup       `key:"consumer_group"`
	PersonalAccessToken PersonalAccessToken `key:"personal_access_token"`
	DataMaintenance     DataMaintenance     `key:"data_maintenance"`
	System              System              `key:"system"`
	Storage             Storage             `key:"storage"`
	Journal             Journal             `key:"journal"`
	Metadata            Metadata            `key:"metadata"`
	Partition           Partition           `key:"partition"`
	MessageBus          MessageBus          `key:"message_bus"`
	Telemetry           Telemetry           `key:"telemetry"`
	Cluster             Cluster             `key:"cluster"`
	Service             Plane               `key:"service"`
	Replica             ReplicaPlane        `key:"replica"`
	NATS                NATS                `key:"nats"`

	// Fresh is the flag --fresh: wipe the data directory before the start.
	Fresh bool `key:"-"`
	// DefaultRoot is the flag --with-default-root-credentials: root is iggy / iggy unless the
	// environment names it.
	DefaultRoot bool `key:"-"`
	// AcceptMetadataLoss is the flag --accept-metadata-loss: what damaged metadata still holds is the
	// whole of it from now on.
	AcceptMetadataLoss bool `key:"-"`

	sources map[string]string // key -> where its value came from; absent: default
}

// Explicit reports whether the setting was given by file, environment or flag. The key is the path
// in the TOML file ("ops.address").
func (c *Config) Explicit(key string) bool { return c.sources[key] != "" }

// Source tells where the value of a key came from, in words for an error or a log line.
func (c *Config) Source(key string) string {
	if s := c.sources[key]; s != "" {
		return s
	}
	return "default"
}

// Node holds what names this process among others.
type Node struct {
	// This node's replica id in the roster. Needed when the cluster is on; also the flag `--replica-id`. -1 means not given.
	ReplicaID int `key:"replica_id" own:"" default:"-1" range:"-1..254"`
	// `host:port` that other nodes dial. Empty: the host name and the bound port.
	Advertise string `key:"advertise" own:"" form:"hostport"`
	// Failure zone of this node.
	Zone string `key:"zone" own:""`
	// Copies of each partition of a new topic.
	ReplicationFactor int `key:"replication_factor" own:"" default:"3" one:"1 3 5 7"`
	// Event loops. 0: half the processors, at least one.
	Loops int `key:"loops" own:"" default:"0" range:"0..256"`
}

// Root names the first user. It is read at the first start only.
type Root struct {
	// Name of the root user, 3 to 50 bytes. Given together with the password.
	Username string `key:"username"`
	// Password of the root user, 3 to 100 bytes. Without it one is generated into `root-password` in the data directory.
	Password Secret `key:"password"`
}

// OpsConfig places the endpoint for metrics, health and profiles.
type OpsConfig struct {
	// Address of `/metrics`, `/healthz`, `/readyz`, `/control` and `/debug/pprof`. It has no login: keep it on a private address. If it is not given and its port is taken, a free port is used.
	Address string `key:"address" own:"" default:"127.0.0.1:9190" form:"hostport"`
}

// Limits bound what clients can make the process hold.
type Limits struct {
	// Bytes of request and reply buffers in use at once. At the limit sockets are not read; after a while requests are refused with a retryable status.
	Memory Size `key:"memory" own:"" default:"1 GiB" range:"128 MiB.."`
	// Client connections open at once.
	Connections int `key:"connections" own:"" default:"20000" range:"1..1000000"`
	// Password checks running at once. 0: half the processors, at least one.
	Logins int `key:"logins" own:"" default:"0" range:"0..256"`
	// Time a client has to complete a frame it began, and a second more for each MiB.
	FrameTimeout time.Duration `key:"frame_timeout" own:"" default:"30 s" range:"1 s.."`
	// Largest poll reply in bytes of whole batches; one batch always fits.
	PollReply Size `key:"poll_reply" own:"" default:"8 MiB" range:"64 KiB..64 MiB"`
}

// Heartbeat finds consumer group members that went silent.
type Heartbeat struct {
	// Watch the pings of group members.
	Enabled bool `key:"enabled" default:"true"`
	// Interval at which clients ping. A group member silent for 1.2 times as long leaves its groups.
	Interval time.Duration `key:"interval" default:"30 s" range:"1 ms.."`
}

// ConsumerGroup bounds a rebalance.
type ConsumerGroup struct {
	// Longest time a partition waits for its old group member before it is given to the new one.
	RebalancingTimeout time.Duration `key:"rebalancing_timeout" default:"30 s" range:"1 ms.."`
}

// PersonalAccessToken bounds tokens and removes expired ones.
type PersonalAccessToken struct {
	// Tokens one user may hold.
	MaxTokensPerUser int     `key:"max_tokens_per_user" default:"100" range:"1..65536"`
	Cleaner          Cleaner `key:"cleaner"`
}

// Cleaner is the background duty that deletes expired tokens.
type Cleaner struct {
	// Delete expired tokens. An expired token never logs in, deleted or not.
	Enabled bool `key:"enabled" default:"true"`
	// Time between two passes.
	Interval time.Duration `key:"interval" default:"1 m" range:"1 ms.."`
}

// DataMaintenance holds the background duties on stored messages.
type DataMaintenance struct {
	Messages Retention `key:"messages"`
}

// Retention deletes messages by age and size.
type Retention struct {
	// Delete messages by age and by topic size, as their topic says.
	CleanerEnabled bool `key:"cleaner_enabled" default:"true"`
	// Time between two passes.
	Interval time.Duration `key:"interval" default:"1 m" range:"1 ms.."`
}

// Telemetry describes what is exported beside the ops endpoint.
type Telemetry struct {
	// Export logs and traces with OTLP.
	Enabled bool `key:"enabled" default:"false" use:"none: logs go to standard output, metrics to the ops endpoint"`
	// Name in exported records.
	ServiceName string `key:"service_name" default:"iggy" use:"none: nothing is exported"`
	// Metric series for each partition and consumer: `whippet_topic_*`. Their number grows with the number of partitions.
	PerTopic bool            `key:"per_topic" own:"" default:"false"`
	Logs     TelemetryLogs   `key:"logs" use:"none: nothing is exported"`
	Traces   TelemetryTraces `key:"traces" use:"none: nothing is exported"`
}

// TelemetryLogs is the OTLP target of logs.
type TelemetryLogs struct {
	// Transport to the collector.
	Transport string `key:"transport" default:"grpc" one:"grpc http"`
	// Address of the collector.
	Endpoint string `key:"endpoint" default:"http://localhost:7281/v1/logs" form:"url"`
}

// TelemetryTraces is the OTLP target of traces.
type TelemetryTraces struct {
	// Transport to the collector.
	Transport string `key:"transport" default:"grpc" one:"grpc http"`
	// Address of the collector.
	Endpoint string `key:"endpoint" default:"http://localhost:7281/v1/traces" form:"url"`
}
