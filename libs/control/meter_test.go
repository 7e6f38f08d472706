package control

import (
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// dear is a collector that costs too much to be asked by the control plane.
type dear struct{ asked int }

func (d *dear) Describe(ch chan<- *prometheus.Desc) {
	ch <- prometheus.NewDesc("messages", "Messages.", nil, nil)
}
func (d *dear) Collect(chan<- prometheus.Metric) { d.asked++ }

// TestMeter reads rates, latencies and gauges of a second.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		m := NewMeter(registry)
		requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "whippet_requests_total", Help: "x"}, []string{"op", "code"})
		seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "whippet_request_seconds", Help: "x", Buckets: []float64{1, 2, 4}}, []string{"op"})
		led := prometheus.NewGauge(prometheus.GaugeOpts{Name: "whippet_partitions_led", Help: "x"})
		costly := &dear{}
		m.MustRegister(requests, seconds, led, costly)
		requests.WithLabelValues("send", "0").Add(1000)
		seconds.WithLabelValues("send").Observe(3.5) // before the first snapshot
		m.Snapshot()

		requests.WithLabelValues("send", "0").Add(40)
		requests.WithLabelValues("poll", "busy").Add(10)
		led.Set(5)
		for range 98 {
			seconds.WithLabelValues("send").Observe(0.5)
		}
		seconds.WithLabelValues("send").Observe(3)
		seconds.WithLabelValues("send").Observe(9)
		time.Sleep(2 * time.Second)
		s := m.Snapshot()
		if s.Interval != 2 || s.Requests != 25 || s.Refused != 5 || s.Led != 5 || s.Uptime < 2 || s.Memory == 0 {
			t.Errorf("%+v", s)
		}
		// 100 observations: 98 in (0, 1], one in (2, 4], one beyond. The 50th is at 50/98 of the first bucket, the
		// 99th at the end of (2, 4].
		if l := s.Latencies["send"]; math.Abs(l.P50-50.0/98) > 1e-9 || l.P99 != 4 {
			t.Errorf("latency %+v", l)
		}
		if _, there := s.Latencies["poll"]; there || len(s.Latencies) != 1 {
			t.Errorf("latencies %+v", s.Latencies)
		}
		if costly.asked != 0 {
			t.Error("a collector was asked for what no snapshot shows")
		}
		time.Sleep(time.Second)
		if s = m.Snapshot(); s.Requests != 0 || len(s.Latencies) != 0 || s.Led != 5 {
			t.Errorf("a quiet second: %+v", s)
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 3 {
			t.Errorf("the registry of the process has %d families, %v", len(families), err)
		}
		if !m.Unregister(led) || m.Snapshot().Led != 0 {
			t.Error("a collector that is gone is still shown")
		}
	})
}

func TestQuantiles(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		all  []bucket
		q    float64
		want float64
	}{
		{[]bucket{{1, 0}, {2, 10}, {inf, 10}}, 0.5, 1.5},
		{[]bucket{{1, 10}, {2, 10}, {inf, 10}}, 1, 1},
		{[]bucket{{1, 0}, {2, 0}, {inf, 3}}, 0.5, 2},
		{[]bucket{{inf, 3}}, 0.5, 0},
	} {
		if got := quantile(c.all, c.q); got != c.want {
			t.Errorf("%v of %v is %v, want %v", c.q, c.all, got, c.want)
		}
	}
}

// TestFiguresAreDocumented compares the series snapshots are made of with the page about metrics, which is compared
// with scrapes elsewhere.
func TestFiguresAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../deploy/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range Names() {
		if !strings.HasPrefix(name, "process_") && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("metrics.md does not know %s", name)
		}
	}
}
