package frontdoor

import (
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/routing"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Config is everything a front-door is told. A zero field takes the default named beside it.
type Config struct {
	Address string // host:port of the TCP listener; port 0 picks a free one, "" is not served
	TLS     TLS

	QUIC      QUIC
	WebSocket WebSocket

	MaxFrame       uint32        // largest request frame in bytes, header included; 64 MiB
	MaxConnections int           // accepted sockets at one time; 16 384
	HandshakeGrace time.Duration // TLS handshake, WebSocket upgrade included; 10 s
	FrameGrace     time.Duration // a frame begun must be complete within this plus 1 s per MiB; 60 s
	WriteGrace     time.Duration // a reply must leave within this; 10 s

	Heartbeat     time.Duration // check interval for silent group members; 0 turns it off
	TokensPerUser int           // personal access tokens; 100
	RetryFor      time.Duration // repeats of a refused call before the client sees it; 25 s
	RouteFor      time.Duration // the same while a partition is unknown to its replica; 3 s
	BusyFor       time.Duration // a large request waits this long for its turn and for memory, a partition write for room; 300 ms
	HoldFor       time.Duration // a committed reply waits this long for the own follower; 1 s
	FactsFor      time.Duration // partition facts older than this request are used after; 1 s

	LocalSessions int // users of other protocols with a session of their own at one time; 4096

	PasswordWorkers int // concurrent argon2id computations; half the processors, at least 1
	PasswordQueue   int // waiting ones, beyond that logins are refused with 58; 256

	Cluster   string    // cluster name of the roster; "single-node"
	ClusterID wire.U128 // cluster field of committed replies and evictions
	Node      Node
	Version   string // server version text; "0.11.0"
	Semver    uint32 // major·10^6 + minor·10^3 + patch; 11000

	// ConfigText renders the running configuration, without secrets, for snapshots. May be nil.
	ConfigText func() []byte
	// LogText returns the newest part of the log for snapshots. May be nil.
	LogText func() []byte
	// DataDir is the directory whose file system GetStats reports; "."
	DataDir string
}

// TLS says how the listener is secured.
type TLS struct {
	Enabled    bool
	CertFile   string // PEM chain, leaf first
	KeyFile    string
	SelfSigned bool // make a certificate for localhost when the files are absent
}

// QUIC describes the QUIC listener. It always has TLS 1.3.
type QUIC struct {
	Address    string // host:port, UDP; "" is not served
	SelfSigned bool   // make a certificate for localhost, whatever the files say
	CertFile   string // PEM chain, leaf first
	KeyFile    string

	Streams             int           // requests a client may have open, beside one whose answer is not acknowledged yet; 1
	PacketSize          uint16        // first packet size tried in bytes; 1200
	ReceiveWindow       uint64        // bytes in flight from one client; 64 MiB
	StreamReceiveWindow uint64        // the same for one request; 64 MiB
	KeepAlive           time.Duration // time between keep-alive packets; 0 sends none
	Idle                time.Duration // a connection silent for this long is closed; 0 never
}

// WebSocket describes the WebSocket listener.
type WebSocket struct {
	Address     string // host:port; "" is not served
	TLS         TLS
	ReadBuffer  int    // bytes of a connection's read buffer; 4 KiB
	WriteBuffer int    // bytes of a connection's write buffer; 4 KiB
	MaxMessage  uint32 // largest request frame in bytes; MaxFrame
	MaxFragment int    // replies above this many bytes leave in several WebSocket frames; 16 MiB
}

// Node is this process as the roster shows it. TCP, QUIC and WebSocket are replaced by the bound
// ports when 0.
type Node struct {
	Name                       string // "iggy-node"
	IP                         string // "127.0.0.1"
	TCP, QUIC, HTTP, WebSocket uint16 // 0: not offered
}

// Follower is the front-door's copy of the metadata.
type Follower interface {
	// View returns the newest applied view. Never nil.
	View() *metadata.View
	// Wait blocks until the view has applied op, at most limit, and reports whether it has.
	Wait(op uint64, limit time.Duration) bool
	// Changed is closed at the next change of the view.
	Changed() <-chan struct{}
}

// Deps is what a front-door works with.
type Deps struct {
	Metadata link.Service
	// Partitions returns the service that reaches the primary of a partition group, nil when none
	// is known. The same service value is returned for groups of the same process.
	Partitions func(group uint64) link.Service
	// Router finds primaries in a cluster: then Metadata and Partitions are not used, and nothing is denied
	// before the metadata primary was asked. Nil in a process that has everything.
	Router *routing.Router
	// Roster is what clients are told of the cluster's nodes, for a client at ip:port, "" when that is not
	// known. Nil: this process alone, as Config.Node describes it.
	Roster func(client string) wire.ClusterMetadata
	// Follower may be a voucher: then requests wait, and are refused, while its view is too old.
	Follower Follower
	Pool     *buffer.Pool
	Logger   hclog.Logger
	Registry prometheus.Registerer
	Events   *control.Publisher // nil: nobody is told
}

func (c *Config) fill() {
	def(&c.MaxFrame, wire.MaxFrameSize)
	def(&c.QUIC.Streams, 1)
	def(&c.QUIC.PacketSize, 1200)
	def(&c.QUIC.ReceiveWindow, 64<<20)
	def(&c.QUIC.StreamReceiveWindow, 64<<20)
	def(&c.WebSocket.ReadBuffer, 4<<10)
	def(&c.WebSocket.WriteBuffer, 4<<10)
	def(&c.WebSocket.MaxMessage, c.MaxFrame)
	def(&c.WebSocket.MaxFragment, 16<<20)
	def(&c.MaxConnections, 16384)
	def(&c.HandshakeGrace, 10*time.Second)
	def(&c.FrameGrace, 60*time.Second)
	def(&c.WriteGrace, 10*time.Second)
	def(&c.TokensPerUser, 100)
	def(&c.RetryFor, 25*time.Second)
	def(&c.RouteFor, 3*time.Second)
	def(&c.BusyFor, 300*time.Millisecond)
	def(&c.HoldFor, time.Second)
	def(&c.FactsFor, time.Second)
	def(&c.LocalSessions, 4096)
	def(&c.PasswordWorkers, defaultPasswordWorkers())
	def(&c.PasswordQueue, 256)
	def(&c.Cluster, "single-node")
	def(&c.Node.Name, "iggy-node")
	def(&c.Node.IP, "127.0.0.1")
	def(&c.Version, "0.11.0")
	def(&c.Semver, 11000)
	def(&c.DataDir, ".")
}

func def[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}
