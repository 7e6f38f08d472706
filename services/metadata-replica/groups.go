package metadatareplica

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// groups counts consumer groups and their members, and the members of the metadata group itself, when it is
// scraped. The primary alone shows them: each counts once in a cluster.
type groups struct {
	replica  *Replica
	perTopic bool
}

var (
	descGroups  = prometheus.NewDesc("whippet_consumer_groups", "Consumer groups; at the metadata primary.", nil, nil)
	descMembers = prometheus.NewDesc("whippet_consumer_group_members", "Members of all consumer groups; at the metadata primary.", nil, nil)
	descEmpty   = prometheus.NewDesc("whippet_consumer_groups_empty", "Consumer groups without a member; at the metadata primary.", nil, nil)
	descSilent  = prometheus.NewDesc("whippet_metadata_members_down", "Metadata replicas that give no answer; at the metadata primary.", nil, nil)
	descOfTopic = prometheus.NewDesc("whippet_topic_group_members", "Members of a consumer group; at the metadata primary.", []string{"stream", "topic", "group"}, nil)
)

// Describe implements prometheus.Collector.
func (g *groups) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descGroups, descMembers, descEmpty, descSilent} {
		ch <- d
	}
	if g.perTopic {
		ch <- descOfTopic
	}
}

// Collect implements prometheus.Collector.
func (g *groups) Collect(ch chan<- prometheus.Metric) {
	view := g.replica.View()
	if view == nil || !g.replica.group.Primary() {
		return
	}
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	all, members, empty := 0, 0, 0
	for _, stream := range view.Streams() {
		for _, topic := range stream.Topics() {
			for _, group := range topic.Groups() {
				all++
				members += len(group.Members)
				if len(group.Members) == 0 {
					empty++
				}
				if g.perTopic {
					gauge(descOfTopic, len(group.Members), label(stream.Name), label(topic.Name), label(group.Name))
				}
			}
		}
	}
	gauge(descGroups, all)
	gauge(descMembers, members)
	gauge(descEmpty, empty)
	gauge(descSilent, g.replica.group.Silent(g.replica.engine.Tick(), g.replica.config.Engine.Echoes))
}

// label is a name people gave as a label may be: names are any bytes.
func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }
