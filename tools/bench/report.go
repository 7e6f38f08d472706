package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// quantiles of a report.
var quantiles = []struct {
	Name string
	At   float64
}{{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}, {"max", 100}}

// Report is what a run measured.
type Report struct {
	Took     time.Duration `json:"took_ns"`
	Rate     float64       `json:"asked_messages_per_second,omitempty"`
	Produced *Side         `json:"produced,omitempty"`
	Consumed *Side         `json:"consumed,omitempty"`
}

// Side is what the producers or the consumers did.
type Side struct {
	Actors            int     `json:"actors"`
	Messages          int64   `json:"messages"`
	Bytes             int64   `json:"payload_bytes"`
	Requests          int64   `json:"requests"`
	Errors            int64   `json:"errors"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	MBPerSecond       float64 `json:"megabytes_per_second"`
	RequestsPerSecond float64 `json:"requests_per_second"`

	// Latency of a request: from when it was due with a rate, else service time.
	Latency Latency `json:"latency"`
	// Corrected for coordinated omission; closed loops only.
	Corrected *Latency `json:"latency_corrected,omitempty"`
	// Transit is from a message's making to its arrival at a consumer.
	Transit *Latency `json:"transit,omitempty"`

	// Curve is messages per second in each slice of the measurement.
	Slice time.Duration `json:"slice_ns"`
	Curve []float64     `json:"curve"`
}

// Latency is a distribution in microseconds.
type Latency struct {
	Count     int64              `json:"count"`
	Mean      float64            `json:"mean_us"`
	Quantiles map[string]float64 `json:"quantiles_us"`
	Points    []Point            `json:"points"` // of the whole distribution, for plots
}

// Point says that a share of At percent took at most Us microseconds.
type Point struct {
	At float64 `json:"percent"`
	Us float64 `json:"us"`
}

func micros(ns int64) float64 { return float64(ns) / 1e3 }

func summarize(h *hdrhistogram.Histogram) Latency {
	l := Latency{Count: h.TotalCount(), Mean: h.Mean() / 1e3, Quantiles: map[string]float64{}}
	for _, q := range quantiles {
		l.Quantiles[q.Name] = micros(h.ValueAtQuantile(q.At))
	}
	for _, b := range h.CumulativeDistribution() {
		l.Points = append(l.Points, Point{b.Quantile, micros(b.ValueAt)})
	}
	return l
}

// report merges the actors' records of a measurement that took as long.
func (r *run) report(took time.Duration) *Report {
	took = max(took, time.Millisecond)
	out := &Report{Took: took, Rate: r.Rate}
	if len(r.producers) > 0 {
		latency := merge(r.producers, func(p *producer) *hdrhistogram.Histogram { return p.latency })
		out.Produced = side(&r.meter.sent, len(r.producers), took, latency, r.Rate == 0)
	}
	if len(r.consumers) > 0 {
		latency := merge(r.consumers, func(c *consumer) *hdrhistogram.Histogram { return c.latency })
		out.Consumed = side(&r.meter.received, len(r.consumers), took, latency, true)
		if transit := merge(r.consumers, func(c *consumer) *hdrhistogram.Histogram { return c.transit }); transit.TotalCount() > 0 {
			l := summarize(transit)
			out.Consumed.Transit = &l
		}
	}
	return out
}

func side(c *counters, actors int, took time.Duration, latency *hdrhistogram.Histogram, closedLoop bool) *Side {
	seconds := took.Seconds()
	s := &Side{
		Actors: actors, Messages: c.messages.Load(), Bytes: c.bytes.Load(), Requests: c.requests.Load(), Errors: c.errors.Load(),
		Latency: summarize(latency), Slice: sliceTime,
	}
	s.MessagesPerSecond = float64(s.Messages) / seconds
	s.MBPerSecond = float64(s.Bytes) / seconds / 1e6
	s.RequestsPerSecond = float64(s.Requests) / seconds
	if closedLoop && s.Requests > 0 {
		every := time.Duration(float64(took) * float64(actors) / float64(s.Requests))
		l := summarize(corrected(latency, every))
		s.Corrected = &l
	}
	for i := range min(slices, int(took/sliceTime)) {
		s.Curve = append(s.Curve, float64(c.perSlice[i].Load())/sliceTime.Seconds())
	}
	return s
}

// WriteJSON writes everything that was measured.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the figures people look at first.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "measured %.2f s\n", r.Took.Seconds())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tmessages\tMB\tmsg/s\tMB/s\treq/s\terrors\t\n")
	row := func(name string, s *Side) {
		if s != nil {
			fmt.Fprintf(t, "%s\t%d\t%.1f\t%.0f\t%.1f\t%.0f\t%d\t\n", name, s.Messages, float64(s.Bytes)/1e6,
				s.MessagesPerSecond, s.MBPerSecond, s.RequestsPerSecond, s.Errors)
		}
	}
	row("produced", r.Produced)
	row("consumed", r.Consumed)
	fmt.Fprintf(t, "\t\t\t\t\t\t\t\n")
	fmt.Fprintf(t, "ms\tmean")
	for _, q := range quantiles {
		fmt.Fprintf(t, "\t%s", q.Name)
	}
	fmt.Fprintf(t, "\t\n")
	for _, l := range r.distributions() {
		fmt.Fprintf(t, "%s\t%.3f", l.name, l.Mean/1e3)
		for _, q := range quantiles {
			fmt.Fprintf(t, "\t%.3f", l.Quantiles[q.Name]/1e3)
		}
		fmt.Fprintf(t, "\t\n")
	}
	return t.Flush()
}

type distribution struct {
	name string
	*Latency
}

// distributions are the latencies a report holds, by name.
func (r *Report) distributions() (out []distribution) {
	add := func(name string, l *Latency) {
		if l != nil && l.Count > 0 {
			out = append(out, distribution{name, l})
		}
	}
	if s := r.Produced; s != nil {
		if r.Rate > 0 {
			add("send (from due time)", &s.Latency)
		} else {
			add("send (service)", &s.Latency)
			add("send (corrected)", s.Corrected)
		}
	}
	if s := r.Consumed; s != nil {
		add("poll (service)", &s.Latency)
		add("poll (corrected)", s.Corrected)
		add("producer to consumer", s.Transit)
	}
	return out
}
