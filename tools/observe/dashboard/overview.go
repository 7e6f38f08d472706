package dashboard

var overview = Dashboard{
	File: "overview", Title: "Whippet", About: "Whether the cluster is well, and what it does.",
	Rows: []Row{
		{"Is it well", []Panel{
			figure("Alerts", Number, Query{`count(ALERTS{alertstate="firing"}) or vector(0)`, "firing"}),
			figure("Ready", Number, Query{"sum by (job) (whippet_ready)", "{{job}}"}),
			figure("Metadata primaries", Number, Query{"sum(whippet_metadata_primary)", "want 1"}),
			figure("Silent replicas", Number, Query{"sum(whippet_metadata_nodes_down) + sum(whippet_metadata_members_down)", "want 0"}),
			figure("Under-replicated", Number, Query{"sum(whippet_partitions_under_replicated)", "partitions"}),
			figure("Unavailable", Number, Query{"sum(whippet_metadata_partitions_unavailable)", "partitions"}),
		}},
		{"What it does", []Panel{
			graph("Messages committed", PerSecond, Query{"cluster:whippet_messages_committed:rate1m", "messages"}),
			graph("Requests", PerSecond, Query{"op:whippet_requests:rate1m > 0", "{{op}}"}),
			graph("Refused requests", Share, Query{"cluster:whippet_requests_refused:ratio1m", "transient or failed"}).
				about("Share of requests answered with a status that says: not now, or an error of a disk."),
			graph("Latency", Seconds, Query{"op:whippet_request_seconds:p99", "{{op}} 99 %"}, Query{"op:whippet_request_seconds:p50", "{{op}} median"}),
			graph("Where the time goes", Seconds,
				Query{"hop:whippet_hop_seconds:p99", "call of {{hop}} 99 %"},
				Query{"plane:whippet_commit_seconds:p99", "commit of {{plane}} 99 %"},
				Query{"plane:whippet_journal_sync_seconds:p99", "sync of {{plane}} 99 %"}),
			graph("Bytes of clients", BytesPerSecond,
				Query{"sum(rate(whippet_client_read_bytes_total[1m]))", "in"}, Query{"sum(rate(whippet_client_written_bytes_total[1m]))", "out"}),
			graph("Messages stored", Number, Query{"max(messages)", "messages"}),
			graph("Bytes stored", Bytes, Query{"sum(whippet_partition_bytes)", "all copies"}),
			graph("Segments", Number, Query{"max(segments)", "segments"}),
		}},
		{"Control plane", []Panel{
			figure("Connected to NATS", Number, Query{"sum by (job) (whippet_control_connected)", "{{job}}"}),
			graph("Messages", PerSecond, Query{"sum by (job) (rate(whippet_control_messages_total[1m]))", "{{job}}"}),
			graph("Lost", PerSecond, Query{"sum by (job) (rate(whippet_control_dropped_total[1m]))", "{{job}}"}),
		}},
		{"Builds", []Panel{
			figure("Versions", Number, Query{"count by (version, commit) (whippet_build_info)", "{{version}} {{commit}}"}),
		}},
		{"Topics, with telemetry.per_topic", []Panel{
			graph("Messages", Number, Query{"topk(10, sum by (stream, topic) (whippet_topic_messages))", "{{stream}} {{topic}}"}),
			graph("Bytes", Bytes, Query{"topk(10, sum by (stream, topic) (whippet_topic_bytes))", "{{stream}} {{topic}}"}),
			graph("Consumer lag", Number, Query{"topk(10, sum by (stream, topic, kind, consumer) (whippet_topic_consumer_lag_messages))", "{{stream}} {{topic}} {{kind}} {{consumer}}"}),
			graph("Group members", Number, Query{"topk(10, whippet_topic_group_members)", "{{stream}} {{topic}} {{group}}"}),
			graph("Views", Number, Query{"topk(10, whippet_topic_view)", "{{stream}} {{topic}} {{partition}}"}).
				about("The partitions whose primaries changed most."),
		}},
	},
}
