package control

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the series of the control plane of a process. A nil Metrics counts nothing.
type Metrics struct {
	messages, dropped prometheus.Counter
	connected         prometheus.Gauge
}

// NewMetrics registers the series with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "whippet_control_messages_total", Help: "Messages of the control plane published by this process.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "whippet_control_dropped_total", Help: "Events without room in the next message, and messages that could not be sent to NATS.",
		}),
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "whippet_control_connected", Help: "1 while connected to NATS; 0 also where none is configured.",
		}),
	}
	registry.MustRegister(m.messages, m.dropped, m.connected)
	return m
}

func (m *Metrics) sent() {
	if m != nil {
		m.messages.Inc()
	}
}

func (m *Metrics) drop(n uint64) {
	if m != nil {
		m.dropped.Add(float64(n))
	}
}

func (m *Metrics) connect(up bool) {
	switch {
	case m == nil:
	case up:
		m.connected.Set(1)
	default:
		m.connected.Set(0)
	}
}
