package partitionreplica

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A scrape looks at so many partitions in one turn of their loop: requests wait no longer for it.
const surveyAtOnce = 256

// surveyLimit is how long a scrape waits for the loops. What a loop that is stuck would say is what it said last.
const surveyLimit = time.Second

// survey counts, when it is scraped, what stands in the partitions of this process.
type survey struct {
	replica  *Replica
	perTopic bool
	last     atomic.Pointer[tally]
}

// kinds are the values of the label kind: who stores offsets.
var kinds = map[wire.ConsumerKind]string{wire.ConsumerSingle: "consumer", wire.ConsumerGroup: "group"}

// tally is what was found. Lags and topics are those of the partitions that are led here: each counts once in a
// cluster.
type tally struct {
	bytes, segments, uncommitted, waiting, exposed uint64

	lag, stored map[wire.ConsumerKind]uint64
	details     []detail
}

// detail is one led partition, for the series per topic.
type detail struct {
	key             metadata.TopicKey
	partition, view uint32
	bytes, messages uint64
	lags            []storedOffset // offset: messages behind
}

var (
	descBytes       = prometheus.NewDesc("whippet_partition_bytes", "Bytes of committed batches stored by this process.", nil, nil)
	descSegments    = prometheus.NewDesc("whippet_partition_segments", "Segment files of this process.", nil, nil)
	descUncommitted = prometheus.NewDesc("whippet_uncommitted_ops", "Operations in the logs of partitions that are not executed here.", nil, nil)
	descWaiting     = prometheus.NewDesc("whippet_waiting_calls", "Calls that wait for room in the pipeline of their partition.", nil, nil)
	descExposed     = prometheus.NewDesc("whippet_partitions_under_replicated", "Partitions led here of which a member gives no answer.", nil, nil)
	descLag         = prometheus.NewDesc("whippet_consumer_lag_messages", "Messages behind the stored offsets, in partitions led here.", []string{"kind"}, nil)
	descStored      = prometheus.NewDesc("whippet_consumer_offsets", "Stored offsets in partitions led here.", []string{"kind"}, nil)

	topicLabels       = []string{"stream", "topic", "partition"}
	descTopicBytes    = prometheus.NewDesc("whippet_topic_bytes", "Bytes of a partition, at its primary.", topicLabels, nil)
	descTopicMessages = prometheus.NewDesc("whippet_topic_messages", "Messages of a partition, at its primary.", topicLabels, nil)
	descTopicView     = prometheus.NewDesc("whippet_topic_view", "View of a partition, at its primary.", topicLabels, nil)
	descTopicLag      = prometheus.NewDesc("whippet_topic_consumer_lag_messages", "Messages behind a stored offset, at the primary.",
		append(topicLabels, "kind", "consumer"), nil)
)

// Describe implements prometheus.Collector.
func (s *survey) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBytes, descSegments, descUncommitted, descWaiting, descExposed, descLag, descStored} {
		ch <- d
	}
	if s.perTopic {
		for _, d := range []*prometheus.Desc{descTopicBytes, descTopicMessages, descTopicView, descTopicLag} {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (s *survey) Collect(ch chan<- prometheus.Metric) {
	t := s.take()
	if t == nil {
		return // the loops do not run yet
	}
	gauge := func(d *prometheus.Desc, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(descBytes, t.bytes)
	gauge(descSegments, t.segments)
	gauge(descUncommitted, t.uncommitted)
	gauge(descWaiting, t.waiting)
	gauge(descExposed, t.exposed)
	for kind, name := range kinds {
		gauge(descLag, t.lag[kind], name)
		gauge(descStored, t.stored[kind], name)
	}
	view := s.replica.follower.View()
	for i := range t.details {
		d := &t.details[i]
		topic := view.TopicByKey(d.key)
		if topic == nil {
			continue
		}
		stream := view.Stream(wire.NumericID(d.key.Stream))
		labels := []string{label(stream.Name), label(topic.Name), strconv.FormatUint(uint64(d.partition), 10)}
		gauge(descTopicBytes, d.bytes, labels...)
		gauge(descTopicMessages, d.messages, labels...)
		gauge(descTopicView, uint64(d.view), labels...)
		for _, l := range d.lags {
			gauge(descTopicLag, l.offset, append(labels[:3:3], kinds[l.key.kind], consumerLabel(view, d.key, l.key))...)
		}
	}
}

// label is a name people gave as a label may be: names are any bytes.
func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// consumerLabel names a group, or numbers a consumer.
func consumerLabel(view *metadata.View, topic metadata.TopicKey, k offsetKey) string {
	if k.kind == wire.ConsumerGroup {
		if g := view.GroupByKey(metadata.GroupKey{Stream: topic.Stream, Topic: topic.Topic, Group: k.id}); g != nil {
			return label(g.Name)
		}
	}
	return strconv.FormatUint(uint64(k.id), 10)
}

// take asks the loops, some partitions a turn.
func (s *survey) take() *tally {
	r := s.replica
	if !r.started.Load() {
		return nil
	}
	t := &tally{lag: map[wire.ConsumerKind]uint64{}, stored: map[wire.ConsumerKind]uint64{}}
	limit := time.NewTimer(surveyLimit)
	defer limit.Stop()
	for _, e := range r.engines {
		all := r.of(e)
		for len(all) > 0 {
			some := all[:min(len(all), surveyAtOnce)]
			all = all[len(some):]
			done := make(chan struct{})
			e.Do(func() {
				defer close(done)
				for _, p := range some {
					t.add(p, s.perTopic)
				}
			})
			select {
			case <-done:
			case <-limit.C: // t is the loop's now, for as long as it likes
				return s.last.Load()
			case <-r.stop:
				return s.last.Load()
			}
		}
	}
	s.last.Store(t)
	return t
}

// add counts a partition. Called in a turn.
func (t *tally) add(p *Partition, detailed bool) {
	if p.replica.find(p.id) != p {
		return // deleted, or replaced, meanwhile
	}
	st := p.log.Stats()
	t.bytes += uint64(st.Bytes)
	t.segments += uint64(st.Segments)
	t.uncommitted += p.group.Uncommitted()
	t.waiting += uint64(p.group.Waiting())
	if !p.leads() {
		return
	}
	if p.group.Silent(p.engine.Tick(), p.replica.config.Engine.Echoes) > 0 {
		t.exposed++
	}
	var lags []storedOffset
	p.offsets.behind(st.Next, func(k offsetKey, messages uint64) {
		t.lag[k.kind] += messages
		t.stored[k.kind]++
		if detailed {
			lags = append(lags, storedOffset{k, messages})
		}
	})
	if detailed {
		t.details = append(t.details, detail{
			key: metadata.TopicKey{Stream: p.stream, Topic: p.topic}, partition: p.number, view: p.group.View(),
			bytes: uint64(st.Bytes), messages: st.Next - st.Start, lags: lags,
		})
	}
}
