package frontdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Server is a running front-door: its listener, its connections and the duties that span them.
type Server struct {
	core *Core
	log  hclog.Logger

	local    *Local
	listener net.Listener
	tls      *tls.Config

	done  chan struct{} // closed by Stop: background duties end
	group sync.WaitGroup

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New prepares a front-door. Nothing listens before Start.
func New(cfg Config, deps Deps) (*Server, error) {
	core := newCore(cfg, deps)
	s := &Server{core: core, log: core.log, done: make(chan struct{}), conns: make(map[*conn]struct{})}
	s.local = newLocal(s)
	if cfg.TLS.Enabled {
		t, err := cfg.TLS.serverTLS()
		if err != nil {
			return nil, err
		}
		s.tls = t
	}
	return s, nil
}

// Start binds the listener and serves until Stop.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", s.core.cfg.Address)
	if err != nil {
		return err
	}
	s.listener = l
	if port := uint16(l.Addr().(*net.TCPAddr).Port); s.core.cfg.Node.TCP == 0 {
		s.core.cfg.Node.TCP = port
	}
	s.core.passwords = newPasswords(s.core.cfg.PasswordWorkers, s.core.cfg.PasswordQueue)
	s.group.Go(s.accept)
	s.group.Go(s.local.expire)
	if s.core.cfg.Heartbeat > 0 {
		s.group.Go(s.heartbeats)
	}
	return nil
}

// Addr is the bound address of the TCP listener, nil before Start.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// accept admits sockets until the listener closes.
func (s *Server) accept() {
	delay := 5 * time.Millisecond
	for {
		sock, err := s.listener.Accept()
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
		s.admit(sock)
	}
}

func (s *Server) admit(sock net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.core.stopping.Load() || len(s.conns) >= s.core.cfg.MaxConnections {
		s.core.metrics.refused.Inc()
		sock.Close()
		return
	}
	c := newConn(s, sock)
	s.conns[c] = struct{}{}
	s.group.Go(c.serve)
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Stop closes the listener, lets requests in progress finish and their replies leave, and closes
// every connection. Sessions stay registered, as after a crash: their clients may claim them again.
// It returns ctx's error when connections had to be cut.
func (s *Server) Stop(ctx context.Context) error {
	if s.core.stopping.Swap(true) {
		return nil
	}
	close(s.done)
	if s.listener != nil {
		s.listener.Close()
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
			c.raw.Close()
		}
		s.mu.Unlock()
		return ctx.Err()
	}
	if s.core.passwords != nil {
		s.core.passwords.Close()
	}
	return nil
}
