package link

import (
	"context"
	"net"
	"runtime"
	"sync"

	"github.com/whippet-mq/whippet/libs/wire"
)

// ServerConfig is what a Server is made of.
type ServerConfig struct {
	Options
	Service Service // answers all requests
	Feed    Feed    // serves followers; nil when this process has nothing to follow
	Window  int     // bytes of answers waiting on one connection beyond which its reads are refused, 0: 32 MiB
	Workers int     // goroutines for reads, 0: two for each processor, at least four
}

// Server is the service plane of a process: it lets other processes make calls on a Service of this one.
type Server struct {
	cfg     ServerConfig
	wrong   complaints
	count   *laneMetrics
	ctx     context.Context
	cancel  context.CancelFunc
	shaking chan struct{}
	reads   chan *served
	pool    sync.Pool // *served
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	listener []net.Listener
	conns    map[*Conn]struct{}
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) *Server {
	cfg.fill()
	if cfg.Window == 0 {
		cfg.Window = 32 << 20
	}
	if cfg.Workers == 0 {
		cfg.Workers = max(4, 2*runtime.GOMAXPROCS(0))
	}
	s := &Server{
		cfg: cfg, wrong: cfg.complaints(planeService), count: cfg.Metrics.lane(planeService, "server"),
		shaking: make(chan struct{}, maxHandshakes), reads: make(chan *served, 256*cfg.Workers), conns: map[*Conn]struct{}{},
	}
	s.pool.New = func() any {
		v := &served{call: NewCall()}
		v.call.owner = v
		return v
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for range cfg.Workers {
		s.running.Go(s.work)
	}
	return s
}

// Serve accepts connections until l is closed, by Close too, which is no error.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return l.Close()
	}
	s.listener = append(s.listener, l)
	s.mu.Unlock()
	return acceptEach(s.ctx, l, s.shaking, &s.wrong, func(conn net.Conn) {
		s.running.Go(func() { s.admit(conn) })
	})
}

func (s *Server) admit(conn net.Conn) {
	stop := context.AfterFunc(s.ctx, func() { conn.Close() })
	defer stop()
	conn, who, _, err := s.cfg.admit(conn, func(uint8) bool { return true })
	<-s.shaking
	if err != nil {
		complainAbout(s.ctx, &s.wrong, err, "connection refused", "from", conn.RemoteAddr())
		conn.Close()
		return
	}
	c := &Conn{server: s, who: who, stream: s.cfg.stream(conn, askingFrames, s.count)}
	c.stream.to = c
	if !s.enter(c) {
		c.stream.close()
		return
	}
	gauge := s.cfg.Metrics.connections.WithLabelValues(planeService)
	gauge.Inc()
	defer gauge.Dec()
	if err := c.stream.run(func() { s.leave(c) }); err != nil {
		complainAbout(s.ctx, &s.wrong, err, "connection ended", "node", who.ID)
	}
	if c.fed {
		s.cfg.Feed.Closed(c)
	}
}

func (s *Server) enter(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// serve hands a call to the service: one that reads on a worker, since it may wait for a disk and others
// stand behind it, and the rest at once.
func (s *Server) serve(v *served, reads bool) {
	if reads {
		select {
		case s.reads <- v:
		default:
			v.call.Refuse(wire.CodeTransientNotAccepted, ReasonBusy)
		}
		return
	}
	s.cfg.Service.Serve(v.call)
}

func (s *Server) work() {
	for {
		select {
		case v := <-s.reads:
			if v.conn.stream.out.waiting() >= s.cfg.Window { // its requester does not take what was answered before
				v.call.Refuse(wire.CodeTransientNotAccepted, ReasonBusy)
				continue
			}
			s.cfg.Service.Serve(v.call)
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) take() *served { return s.pool.Get().(*served) }

// giveBack clears a served call for the next request.
func (s *Server) giveBack(v *served) {
	release(v.call.Frame)
	release(v.call.OutFrame)
	v.call.Reset()
	v.conn = nil
	if cap(v.call.Out) > keptBytes {
		v.call.Out = nil
	}
	if cap(v.small) > keptBytes {
		v.small = nil
	}
	s.pool.Put(v)
}

// Close ends all connections, after what is queued was written as far as that takes no longer than half
// a second, and waits for their goroutines. Calls under way are answered to nobody.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	listeners := s.listener
	s.listener = nil
	open := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range open {
		c.stream.drain(closeGrace)
	}
	for _, c := range open {
		<-c.stream.done
	}
	s.cancel()
	s.running.Wait()
	for len(s.reads) > 0 {
		s.giveBack(<-s.reads)
	}
}
