package frontdoor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/wire"
)

// metrics are the front-door's series. Handles of the success path are resolved at start: observing
// a request allocates nothing.
type metrics struct {
	connections prometheus.Gauge
	refused     prometheus.Counter // sockets beyond MaxConnections
	badFrames   prometheus.Counter
	overBudget  prometheus.Counter
	crowded     prometheus.Counter
	retries     prometheus.Counter
	bytesIn     prometheus.Counter
	bytesOut    prometheus.Counter

	logins, loginsDenied, loginsBusy prometheus.Counter
	lateFollower                     prometheus.Counter
	evicted                          *prometheus.CounterVec

	requests  *prometheus.CounterVec
	succeeded [256]prometheus.Counter // by operation
	reads     sync.Map                // wire.Cmd -> prometheus.Counter
	send      prometheus.Observer
	poll      prometheus.Observer
	other     prometheus.Observer
	metadata  prometheus.Observer // hops
	partition prometheus.Observer
	registry  prometheus.Registerer
	events    *control.Publisher
}

func newMetrics(registry prometheus.Registerer) *metrics {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	m := &metrics{registry: registry}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "whippet_" + name, Help: help})
		registry.MustRegister(c)
		return c
	}
	m.connections = prometheus.NewGauge(prometheus.GaugeOpts{Name: "whippet_connections", Help: "Open client connections."})
	registry.MustRegister(m.connections)
	m.refused = counter("connections_refused_total", "Sockets closed because there were too many.")
	m.badFrames = counter("bad_frames_total", "Connections closed for a frame of impossible size or kind.")
	m.overBudget = counter("requests_over_budget_total", "Requests refused because the buffer budget was used up.")
	m.crowded = counter("sends_crowded_total", "Large sends refused because their partition had no room for them in time.")
	m.retries = counter("retries_total", "Calls repeated inside the cluster.")
	m.bytesIn = counter("client_read_bytes_total", "Bytes of request frames.")
	m.bytesOut = counter("client_written_bytes_total", "Bytes of reply frames.")
	m.lateFollower = counter("late_follower_total", "Replies released before the own follower showed their op.")
	logins := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "whippet_logins_total", Help: "Login attempts."}, []string{"result"})
	registry.MustRegister(logins)
	m.logins, m.loginsDenied, m.loginsBusy = logins.WithLabelValues("ok"), logins.WithLabelValues("denied"), logins.WithLabelValues("busy")
	m.evicted = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "whippet_evictions_total", Help: "Evictions sent to clients."}, []string{"reason"})
	registry.MustRegister(m.evicted)
	m.evicted.WithLabelValues(wire.EvictStaleClient.String())
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "whippet_requests_total", Help: "Requests answered, by operation and code (0 = success)."}, []string{"op", "code"})
	registry.MustRegister(m.requests)
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "whippet_request_seconds", Help: "Time from a whole request frame to its reply.",
		Buckets: prometheus.ExponentialBuckets(50e-6, 2, 18),
	}, []string{"op"})
	registry.MustRegister(latency)
	m.send, m.poll, m.other = latency.WithLabelValues("send"), latency.WithLabelValues("poll"), latency.WithLabelValues("other")
	hop := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "whippet_hop_seconds", Help: "Time of one call from the front-door to a replica, the way there and back included.",
		Buckets: prometheus.ExponentialBuckets(20e-6, 2, 18),
	}, []string{"hop"})
	registry.MustRegister(hop)
	m.metadata, m.partition = hop.WithLabelValues("metadata"), hop.WithLabelValues("partition")
	for op := range m.succeeded {
		if o := wire.Operation(op); o.Known() {
			m.succeeded[op] = m.requests.WithLabelValues(o.String(), "0")
		}
	}
	return m
}

// observe counts one answered request.
func (m *metrics) observe(s *Session, start time.Time, in, out int) {
	m.bytesIn.Add(float64(in))
	m.bytesOut.Add(float64(out))
	op := s.header.Operation
	seconds := time.Since(start).Seconds()
	switch {
	case op == wire.OpSendMessages:
		m.send.Observe(seconds)
	case op == wire.OpNonReplicated && s.header.Code == wire.CmdPollMessages:
		m.poll.Observe(seconds)
	default:
		m.other.Observe(seconds)
	}
	switch {
	case s.reason != 0:
		m.evict(s.reason)
	case s.status != 0:
		m.requests.WithLabelValues(label(s), s.status.Name()).Inc()
	case s.result != 0:
		m.requests.WithLabelValues(label(s), s.result.Name()).Inc()
	case op == wire.OpNonReplicated:
		m.read(s.header.Code).Inc()
	case m.succeeded[op] != nil:
		m.succeeded[op].Inc()
	}
}

// called counts one call of a replica.
func (m *metrics) called(group uint64, took time.Duration) {
	if group == wire.MetadataGroup {
		m.metadata.Observe(took.Seconds())
	} else {
		m.partition.Observe(took.Seconds())
	}
}

// evict counts an eviction and tells of it.
func (m *metrics) evict(reason wire.EvictionReason) {
	m.evicted.WithLabelValues(reason.String()).Inc()
	m.events.Say(control.Event{Kind: control.Evicted, Reason: reason.String()})
}

// label names what a refused request asked for; numbers clients make up share one.
func label(s *Session) string {
	switch op := s.header.Operation; {
	case !op.Known():
		return "unknown"
	case op != wire.OpNonReplicated:
		return op.String()
	}
	return readLabel(s.header.Code)
}

func readLabel(code wire.Cmd) string {
	if !knownRead(code) {
		return "unknown"
	}
	return code.String()
}

func (m *metrics) read(code wire.Cmd) prometheus.Counter {
	if c, ok := m.reads.Load(code); ok {
		return c.(prometheus.Counter)
	}
	c := m.requests.WithLabelValues(readLabel(code), "0")
	if knownRead(code) {
		m.reads.Store(code, c)
	}
	return c
}
