package loop

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/journal"
)

// Metrics are the series of the engines of one plane of a process. Observing allocates nothing and takes no
// lock; everything else is read when it is scraped.
type Metrics struct {
	commit, wrote, synced prometheus.Observer

	registry prometheus.Registerer
	labels   prometheus.Labels

	mu      sync.Mutex
	engines []*Engine
}

// NewMetrics registers the series of plane, "metadata" or "partition", with registry.
func NewMetrics(registry prometheus.Registerer, plane string) *Metrics {
	m := &Metrics{registry: registry, labels: prometheus.Labels{"plane": plane}}
	histogram := func(name, help string) prometheus.Observer {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "whippet_" + name, Help: help, ConstLabels: m.labels, Buckets: prometheus.ExponentialBuckets(20e-6, 2, 18),
		})
		registry.MustRegister(h)
		return h
	}
	m.commit = histogram("commit_seconds", "Time from the stamp of an operation to its execution, at the primary that stamped it.")
	m.wrote = histogram("journal_write_seconds", "Time a write of records to the journal takes.")
	m.synced = histogram("journal_sync_seconds", "Time a sync of the journal takes.")
	return m
}

// timing is what the journals of the engines report to. m may be nil.
func (m *Metrics) timing() (t journal.Timing) {
	if m != nil {
		t.Wrote = func(d time.Duration) { m.wrote.Observe(d.Seconds()) }
		t.Synced = func(d time.Duration) { m.synced.Observe(d.Seconds()) }
	}
	return t
}

// watch adds an engine before it serves. m may be nil.
func (m *Metrics) watch(e *Engine) {
	if m == nil {
		return
	}
	e.Loop.Committed = func(took uint64) { m.commit.Observe(float64(took) / 1e6) }
	m.mu.Lock()
	m.engines = append(m.engines, e)
	first := len(m.engines) == 1
	m.mu.Unlock()
	if first {
		m.publish()
	}
}

// publish registers what is read from the engines when it is scraped.
func (m *Metrics) publish() {
	sum := func(read func(*Engine) float64) func() float64 {
		return func() (n float64) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, e := range m.engines {
				n += read(e)
			}
			return n
		}
	}
	gauge := func(name, help string, read func(*Engine) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "whippet_" + name, Help: help, ConstLabels: m.labels}, sum(read)))
	}
	counter := func(name, help, label, value string, read func(*Counters) uint64) {
		labels := prometheus.Labels{"plane": m.labels["plane"]}
		if label != "" {
			labels[label] = value
		}
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "whippet_" + name, Help: help, ConstLabels: labels},
			sum(func(e *Engine) float64 { return float64(read(&e.Loop.Counters)) })))
	}
	gauge("journal_used_bytes", "Bytes of records the journal holds.", func(e *Engine) float64 { return float64(e.journal.Used()) })
	gauge("journal_budget_bytes", "Bytes of records the journal may hold.", func(e *Engine) float64 { return float64(e.journal.Limit()) })
	gauge("loop_inbox_events", "Events that wait for a turn of their event loop.", func(e *Engine) float64 { return float64(e.Queued()) })

	const repairs = "Operations of the log that were asked for because a member lacked them."
	counter("repaired_ops_total", repairs, "direction", "in", func(c *Counters) uint64 { return c.Fetched.Load() })
	counter("repaired_ops_total", repairs, "direction", "out", func(c *Counters) uint64 { return c.Served.Load() })

	dropped := func(reason string, read func(*Counters) uint64) {
		counter("loop_dropped_frames_total", "Frames of other members that were not taken, or not sent; what is missing is repaired.", "reason", reason, read)
	}
	dropped("malformed", func(c *Counters) uint64 { return c.Malformed.Load() })
	dropped("unknown_group", func(c *Counters) uint64 { return c.UnknownGroup.Load() })
	dropped("unknown_node", func(c *Counters) uint64 { return c.UnknownNode.Load() })
	dropped("inbox_full", func(c *Counters) uint64 { return c.Crowded.Load() })
	dropped("unsent", func(c *Counters) uint64 { return c.Unsent.Load() })
	dropped("does_not_fit", func(c *Counters) uint64 { return c.Refused.Load() })
	counter("protocol_faults_total", "Frames that no correct member sends.", "", "", func(c *Counters) (n uint64) {
		for i := range c.Faults {
			n += c.Faults[i].Load()
		}
		return n
	})
}
