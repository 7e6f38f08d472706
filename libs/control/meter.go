package control

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// Meter makes snapshots of the metrics of a process. It stands in front of the process's registry and collects
// again only what a snapshot shows: other series may cost more than once a second is worth.
type Meter struct {
	prometheus.Registerer
	shown   *prometheus.Registry
	names   map[string]bool
	started time.Time

	// Of the snapshot before.
	at      time.Time
	rates   []float64
	buckets map[string][]bucket
}

// bucket is one of a histogram: how many observations were at most limit.
type bucket struct {
	limit float64
	count float64
}

// NewMeter returns a registerer that passes on to the registry of the process.
func NewMeter(registry prometheus.Registerer) *Meter {
	m := &Meter{Registerer: registry, shown: prometheus.NewRegistry(), names: Names(), started: time.Now(), at: time.Now()}
	m.shown.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Register implements prometheus.Registerer.
func (m *Meter) Register(c prometheus.Collector) error {
	if err := m.Registerer.Register(c); err != nil {
		return err
	}
	if m.shows(c) {
		return m.shown.Register(c)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (m *Meter) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := m.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (m *Meter) Unregister(c prometheus.Collector) bool {
	m.shown.Unregister(c)
	return m.Registerer.Unregister(c)
}

// descName finds the name in the text of a description, which has no other way to it.
var descName = regexp.MustCompile(`fqName: "([^"]*)"`)

// shows reports whether a snapshot has a figure of the collector.
func (m *Meter) shows(c prometheus.Collector) (found bool) {
	all := make(chan *prometheus.Desc)
	go func() { c.Describe(all); close(all) }()
	for d := range all {
		name := descName.FindStringSubmatch(d.String())
		found = found || name != nil && m.names[name[1]]
	}
	return found
}

// Snapshot measures. One goroutine calls it.
func (m *Meter) Snapshot() *Snapshot {
	families, err := m.shown.Gather()
	if err != nil && len(families) == 0 {
		return nil
	}
	byName := make(map[string]*dto.MetricFamily, len(families))
	for _, f := range families {
		byName[f.GetName()] = f
	}
	now := time.Now()
	seconds := now.Sub(m.at).Seconds()
	s := &Snapshot{Interval: seconds, Uptime: now.Sub(m.started).Seconds(), Latencies: map[string]Latency{}}
	m.at = now
	rates := make([]float64, len(figures))
	for i, f := range figures {
		value := sum(byName[f.name], f.label, f.value)
		rates[i] = value
		switch {
		case !f.rate:
			*f.field(s) = value
		case m.rates != nil && seconds > 0:
			*f.field(s) = max(0, value-m.rates[i]) / seconds
		}
	}
	m.rates = rates
	buckets := make(map[string][]bucket, len(timings))
	for _, t := range timings {
		now := bucketsOf(byName[t.name], t.label, t.value)
		buckets[t.key] = now
		if l, any := latency(m.buckets[t.key], now); any {
			s.Latencies[t.key] = l
		}
	}
	m.buckets = buckets
	return s
}

// chosen reports whether a series has the label that is asked for.
func chosen(m *dto.Metric, label, value string) bool {
	if label == "" {
		return true
	}
	other, not := strings.CutPrefix(value, "!")
	i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label })
	return i >= 0 && (m.GetLabel()[i].GetValue() == other) != not
}

func sum(f *dto.MetricFamily, label, value string) (total float64) {
	for _, m := range f.GetMetric() {
		if chosen(m, label, value) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

func bucketsOf(f *dto.MetricFamily, label, value string) []bucket {
	for _, m := range f.GetMetric() {
		if h := m.GetHistogram(); h != nil && chosen(m, label, value) {
			all := make([]bucket, 0, len(h.GetBucket())+1)
			for _, b := range h.GetBucket() {
				if !math.IsInf(b.GetUpperBound(), 1) {
					all = append(all, bucket{b.GetUpperBound(), float64(b.GetCumulativeCount())})
				}
			}
			return append(all, bucket{math.Inf(1), float64(h.GetSampleCount())})
		}
	}
	return nil
}

// latency reads the quantiles of what was observed between two readings of a histogram; false: nothing was.
func latency(before, now []bucket) (Latency, bool) {
	if len(now) == 0 {
		return Latency{}, false
	}
	since := slices.Clone(now)
	if len(before) == len(now) {
		for i := range since {
			since[i].count -= before[i].count
		}
	}
	if since[len(since)-1].count <= 0 {
		return Latency{}, false
	}
	return Latency{P50: quantile(since, 0.5), P99: quantile(since, 0.99)}, true
}

// quantile takes the observations of a bucket for evenly spread, as Prometheus does. Of what is beyond the last
// limit it says that limit.
func quantile(all []bucket, q float64) float64 {
	rank := q * all[len(all)-1].count
	low, below := 0.0, 0.0
	for _, b := range all {
		switch {
		case b.count < rank:
			low, below = b.limit, b.count
		case math.IsInf(b.limit, 1):
			return low
		default:
			return low + (b.limit-low)*(rank-below)/(b.count-below)
		}
	}
	return low
}
