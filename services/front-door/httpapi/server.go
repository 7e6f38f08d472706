package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	frontdoor "github.com/whippet-mq/whippet/services/front-door"
)

// Config is everything the interface is told. A zero field takes the default named beside it.
type Config struct {
	Address        string // host:port; port 0 picks a free one
	MaxRequestSize int    // largest body in bytes; 2 000 000
	MaxConnections int    // accepted sockets at one time; 16 384
	CORS           CORS
	JWT            JWT
	Metrics        string // path of the metrics page, "" for none
	CertFile       string // PEM chain; with KeyFile the interface speaks HTTPS only
	KeyFile        string

	HandshakeGrace time.Duration // TLS handshake and request headers; 10 s
	FrameGrace     time.Duration // a body must be complete within this plus 1 s per MiB; 60 s
	WriteGrace     time.Duration // an answer must leave within this plus 1 s per MiB; 10 s
	IdleGrace      time.Duration // a connection without a request is closed after this; 3 min
}

// budgetGrace is how long a request waits for buffer budget before it is refused.
const budgetGrace = time.Second

// Deps is what the interface works with.
type Deps struct {
	Local    *frontdoor.Local
	Logger   hclog.Logger
	Registry *prometheus.Registry // of the process; may be nil
}

// Server is the HTTP interface of a front-door.
type Server struct {
	cfg      Config
	local    *frontdoor.Local
	log      hclog.Logger
	registry *prometheus.Registry
	tokens   *tokens
	router   *router
	writes   *inFlight
	requests prometheus.Counter // nil without a metrics page
	view     atomic.Uint32      // of the metadata group, as last seen

	certificate atomic.Pointer[tls.Certificate]

	background sync.WaitGroup // sends whose callers do not wait

	listener net.Listener
	http     *http.Server
	done     chan struct{} // closed when the listener's goroutine has ended
}

// New prepares the interface. Nothing listens before Listen.
func New(cfg Config, deps Deps) (*Server, error) {
	cfg.fill()
	if err := cfg.CORS.trim(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, local: deps.Local, log: deps.Logger, registry: deps.Registry, writes: newInFlight()}
	if s.log == nil {
		s.log = hclog.NewNullLogger()
	}
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	var err error
	if s.tokens, err = newTokens(cfg.JWT); err != nil {
		return nil, err
	}
	if cfg.Metrics != "" && !strings.HasPrefix(cfg.Metrics, "/") {
		return nil, fmt.Errorf("http.metrics.endpoint %q does not begin with /", cfg.Metrics)
	}
	if cfg.Metrics != "" {
		s.requests = prometheus.NewCounter(prometheus.CounterOpts{Name: "http_requests_total", Help: "HTTP requests."})
		s.registry.MustRegister(s.requests)
	}
	s.router = s.routes()
	return s, s.prepare()
}

// prepare sets the HTTP server up: HTTP/1.1 and HTTP/2, the latter with TLS or by prior knowledge.
func (s *Server) prepare() error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler: s, Protocols: &protocols, ReadHeaderTimeout: s.cfg.HandshakeGrace, IdleTimeout: s.cfg.IdleGrace,
		MaxHeaderBytes: 64 << 10, ErrorLog: s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	if s.cfg.CertFile == "" {
		return nil
	}
	s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return s.certificate.Load(), nil
	}}
	return s.Reload()
}

// Reload reads the certificate files again, for the connections to come. After an error the
// certificate in force stays.
func (s *Server) Reload() error {
	if s.cfg.CertFile == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(s.cfg.CertFile, s.cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("http.tls certificate %q, key %q: %w", s.cfg.CertFile, s.cfg.KeyFile, err)
	}
	s.certificate.Store(&cert)
	return nil
}

// Listen binds the listener. Connections wait until Serve.
func (s *Server) Listen() (err error) {
	s.listener, err = net.Listen("tcp", s.cfg.Address)
	return err
}

// Serve serves what Listen bound, until Stop.
func (s *Server) Serve() {
	s.done = make(chan struct{})
	bounded := newBounded(s.listener, s.cfg.MaxConnections)
	go func() {
		defer close(s.done)
		if s.http.TLSConfig != nil {
			_ = s.http.ServeTLS(bounded, "", "")
		} else {
			_ = s.http.Serve(bounded)
		}
	}()
}

// Addr is the bound address, nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop closes the listener and lets requests in progress finish. It returns ctx's error when
// connections had to be cut.
func (s *Server) Stop(ctx context.Context) error {
	switch {
	case s.listener == nil:
		return nil
	case s.done == nil:
		return s.listener.Close()
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	<-s.done
	return errors.Join(err, s.settle(ctx))
}

// settle waits for the sends that nobody waits for.
func (s *Server) settle(ctx context.Context) error {
	settled := make(chan struct{})
	go func() {
		s.background.Wait()
		close(settled)
	}()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.requests != nil {
		s.requests.Inc()
	}
	c := &call{api: s, w: w, r: r}
	defer c.finish()
	preflight := r.Method == http.MethodOptions
	if s.cfg.CORS.Enabled {
		s.cfg.CORS.apply(r, w.Header(), preflight)
		if preflight {
			c.due(0)
			w.WriteHeader(http.StatusOK)
			return
		}
	}
	if err := s.serve(c); err != nil {
		c.fail(err)
	}
}

// serve finds the route and the caller, in this order, and runs the handler.
func (s *Server) serve(c *call) error {
	found, params, ok := s.router.find(c.r.URL.EscapedPath())
	if found == nil {
		return errNoRoute
	}
	h := found.handlers[c.r.Method]
	if h == nil {
		if c.r.Method != http.MethodOptions {
			set(c.w.Header(), "Allow", found.methods)
		}
		return &failure{status: http.StatusMethodNotAllowed, code: "method_not_allowed", bare: true}
	}
	c.route, c.params = found, params
	if !found.public {
		var err error
		if c.caller, err = s.authenticate(c.r, time.Now()); err != nil {
			return err
		}
	}
	if !ok {
		return badRequest("The path is not UTF-8.")
	}
	return h(c)
}

// sawView notes the metadata group's view as an answer showed it.
func (s *Server) sawView(view uint32) {
	for {
		old := s.view.Load()
		if view <= old || s.view.CompareAndSwap(old, view) {
			return
		}
	}
}

func (c *Config) fill() {
	def(&c.MaxRequestSize, 2_000_000)
	def(&c.MaxConnections, 16384)
	def(&c.HandshakeGrace, 10*time.Second)
	def(&c.FrameGrace, 60*time.Second)
	def(&c.WriteGrace, 10*time.Second)
	def(&c.IdleGrace, 3*time.Minute)
}

func def[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}
