package metadatareplica

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	ops     prometheus.Counter
	damaged prometheus.Gauge
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
	reg.MustRegister(m.ops, m.damaged)
	return m
}
