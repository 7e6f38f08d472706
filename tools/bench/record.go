package bench

import (
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	lowest  = int64(time.Microsecond) // of a histogram; faster counts as this
	highest = int64(5 * time.Minute)
	digits  = 3

	sliceTime = 100 * time.Millisecond // width of a point of the throughput curve
	slices    = 36000                  // an hour; what comes later falls into the last slice
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(lowest, highest, digits) }

// counters count what one kind of actor got done, in total and per time slice.
type counters struct {
	messages, bytes, requests, errors atomic.Int64
	perSlice                          [slices]atomic.Int64 // messages
}

// meter is the clock of a measurement. Nothing is recorded before it opens.
type meter struct {
	opened         atomic.Int64 // ns since start, 0 while warming up
	start          time.Time
	sent, received counters
}

func (m *meter) open()        { m.opened.Store(max(1, int64(time.Since(m.start)))) }
func (m *meter) isOpen() bool { return m.opened.Load() != 0 }

// recorder is one actor's own measurements.
type recorder struct {
	meter   *meter
	counts  *counters
	latency *hdrhistogram.Histogram
	transit *hdrhistogram.Histogram // from producer to consumer
}

func (m *meter) recorder(c *counters) *recorder {
	return &recorder{m, c, newHistogram(), newHistogram()}
}

// record notes one request, answered at now, that moved messages of bytes in all.
func (r *recorder) record(now time.Time, took time.Duration, messages, bytes int64) {
	opened := r.meter.opened.Load()
	if opened == 0 {
		return
	}
	_ = r.latency.RecordValue(clamp(took)) // clamped, so always within range
	r.counts.requests.Add(1)
	r.counts.messages.Add(messages)
	r.counts.bytes.Add(bytes)
	at := (int64(now.Sub(r.meter.start)) - opened) / int64(sliceTime)
	r.counts.perSlice[min(max(at, 0), slices-1)].Add(messages)
}

func (r *recorder) arrived(after time.Duration, messages int64) {
	if r.meter.isOpen() {
		_ = r.transit.RecordValues(clamp(after), messages)
	}
}

func clamp(d time.Duration) int64 { return min(max(int64(d), lowest), highest) }

// corrected adds to a closed loop's latencies those of the requests that a client sending every
// interval would have sent while it waited.
func corrected(h *hdrhistogram.Histogram, interval time.Duration) *hdrhistogram.Histogram {
	out := newHistogram()
	if interval <= 0 {
		return out
	}
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		_ = out.RecordValues(bar.To, bar.Count)
		for missing := bar.To - int64(interval); missing >= int64(interval); missing -= int64(interval) {
			_ = out.RecordValues(missing, bar.Count)
		}
	}
	return out
}
