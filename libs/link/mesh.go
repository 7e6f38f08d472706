package link

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// maxHandshakes bounds inbound connections that have not proved anything yet.
	maxHandshakes = 256
	// closeGrace is the time for the last frames of a closing connection.
	closeGrace = 500 * time.Millisecond
)

// MeshConfig is what a Mesh is made of. The functions are called on the goroutines of connections: they
// must not block and must not call SetPeers or Close.
type MeshConfig struct {
	Options
	// Receive takes a frame of another node. h is valid during the call. f is nil for a header alone;
	// otherwise it holds header and body, in this order, and belongs to the receiver.
	Receive func(from uint8, lane Lane, h *wire.Header, f *buffer.Frame)
	// Up tells that all lanes of a peer are connected, Down that its control lane is lost; they
	// alternate for each peer. May be nil.
	Up, Down func(p Peer)
}

// Mesh is the replica plane of a process: its connections to all other members of its groups. Between
// two nodes the one with the lower id dials, one control lane and one data lane for each loop of the
// process that has more of them; in a mixed cluster a single connection.
type Mesh struct {
	cfg      MeshConfig
	wrong    complaints
	control  *laneMetrics
	data     *laneMetrics
	ctx      context.Context
	cancel   context.CancelFunc
	shaking  chan struct{} // one token for each inbound handshake under way
	peers    [wire.FrontDoorID]atomic.Pointer[peer]
	running  sync.WaitGroup
	mu       sync.Mutex // set of peers and of listeners
	closed   bool
	listener []net.Listener
}

// NewMesh returns a mesh without peers. Its node must have an id below wire.FrontDoorID.
func NewMesh(cfg MeshConfig) *Mesh {
	cfg.fill()
	cfg.bare = cfg.Node.Mixed
	m := &Mesh{
		cfg: cfg, wrong: cfg.complaints(planeReplica), shaking: make(chan struct{}, maxHandshakes),
		control: cfg.Metrics.lane(planeReplica, "control"), data: cfg.Metrics.lane(planeReplica, "data"),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// SetPeers says which other nodes there are and where they listen. Nodes with a higher id than this one
// are dialed, those with a lower one may dial; nodes that are not listed any more are disconnected. A
// connection outlives a change of its peer's address.
func (m *Mesh) SetPeers(addresses map[uint8]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	for id := range m.peers {
		address, wanted := addresses[uint8(id)]
		wanted = wanted && uint8(id) != m.cfg.Node.ID
		p := m.peers[id].Load()
		switch {
		case p == nil && wanted:
			p = newPeer(m, uint8(id))
			p.where.set(address)
			m.peers[id].Store(p)
			if uint8(id) > m.cfg.Node.ID {
				m.running.Go(p.keepDialing)
			}
		case p != nil && wanted:
			p.where.set(address)
		case p != nil:
			m.peers[id].Store(nil)
			p.remove()
		}
	}
}

// Serve accepts connections of nodes with lower ids until l is closed, by Close too, which is no error.
func (m *Mesh) Serve(l net.Listener) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return l.Close()
	}
	m.listener = append(m.listener, l)
	m.mu.Unlock()
	return acceptEach(m.ctx, l, m.shaking, &m.wrong, func(conn net.Conn) {
		m.running.Go(func() { m.admit(conn) })
	})
}

// acceptEach hands accepted connections on, each with a token that whoever handles it gives back.
func acceptEach(ctx context.Context, l net.Listener, tokens chan struct{}, wrong *complaints, each func(net.Conn)) error {
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if conn != nil {
				conn.Close()
			}
			return nil
		case err != nil:
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				continue
			}
			wrong.add(refusedIO, "accept failed", "error", err)
			if !pause(ctx, 10*time.Millisecond) { // out of descriptors: it passes
				return nil
			}
			continue
		}
		select {
		case tokens <- struct{}{}:
			each(conn)
		default:
			wrong.add(refusedBusy, "too many connections that have not proved who they are", "from", conn.RemoteAddr())
			conn.Close()
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *Mesh) admit(conn net.Conn) {
	stop := context.AfterFunc(m.ctx, func() { conn.Close() })
	defer stop()
	admitted, who, at, err := m.cfg.admit(conn, func(dialer uint8) bool {
		return dialer < m.cfg.Node.ID && m.peers[dialer].Load() != nil
	})
	<-m.shaking
	if err != nil {
		m.complain(err, "connection refused", "from", conn.RemoteAddr())
		admitted.Close()
		return
	}
	p := m.peers[who.ID].Load()
	if p == nil {
		admitted.Close()
		return
	}
	if err := p.run(admitted, who, at, func() {}); err != nil {
		m.complain(err, "connection ended", "node", who.ID)
	}
}

// complain counts and logs what goes against the rules; a connection that merely ends does not.
func (m *Mesh) complain(err error, text string, args ...any) {
	complainAbout(m.ctx, &m.wrong, err, text, args...)
}

func complainAbout(ctx context.Context, wrong *complaints, err error, text string, args ...any) {
	if ctx.Err() != nil {
		return
	}
	var r *refusal
	switch {
	case errors.As(err, &r):
		wrong.add(r.reason, text, append(args, "error", err)...)
	case errors.Is(err, errRule):
		wrong.add(refusedFrame, text, append(args, "error", err)...)
	default:
		wrong.log.Debug(text, append(args, "error", err)...)
	}
}

// Send queues a frame for a node and never blocks. The header is copied. The body is borrowed until it is
// written if owner holds it, on which Send takes a reference of its own, and copied if owner is nil. False:
// the lane is not connected or its queue is full; the frame is dropped and counted.
func (m *Mesh) Send(node uint8, lane Lane, h *wire.Header, body []byte, owner *buffer.Frame) bool {
	var p *peer
	if node < wire.FrontDoorID {
		p = m.peers[node].Load()
	}
	count := m.metrics(lane)
	if p == nil {
		count.unconnected.Inc()
		return false
	}
	at := lane
	if m.cfg.Node.Mixed {
		at = Control
	}
	var s *stream
	if int(at) < len(p.lanes) {
		s = p.lanes[at].Load()
	}
	if s == nil {
		count.unconnected.Inc()
		return false
	}
	switch s.out.push(h, &post{body: body, owner: owner, urgent: lane == Control}, false) {
	case full:
		count.full.Inc()
		return false
	case ended:
		count.unconnected.Inc()
		return false
	}
	return true
}

func (m *Mesh) metrics(lane Lane) *laneMetrics {
	if lane == Control {
		return m.control
	}
	return m.data
}

// Peer is what is known of a node from when all its lanes are connected until its control lane is lost.
func (m *Mesh) Peer(node uint8) (Peer, bool) {
	if node < wire.FrontDoorID {
		if p := m.peers[node].Load(); p != nil {
			if known := p.shown.Load(); known != nil {
				return *known, true
			}
		}
	}
	return Peer{}, false
}

// Close ends all connections, after what is queued was written as far as that takes no longer than half
// a second, and waits for their goroutines.
func (m *Mesh) Close() {
	m.mu.Lock()
	m.closed = true
	listeners := m.listener
	m.listener = nil
	m.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	var leaving []*peer
	for id := range m.peers {
		if p := m.peers[id].Swap(nil); p != nil {
			p.drain()
			leaving = append(leaving, p)
		}
	}
	for _, p := range leaving {
		p.wait()
	}
	m.cancel()
	m.running.Wait()
}

func laneName(l Lane) string {
	if l == Control {
		return "control"
	}
	return "data " + strconv.Itoa(int(l)-1)
}
