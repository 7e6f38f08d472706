package link

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Options are what the connections of both planes need.
type Options struct {
	Node    *Node
	Secret  *Secret      // nil: authentication is off and node ids are believed
	TLS     *TLS         // nil: plaintext
	Pool    *buffer.Pool // where received frames live
	Log     hclog.Logger // nil: silence
	Metrics *Metrics     // nil: counted nowhere; one for all connections of a process

	MaxFrame   uint32        // bytes, 0: wire.MaxFrameSize
	Grace      time.Duration // for dialing, TLS and handshake together, 0: 10 s
	BudgetWait time.Duration // how long a frame waits for buffer budget, 0: 1 s
	Queue      int           // bytes that may wait to be written to one connection, 0: 32 MiB

	patience time.Duration // for the rest of a begun frame, 0: 10 s
	bare     bool          // no introduction: the replica plane of a mixed cluster
}

func (o *Options) fill() {
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = wire.MaxFrameSize
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.BudgetWait == 0 {
		o.BudgetWait = time.Second
	}
	if o.patience == 0 {
		o.patience = 10 * time.Second
	}
	if o.Queue == 0 {
		o.Queue = 32 << 20
	}
}

func (o *Options) complaints(plane string) complaints {
	return complaints{metrics: o.Metrics, plane: plane, log: o.Log, last: map[string]time.Time{}}
}

// stream makes the running half of a connection that got through its handshake.
func (o *Options) stream(conn net.Conn, allowed frameSet, count *laneMetrics) *stream {
	conn.SetDeadline(time.Time{})
	s := &stream{
		conn: conn, allowed: allowed, pool: o.Pool, maxFrame: o.MaxFrame, budgetWait: o.BudgetWait, patience: o.patience,
		count: count, done: make(chan struct{}),
	}
	s.out.init(o.Queue)
	return s
}

// connectTime is how long looking up a name and connecting may take. Packets to a machine that was away are
// repeated ever more seldom: another attempt is there sooner.
const connectTime = 2 * time.Second

// dial connects to address and gets through handshake and introduction as the dialing side. ctx ends it
// early.
func (o *Options) dial(ctx context.Context, address string, expect uint8, lane Lane) (net.Conn, Peer, error) {
	deadline := time.Now().Add(o.Grace)
	dialer := net.Dialer{Timeout: min(connectTime, o.Grace), KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, Peer{}, err
	}
	unblock := context.AfterFunc(ctx, func() { conn.Close() })
	defer unblock()
	conn.SetDeadline(deadline)
	tune(conn)
	if o.TLS != nil {
		conn = tls.Client(conn, o.TLS.dialing(address))
	}
	peer, err := o.introduceSelf(conn, expect, lane)
	if err != nil {
		conn.Close()
		return nil, Peer{}, err
	}
	return conn, peer, nil
}

func (o *Options) introduceSelf(conn net.Conn, expect uint8, lane Lane) (Peer, error) {
	if err := finishTLS(conn); err != nil {
		return Peer{}, err
	}
	s, err := newShaker(conn, o.Node, o.Secret)
	if err != nil {
		return Peer{}, err
	}
	proved, err := s.dial(expect)
	if err != nil || o.bare {
		return Peer{ID: proved}, err
	}
	return (&introduction{conn: conn, self: o.Node, lane: lane}).open(proved)
}

// admit gets through handshake and introduction as the accepting side.
func (o *Options) admit(conn net.Conn, may func(dialer uint8) bool) (net.Conn, Peer, Lane, error) {
	conn.SetDeadline(time.Now().Add(o.Grace))
	tune(conn)
	if o.TLS != nil {
		conn = tls.Server(conn, o.TLS.server)
	}
	if err := finishTLS(conn); err != nil {
		return conn, Peer{}, 0, err
	}
	s, err := newShaker(conn, o.Node, o.Secret)
	if err != nil {
		return conn, Peer{}, 0, err
	}
	proved, err := s.accept(may)
	if err != nil || o.bare {
		return conn, Peer{ID: proved}, Control, err
	}
	peer, lane, err := (&introduction{conn: conn, self: o.Node}).answer(proved)
	return conn, peer, lane, err
}

func finishTLS(conn net.Conn) error {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := t.Handshake(); err != nil {
		return refuse(refusedTLS, "TLS: %w", err)
	}
	return nil
}

// keepAlive finds out that a host is gone while nothing is sent to it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

// tune sets what every connection between processes wants of its socket.
func tune(conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive) // a socket without it works
		limitUnacknowledged(t)
	}
}
