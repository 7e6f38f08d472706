package node

import "github.com/prometheus/client_golang/prometheus"

// measure registers what every process shows, whatever its roles are.
func (n *node) measure() {
	gauge := func(name, help string, read func() float64) {
		n.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "whippet_" + name, Help: help}, read))
	}
	gauge("buffer_used_bytes", "Buffer budget in use.", func() float64 { return float64(n.pool.Used()) })
	gauge("buffer_budget_bytes", "Buffer budget.", func() float64 { return float64(n.pool.Budget()) })
	n.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "whippet_buffers_leaked_total", Help: "Buffers that were collected instead of released.",
	}, func() float64 { return float64(n.pool.Leaked()) }))
	gauge("metadata_op", "Operation up to which this process knows the metadata.", func() float64 {
		return float64(n.follower.View().Op)
	})
	if !n.roles.Metadata && !n.roles.Partition {
		return
	}
	space := func() (total, free uint64) {
		total, free, err := n.fs.Space()
		if err != nil {
			return 0, 0
		}
		return total, free
	}
	gauge("disk_size_bytes", "Size of the file system of the data directory.", func() float64 {
		total, _ := space()
		return float64(total)
	})
	gauge("disk_free_bytes", "Free bytes of the file system of the data directory.", func() float64 {
		_, free := space()
		return float64(free)
	})
}
