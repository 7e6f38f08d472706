package bench

import (
	"io"
	"math"

	"github.com/whippet-mq/whippet/tools/bench/plot"
)

// WriteSVG draws throughput over time and latency by percentile.
func (r *Report) WriteSVG(w io.Writer) error {
	throughput := plot.Chart{Title: "Throughput", XLabel: "seconds", YLabel: "messages per second"}
	curve := func(name string, s *Side) {
		if s == nil {
			return
		}
		l := plot.Line{Name: name, Y: s.Curve}
		for i := range s.Curve {
			l.X = append(l.X, float64(i)*s.Slice.Seconds())
		}
		throughput.Lines = append(throughput.Lines, l)
	}
	curve("produced", r.Produced)
	curve("consumed", r.Consumed)

	latency := plot.Chart{Title: "Latency by percentile", XLabel: "percentile", YLabel: "milliseconds", LogY: true}
	for _, at := range []float64{0, 90, 99, 99.9, 99.99, 99.999} {
		latency.XTicks = append(latency.XTicks, plot.Tick{At: nines(at), Text: trim(at)})
	}
	for _, d := range r.distributions() {
		l := plot.Line{Name: d.name}
		for _, p := range d.Points {
			l.X, l.Y = append(l.X, nines(p.At)), append(l.Y, p.Us/1e3)
		}
		latency.Lines = append(latency.Lines, l)
	}
	return plot.Write(w, throughput, latency)
}

// nines spreads percentiles so that each further nine takes the same room.
func nines(percent float64) float64 { return -math.Log10(max(1-percent/100, 1e-5)) }

func trim(percent float64) string {
	if percent == 0 {
		return "0"
	}
	return plot.Short(percent)
}
