package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Ops is the endpoint for the people and machines that run the process: /metrics, /healthz, /readyz
// and /debug/pprof on a port of its own.
type Ops struct {
	registry   *prometheus.Registry
	conditions conditions
	mu         sync.Mutex
	alive      map[string]func() error
	listener   net.Listener
	mux        *http.ServeMux
	paths      []string // for the index
	server     *http.Server
}

// NewOps opens the endpoint at ops.address and serves it at once. Until a condition is made and
// holds, /readyz answers 503.
func NewOps(c *Config, log hclog.Logger) (*Ops, error) {
	listener, err := Listen(c, "ops.address", c.Ops.Address, log)
	if err != nil {
		return nil, err
	}
	o := &Ops{
		registry:   prometheus.NewRegistry(),
		conditions: conditions{all: map[string]*Condition{}},
		alive:      map[string]func() error{},
		listener:   listener,
		mux:        http.NewServeMux(),
		paths:      []string{"/metrics", "/healthz", "/readyz", "/debug/pprof/"},
	}
	o.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(), o.readyGauge())
	o.routes()
	o.server = &http.Server{
		Handler:           o.mux,
		ReadHeaderTimeout: 5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.Named("ops").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	go func() {
		if err := o.server.Serve(listener); err != http.ErrServerClosed {
			log.Error("ops endpoint ended", "error", err)
		}
	}()
	return o, nil
}

// Registry is where the process registers its metrics. Names begin with whippet_.
func (o *Ops) Registry() *prometheus.Registry { return o.registry }

// Address is the really bound host:port.
func (o *Ops) Address() string { return o.listener.Addr().String() }

// Condition returns the named condition of /readyz and makes it, failing, if there is none.
func (o *Ops) Condition(name string) *Condition { return o.conditions.get(name) }

// Forget removes a condition that no longer applies, such as that of a deleted partition.
func (o *Ops) Forget(name string) { o.conditions.drop(name) }

// Alive adds a check to /healthz. It must return within a second and hold no lock that the checked
// part may hold for long: /healthz is what restarts a process that is stuck.
func (o *Ops) Alive(name string, check func() error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alive[name] = check
}

// Handle adds an endpoint for the operators of the process; path begins with "/".
func (o *Ops) Handle(path string, h http.Handler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paths = append(o.paths, path)
	o.mux.Handle("GET "+path, h)
}

// Close ends the endpoint, waiting for requests under way until ctx is done.
func (o *Ops) Close(ctx context.Context) error {
	if err := o.server.Shutdown(ctx); err != nil {
		return o.server.Close()
	}
	return nil
}

func (o *Ops) routes() {
	mux := o.mux
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 8}))
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, text := o.conditions.report()
		answer(w, ready, text)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		answer(w, true, strings.Join(o.paths, "\n")+"\n")
	})
}

func (o *Ops) healthz(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, healthy := "ok\n", true
	for name, check := range o.alive {
		if err := check(); err != nil {
			if healthy {
				text, healthy = "", false
			}
			text += fmt.Sprintf("failing %s: %v\n", name, err)
		}
	}
	answer(w, healthy, text)
}

func answer(w http.ResponseWriter, good bool, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, text)
}

func (o *Ops) readyGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "whippet_ready",
		Help: "1 while /readyz answers 200.",
	}, func() float64 {
		if ready, _ := o.conditions.report(); ready {
			return 1
		}
		return 0
	})
}

func buildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "whippet_build_info",
		Help:        "Always 1; the labels tell the build.",
		ConstLabels: prometheus.Labels{"version": Version, "commit": Commit},
	})
	g.Set(1)
	return g
}
