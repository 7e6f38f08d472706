package link

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of all connections of a process. Handles are resolved when a connection is made,
// so that counting a frame allocates nothing.
type Metrics struct {
	frames      *prometheus.CounterVec // plane, lane, direction
	bytes       *prometheus.CounterVec
	dropped     *prometheus.CounterVec // plane, lane, reason
	refused     *prometheus.CounterVec // plane, reason
	reconnects  *prometheus.CounterVec // plane
	failed      *prometheus.CounterVec // plane
	connections *prometheus.GaugeVec   // plane
}

// NewMetrics registers the series with registry; nil registers them nowhere.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "whippet_link_" + name, Help: help}, labels)
	}
	m := &Metrics{
		frames:      counter("frames_total", "Frames between processes.", "plane", "lane", "direction"),
		bytes:       counter("bytes_total", "Bytes of frames between processes.", "plane", "lane", "direction"),
		dropped:     counter("dropped_frames_total", "Frames between processes that were not sent or not taken.", "plane", "lane", "reason"),
		refused:     counter("refused_connections_total", "Connections between processes that failed to prove who they are, or broke a rule.", "plane", "reason"),
		reconnects:  counter("reconnects_total", "Connections made again after they were lost.", "plane"),
		failed:      counter("failed_dials_total", "Attempts to connect to another process that came to nothing.", "plane"),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "whippet_link_connections", Help: "Open connections between processes."}, []string{"plane"}),
	}
	for _, plane := range []string{planeReplica, planeService} {
		// Shown from the start: what never happened is 0.
		m.reconnects.WithLabelValues(plane)
		m.failed.WithLabelValues(plane)
		for _, reason := range refusals {
			m.refused.WithLabelValues(plane, reason)
		}
	}
	if registry != nil {
		registry.MustRegister(m.frames, m.bytes, m.dropped, m.refused, m.reconnects, m.failed, m.connections)
	}
	return m
}

// Why frames are dropped.
const (
	dropUnconnected = "unconnected"
	dropFull        = "queue_full"
	dropLost        = "connection_lost"
	dropSeal        = "seal"
	dropBudget      = "budget"
	dropField       = "field"
	dropUnasked     = "unasked"
)

// flow counts one direction of a lane.
type flow struct{ frames, bytes prometheus.Counter }

func (f *flow) add(frames, bytes int) {
	f.frames.Add(float64(frames))
	f.bytes.Add(float64(bytes))
}

// laneMetrics are the handles of one lane of a plane. Lanes for data share theirs.
type laneMetrics struct {
	in, out                      flow
	unconnected, full, lost      prometheus.Counter
	seal, budget, field, unasked prometheus.Counter
}

func (m *Metrics) lane(plane, lane string) *laneMetrics {
	flowOf := func(direction string) flow {
		return flow{frames: m.frames.WithLabelValues(plane, lane, direction), bytes: m.bytes.WithLabelValues(plane, lane, direction)}
	}
	drop := func(reason string) prometheus.Counter { return m.dropped.WithLabelValues(plane, lane, reason) }
	return &laneMetrics{
		in: flowOf("in"), out: flowOf("out"), unconnected: drop(dropUnconnected), full: drop(dropFull), lost: drop(dropLost),
		seal: drop(dropSeal), budget: drop(dropBudget), field: drop(dropField), unasked: drop(dropUnasked),
	}
}

// complaints counts what is wrong with connections, and writes each kind at most once a second: the
// other side decides how often it comes.
type complaints struct {
	metrics *Metrics
	plane   string
	log     hclog.Logger

	mu   sync.Mutex
	last map[string]time.Time
}

func (c *complaints) add(reason, text string, args ...any) {
	c.metrics.refused.WithLabelValues(c.plane, reason).Inc()
	c.mu.Lock()
	now := time.Now()
	due := now.Sub(c.last[reason]) >= time.Second || c.last[reason].IsZero()
	if due {
		c.last[reason] = now
	}
	c.mu.Unlock()
	if due {
		c.log.Warn(text, append(args, "reason", reason)...)
	}
}
