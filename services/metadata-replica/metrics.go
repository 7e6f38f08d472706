package metadatareplica

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	ops         prometheus.Counter
	damaged     prometheus.Gauge
	nodes       prometheus.Gauge
	down        prometheus.Gauge
	copies      prometheus.Gauge
	unavailable prometheus.Gauge
	short       prometheus.Gauge
	primary     prometheus.Gauge
	view        prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		ops: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "whippet_metadata_ops_applied_total", Help: "Ops of the metadata log applied by this process.",
		}),
		damaged: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "whippet_metadata_damaged", Help: "1 while changes are refused because the metadata log lost acknowledged ops.",
		}),
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "whippet_metadata_" + name, Help: help})
	}
	m.nodes = gauge("nodes", "Registered nodes, at the metadata primary; 0 elsewhere.")
	m.down = gauge("nodes_down", "Registered nodes that give no sign of life, at the metadata primary.")
	m.copies = gauge("copies_down", "Copies of partitions on nodes that give no sign of life, at the metadata primary.")
	m.unavailable = gauge("partitions_unavailable", "Partitions of which most copies are on nodes that give no sign of life, at the metadata primary.")
	m.short = gauge("partitions_short", "Partitions of which a member gives no sign of life, at the metadata primary: they have fewer copies than they should.")
	m.primary = gauge("primary", "1 at the metadata primary; 0 elsewhere.")
	m.view = gauge("view", "View of the metadata group in which this process last took or lost a role.")
	m.role(true, 0) // until the group says otherwise: a group of one says nothing
	reg.MustRegister(m.ops, m.damaged, m.nodes, m.down, m.copies, m.unavailable, m.short, m.primary, m.view)
	return m
}

func (m *metrics) role(primary bool, view uint32) {
	m.view.Set(float64(view))
	m.primary.Set(0)
	if primary {
		m.primary.Set(1)
	}
}
