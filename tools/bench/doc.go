// Package bench drives a server with load and measures what comes back.
//
// It owns workloads (who sends and polls what, how fast, for how long), the clock of a measurement,
// and its report as text, JSON and a picture. It never verifies content: that is bench/verify.
//
// A Workload is set up once (streams, topics, groups), then every producer and consumer runs on a
// connection and a goroutine of its own and records into its own histogram and into shared
// counters per time slice; Run merges them into a Report.
//
// Latency has two faces. With a rate, every send has a time at which it was due, and its latency
// counts from there, so a stalled server is charged for all requests it held up: coordinated
// omission does not arise. Without a rate each producer sends when its last send was answered; what
// is measured is service time, and the report adds percentiles corrected for the requests that a
// steady client would have sent meanwhile.
package bench
