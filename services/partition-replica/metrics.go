package partitionreplica

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/loop"
)

// metrics are resolved once: nothing is looked up on the path of a message.
type metrics struct {
	messages, copied, polled            prometheus.Counter
	fenced, quarantined, fileErrors     prometheus.Counter
	lossStarts, lossOps                 prometheus.Counter
	transfers, transfersFailed          prometheus.Counter
	mended, scrubbed                    prometheus.Counter
	viewChanges                         prometheus.Counter
	unsettled, partitions, led, diskLow prometheus.Gauge
	loops                               *loop.Metrics
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		loops:           loop.NewMetrics(reg, "partition"),
		polled:          counter("whippet_polled_bytes_total", "Bytes of batches answered to polls."),
		fenced:          counter("whippet_partition_fenced_total", "Partitions taken out of service because of damage."),
		quarantined:     counter("whippet_partition_quarantined_total", "Partitions kept on disk although the metadata does not know them."),
		fileErrors:      counter("whippet_segment_write_errors_total", "Background segment writes that failed and are repeated."),
		lossStarts:      counter("whippet_accepted_loss_starts_total", "Starts after which acknowledged ops of the last second before a power cut may be missing."),
		lossOps:         counter("whippet_accepted_loss_ops_total", "Ops that are known to be lost in a power cut; what left no trace is not in it."),
		transfers:       counter("whippet_transfers_total", "States of partitions fetched from another member because the log no longer reached back."),
		transfersFailed: counter("whippet_transfers_failed_total", "Attempts to fetch a state that brought nothing; they are repeated."),
		mended:          counter("whippet_partition_mended_total", "Damaged segments restored from another member while the process ran."),
		scrubbed:        counter("whippet_scrubbed_bytes_total", "Bytes of sealed segments read again to verify them."),
		viewChanges:     counter("whippet_partition_view_changes_total", "Times this process took or lost the lead of a partition after it came up with it."),
		partitions:      gauge("whippet_partitions_hosted", "Partitions hosted by this process."),
		unsettled:       gauge("whippet_partitions_unsettled", "Partitions of a cluster this process hosts and does not fully take part in: their logs are being restored, or are behind, or their views change."),
		led:             gauge("whippet_partitions_led", "Partitions this process is the primary of, in a cluster."),
		diskLow:         gauge("whippet_disk_low", "1 while sends are refused because the disk is nearly full."),
	}
	committed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "whippet_messages_committed_total", Help: "Messages committed in partitions of this process, as their primary or as a backup.",
	}, []string{"role"})
	m.messages, m.copied = committed.WithLabelValues("primary"), committed.WithLabelValues("backup")
	reg.MustRegister(committed, m.polled, m.fenced, m.quarantined, m.fileErrors, m.lossStarts, m.lossOps, m.transfers, m.transfersFailed, m.mended, m.scrubbed, m.viewChanges, m.unsettled, m.partitions, m.led, m.diskLow)
	return m
}
