package node

import "github.com/prometheus/client_golang/prometheus"

// measure registers what every process shows, whatever its roles are.
func (n *node) measure() {
	gauge := func(name, help string, read func() float64) {
		n.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "whippet_" + name, Help: help}, read))
	}
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
