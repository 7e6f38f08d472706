package frontdoor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// objects are the gauges the reference serves under these names, without a prefix: counts of what
// exists, as this front-door sees it when it is scraped.
type objects struct{ core *Core }

var (
	descStreams    = prometheus.NewDesc("streams", "Streams.", nil, nil)
	descTopics     = prometheus.NewDesc("topics", "Topics.", nil, nil)
	descPartitions = prometheus.NewDesc("partitions", "Partitions.", nil, nil)
	descSegments   = prometheus.NewDesc("segments", "Segments.", nil, nil)
	descMessages   = prometheus.NewDesc("messages", "Messages.", nil, nil)
	descUsers      = prometheus.NewDesc("users", "Users.", nil, nil)
	descClients    = prometheus.NewDesc("clients", "Client connections.", nil, nil)
)

// scrapeWait is how long a scrape waits for partition replicas: when they do not answer, the rest of the page is
// what somebody needs.
const scrapeWait = 300 * time.Millisecond

// Describe implements prometheus.Collector.
func (o *objects) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descStreams, descTopics, descPartitions, descSegments, descMessages, descUsers, descClients} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (o *objects) Collect(ch chan<- prometheus.Metric) {
	view := o.core.deps.Follower.View()
	var groups []uint64
	for _, stream := range view.Streams() {
		groups = appendGroups(groups, stream)
	}
	known := o.core.facts.soon(groups, scrapeWait)
	var t totals
	for _, stream := range view.Streams() {
		var one totals
		one, known = o.core.sumStream(stream, known)
		t.add(one)
	}
	counts := view.Counts()
	for _, g := range []struct {
		desc  *prometheus.Desc
		value float64
	}{
		{descStreams, float64(counts.Streams)}, {descTopics, float64(counts.Topics)}, {descPartitions, float64(counts.Partitions)},
		{descSegments, float64(t.segments)}, {descMessages, float64(t.messages)}, {descUsers, float64(counts.Users)},
		{descClients, float64(o.core.clients.len())},
	} {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value)
	}
}
