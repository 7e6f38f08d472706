package compare

import (
	"time"

	"github.com/whippet-mq/whippet/tools/bench"
	"github.com/whippet-mq/whippet/tools/floor"
)

// job is one row of the comparison.
type job struct {
	name   string
	load   bench.Workload
	floor  floor.Sync // what the denominator does
	three  bool       // three nodes that answer for each other, on both sides
	read   bool       // figures are of the consumers
	bytes  bool       // figures are MB/s, else requests per second
	atBest float64    // ratio asked for, 0 for none
}

func jobs(duration time.Duration) []job {
	load := func(producers, batch, size int) bench.Workload {
		return bench.Workload{
			Producers: producers, Partitions: max(producers, 1), Batch: batch, Size: size, Duration: duration, Warmup: duration / 5,
		}
	}
	synced := func(w bench.Workload) bench.Workload { w.Fsync = true; return w }
	read := bench.Workload{
		Consumers: 8, Partitions: 8, Batch: 1000, Size: 1000, Preload: 400_000, Duration: duration, Warmup: duration / 5,
	}
	single := bench.Workload{
		Consumers: 1, Batch: 100, PollCount: 1, Size: 1000, Preload: 50_000, Duration: duration, Warmup: duration / 5,
	}
	return []job{
		{name: "8 producers x 1000 x 1000 B", load: load(8, 1000, 1000), floor: floor.SyncNone, bytes: true, atBest: 0.5},
		{name: "8 consumers, warm read", load: read, floor: floor.SyncNone, read: true, bytes: true, atBest: 0.5},
		{name: "1 producer x 1 x 1000 B", load: load(1, 1, 1000), floor: floor.SyncNone},
		{name: "1 consumer x 1 x 1000 B", load: single, floor: floor.SyncNone, read: true},
		{name: "64 producers x 10 x 200 B", load: load(64, 10, 200), floor: floor.SyncNone},
		{name: "64 producers x 10 x 200 B, fsync / group sync", load: synced(load(64, 10, 200)), floor: floor.SyncGroup},
		{name: "64 producers x 10 x 200 B, fsync / sync each", load: synced(load(64, 10, 200)), floor: floor.SyncEach, atBest: 10},
		{name: "64 producers x 10 x 200 B, fsync / sync each, written blocks", load: synced(load(64, 10, 200)), floor: floor.SyncWritten},
		{name: "8 producers x 1000 x 1000 B, fsync / group sync", load: synced(load(8, 1000, 1000)), floor: floor.SyncGroup, bytes: true},
		{name: "three nodes: 8 producers x 1000 x 1000 B", load: load(8, 1000, 1000), floor: floor.SyncNone, three: true, bytes: true, atBest: 0.5},
		{name: "three nodes: 64 producers x 10 x 200 B, fsync / group sync", load: synced(load(64, 10, 200)), floor: floor.SyncGroup, three: true, atBest: 0.6},
	}
}

// figure is what one run of a job gave.
type figure struct {
	rate      float64 // MB/s or requests per second
	p50, p99  float64 // ms
	cpu       float64 // seconds of processor time per second measured
	perUnit   float64 // ms of processor time per GB or per 1000 requests
	allocated float64 // heap allocations per message, negative when unknown
}

func (j *job) figure(r *bench.Report, u usage) figure {
	side := r.Produced
	if j.read {
		side = r.Consumed
	}
	f := figure{
		p50: side.Latency.Quantiles["p50"] / 1e3, p99: side.Latency.Quantiles["p99"] / 1e3,
		cpu: u.cpu.Seconds() / r.Took.Seconds(), allocated: -1,
	}
	if j.bytes {
		f.rate = side.MBPerSecond
		f.perUnit = u.cpu.Seconds() * 1e3 / (float64(side.Bytes) / 1e9)
	} else {
		f.rate = side.RequestsPerSecond
		f.perUnit = u.cpu.Seconds() * 1e3 / (float64(side.Requests) / 1e3)
	}
	if u.mallocs > 0 && side.Messages > 0 {
		f.allocated = u.mallocs / float64(side.Messages)
	}
	return f
}

func (j *job) unit() string {
	if j.bytes {
		return "MB/s"
	}
	return "req/s"
}
