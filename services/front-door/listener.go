package frontdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Server is a running front-door: its listeners, its connections and the duties that span them.
type Server struct {
	core *Core
	log  hclog.Logger

	local    *Local
	listener net.Listener
	tls      *tls.Config
	quic     *quicListener // nil when it is off
	quicTLS  *tls.Config
	web      net.Listener // nil when it is off
	webTLS   *tls.Config

	done  chan struct{} // closed by Stop: background duties end
	group sync.WaitGroup

	mu        sync.Mutex
	conns     map[connection]struct{}
	connected atomic.Int64 // len(conns), for those who may not wait
}

// connection is one client's, whatever carries it.
type connection interface {
	serve()     // until the client is gone, or interrupt and the end of the request at hand
	interrupt() // ends a wait for the next request
	cut()       // ends the connection at once
}

// New prepares a front-door. Nothing listens before Start.
func New(cfg Config, deps Deps) (*Server, error) {
	core := newCore(cfg, deps)
	s := &Server{core: core, log: core.log, done: make(chan struct{}), conns: make(map[connection]struct{})}
	s.local = newLocal(s)
	var tcp, web, quic error
	if cfg.TLS.Enabled {
		s.tls, tcp = cfg.TLS.serverTLS()
	}
	if cfg.WebSocket.TLS.Enabled && cfg.WebSocket.Address != "" {
		s.webTLS, web = cfg.WebSocket.TLS.serverTLS()
	}
	if cfg.QUIC.Address != "" {
		s.quicTLS, quic = cfg.QUIC.serverTLS()
	}
	if err := errors.Join(tcp, web, quic); err != nil {
		return nil, err
	}
	return s, nil
}

// Start binds the listeners and serves until Stop.
func (s *Server) Start() error {
	if err := s.listen(); err != nil {
		s.closeListeners()
		if s.quic != nil {
			s.quic.close()
		}
		return err
	}
	s.core.passwords = newPasswords(s.core.cfg.PasswordWorkers, s.core.cfg.PasswordQueue)
	if s.listener != nil {
		s.group.Go(func() { s.accept(s.listener, func(sock net.Conn) connection { return newConn(s, sock) }) })
	}
	if s.web != nil {
		s.group.Go(func() { s.accept(s.web, func(sock net.Conn) connection { return newWebConn(s, sock) }) })
	}
	if s.quic != nil {
		s.group.Go(s.acceptQUIC)
	}
	s.group.Go(s.local.expire)
	if s.core.cfg.Heartbeat > 0 {
		s.group.Go(s.heartbeats)
	}
	if s.core.deps.Router != nil {
		s.group.Go(s.claim)
	}
	return nil
}

// listen binds all listeners, so that the roster is whole before the first request.
func (s *Server) listen() (err error) {
	cfg := &s.core.cfg
	if cfg.Address != "" {
		if s.listener, err = net.Listen("tcp", cfg.Address); err != nil {
			return err
		}
		def(&cfg.Node.TCP, uint16(s.listener.Addr().(*net.TCPAddr).Port))
	}
	if cfg.QUIC.Address != "" {
		if s.quic, err = s.listenQUIC(); err != nil {
			return err
		}
		def(&cfg.Node.QUIC, uint16(s.quic.udp.LocalAddr().(*net.UDPAddr).Port))
	}
	if cfg.WebSocket.Address != "" {
		if s.web, err = net.Listen("tcp", cfg.WebSocket.Address); err != nil {
			return err
		}
		def(&cfg.Node.WebSocket, uint16(s.web.Addr().(*net.TCPAddr).Port))
	}
	return nil
}

// closeListeners ends the accepting of connections; those there are go on.
func (s *Server) closeListeners() {
	if s.listener != nil {
		s.listener.Close()
	}
	if s.web != nil {
		s.web.Close()
	}
	if s.quic != nil {
		_ = s.quic.listener.Close()
	}
}

// Addr is the bound address of the TCP listener, nil when it is off.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// QUICAddr is the bound address of the QUIC listener, nil when it is off.
func (s *Server) QUICAddr() net.Addr {
	if s.quic == nil {
		return nil
	}
	return s.quic.udp.LocalAddr()
}

// WebSocketAddr is the bound address of the WebSocket listener, nil when it is off.
func (s *Server) WebSocketAddr() net.Addr {
	if s.web == nil {
		return nil
	}
	return s.web.Addr()
}

// accept admits sockets until the listener closes.
func (s *Server) accept(l net.Listener, open func(net.Conn) connection) {
	delay := 5 * time.Millisecond
	for {
		sock, err := l.Accept()
		if err != nil {
			if s.core.stopping.Load() || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, most likely: waiting is all that helps.
			s.log.Warn("accept failed", "error", err)
			select {
			case <-time.After(delay):
			case <-s.done:
				return
			}
			delay = min(2*delay, time.Second)
			continue
		}
		delay = 5 * time.Millisecond
		if !s.admit(func() connection { return open(sock) }) {
			sock.Close()
		}
	}
}

// admit serves a connection unless there are too many. Only accepting goroutines call it.
func (s *Server) admit(open func() connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.core.stopping.Load() || len(s.conns) >= s.core.cfg.MaxConnections {
		s.core.metrics.refused.Inc()
		return false
	}
	c := open()
	s.conns[c] = struct{}{}
	s.connected.Store(int64(len(s.conns)))
	s.group.Go(func() {
		c.serve()
		s.forget(c)
	})
	return true
}

func (s *Server) forget(c connection) {
	s.mu.Lock()
	delete(s.conns, c)
	s.connected.Store(int64(len(s.conns)))
	s.mu.Unlock()
}

// Stop closes the listeners, lets requests in progress finish and their replies leave, and closes
// every connection. Sessions stay registered, as after a crash: their clients may claim them again.
// It returns ctx's error when connections had to be cut.
func (s *Server) Stop(ctx context.Context) error {
	if deadline, limited := ctx.Deadline(); limited {
		s.core.stop(deadline)
	}
	if s.core.stopping.Swap(true) {
		return nil
	}
	close(s.done)
	s.closeListeners()
	if s.quic != nil {
		defer s.quic.close()
	}
	s.mu.Lock()
	for c := range s.conns {
		c.interrupt()
	}
	s.mu.Unlock()
	drained := make(chan struct{})
	go func() {
		s.group.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.conns {
			c.cut()
		}
		s.mu.Unlock()
		return ctx.Err()
	}
	if s.core.passwords != nil {
		s.core.passwords.Close()
	}
	return nil
}
