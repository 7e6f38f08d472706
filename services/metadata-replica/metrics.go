package metadatareplica

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	ops     prometheus.Counter
	damaged prometheus.Gauge
	nodes   prometheus.Gauge
	down    prometheus.Gauge
	copies  prometheus.Gauge
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
	reg.MustRegister(m.ops, m.damaged, m.nodes, m.down, m.copies)
	return m
}
