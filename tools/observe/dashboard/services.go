package dashboard

var frontDoor = Dashboard{
	File: "front-door", Title: "Whippet front-doors", About: "Clients: connections, requests, latencies, and the calls behind them.",
	Rows: []Row{
		{"Clients", []Panel{
			figure("Ready", Number, Query{`sum(whippet_ready{job="front-door"})`, "front-doors"}),
			figure("Connections", Number, Query{"sum(whippet_connections)", "open"}),
			figure("Logged in", Number, Query{`sum(clients{job="front-door"})`, "sessions"}),
			graph("Connections", Number, Query{"whippet_connections", "{{instance}}"}),
			graph("Logins", PerSecond, Query{"sum by (result) (rate(whippet_logins_total[1m]))", "{{result}}"}).
				about("Busy: more logins at once than password checks are allowed to wait."),
			graph("Turned away", PerSecond,
				Query{"sum(rate(whippet_connections_refused_total[1m]))", "too many connections"},
				Query{"sum(rate(whippet_bad_frames_total[1m]))", "bad frames"},
				Query{"sum(rate(whippet_evictions_total[1m]))", "evictions"}),
		}},
		{"Requests", []Panel{
			graph("Requests", PerSecond, Query{"sum by (op) (rate(whippet_requests_total[1m])) > 0", "{{op}}"}),
			graph("Refused requests", PerSecond, Query{`sum by (op, code) (rate(whippet_requests_total{code!="0"}[1m])) > 0 or vector(0)`, "{{op}} {{code}}"}),
			graph("HTTP requests", PerSecond, Query{"sum by (instance) (rate(http_requests_total[1m]))", "{{instance}}"}),
			graph("Send", Seconds, quantiles("whippet_request_seconds", `op="send"`, "", "")...),
			graph("Poll", Seconds, quantiles("whippet_request_seconds", `op="poll"`, "", "")...),
			graph("Everything else", Seconds, quantiles("whippet_request_seconds", `op="other"`, "", "")...),
			graph("Bytes of clients", BytesPerSecond,
				Query{"sum by (instance) (rate(whippet_client_read_bytes_total[1m]))", "{{instance}} in"},
				Query{"sum by (instance) (rate(whippet_client_written_bytes_total[1m]))", "{{instance}} out"}),
			graph("Refused for memory", PerSecond, Query{"sum by (instance) (rate(whippet_requests_over_budget_total[1m]))", "{{instance}}"},
				Query{"sum by (instance) (rate(whippet_sends_crowded_total[1m]))", "{{instance}} large sends"}),
		}},
		{"Behind", []Panel{
			graph("Calls of replicas", Seconds, quantiles("whippet_hop_seconds", "", ", hop", "{{hop}} ")...).
				about("One attempt, the way there and back included."),
			graph("Calls", PerSecond, Query{"sum by (hop) (rate(whippet_hop_seconds_count[1m]))", "{{hop}}"}),
			graph("Calls repeated", PerSecond, Query{"sum by (instance) (rate(whippet_retries_total[1m]))", "{{instance}}"}),
			graph("Metadata behind", Number, Query{`scalar(max(whippet_metadata_op)) - whippet_metadata_op{job="front-door"}`, "{{instance}}"}).
				about("Operations of the metadata this front-door does not know yet."),
			graph("Replies before the own copy", PerSecond, Query{"sum by (instance) (rate(whippet_late_follower_total[1m]))", "{{instance}}"}).
				about("Replies released although the own copy of the metadata did not show their operation in time."),
		}},
		between("front-door"),
		process("front-door"),
	},
}

var metadataReplica = Dashboard{
	File: "metadata-replica", Title: "Whippet metadata replicas", About: "Streams, users, groups and nodes: who leads, how fast changes commit.",
	Rows: []Row{
		{"Group", []Panel{
			figure("Ready", Number, Query{`sum(whippet_ready{job="metadata-replica"})`, "replicas"}),
			figure("Silent members", Number, Query{"sum(whippet_metadata_members_down)", "replicas"}),
			figure("Damaged", Number, Query{"sum(whippet_metadata_damaged)", "replicas"}),
			graph("Primary", Number, Query{"whippet_metadata_primary", "{{instance}}"}),
			graph("View", Number, Query{"whippet_metadata_view", "{{instance}}"}).about("It grows with every change of the primary."),
			graph("Operations behind", Number, Query{`scalar(max(whippet_metadata_op)) - whippet_metadata_op{job="metadata-replica"}`, "{{instance}}"}),
		}},
		{"What it holds", []Panel{
			figure("Streams", Number, Query{"max(streams)", "streams"}),
			figure("Topics", Number, Query{"max(topics)", "topics"}),
			figure("Partitions", Number, Query{"max(partitions)", "partitions"}),
			figure("Users", Number, Query{"max(users)", "users"}),
			figure("Consumer groups", Number, Query{"sum(whippet_consumer_groups)", "groups"}, Query{"sum(whippet_consumer_groups_empty)", "without a member"}),
			figure("Group members", Number, Query{"sum(whippet_consumer_group_members)", "members"}),
			graph("Partition replicas", Number,
				Query{"sum(whippet_metadata_nodes)", "registered"}, Query{"sum(whippet_metadata_nodes_down)", "silent"}),
			graph("Copies on silent replicas", Number, Query{"sum(whippet_metadata_copies_down)", "copies"},
				Query{"sum(whippet_metadata_partitions_unavailable)", "partitions without a majority"},
				Query{"sum(whippet_metadata_partitions_short)", "partitions a copy short"}),
		}},
		{"Changes", []Panel{
			graph("Operations", PerSecond, Query{"rate(whippet_metadata_ops_applied_total[1m])", "{{instance}}"}),
			graph("Commit", Seconds, quantiles("whippet_commit_seconds", `plane="metadata"`, "", "")...),
			graph("Sync of the journal", Seconds, quantiles("whippet_journal_sync_seconds", `plane="metadata"`, "", "")...),
			graph("Write to the journal", Seconds, quantiles("whippet_journal_write_seconds", `plane="metadata"`, "", "")...),
			journal("metadata"),
			graph("Waiting events", Number, Query{`whippet_loop_inbox_events{plane="metadata"}`, "{{instance}}"}),
			repairs("metadata"),
			dropped("metadata"),
			disk("metadata-replica"),
		}},
		between("metadata-replica"),
		process("metadata-replica"),
	},
}

var partitionReplica = Dashboard{
	File: "partition-replica", Title: "Whippet partition replicas", About: "Messages: what is committed, how fast, and whether all copies are there.",
	Rows: []Row{
		{"Partitions", []Panel{
			figure("Ready", Number, Query{`sum(whippet_ready{job="partition-replica"})`, "replicas"}),
			figure("Under-replicated", Number, Query{"sum(whippet_partitions_under_replicated)", "partitions"}),
			figure("Not taking part", Number, Query{"sum(whippet_partitions_unsettled)", "copies"}).
				about("Copies whose logs are being restored, or are behind, or whose views change."),
			graph("Hosted", Number, Query{"whippet_partitions_hosted", "{{instance}}"}),
			graph("Led", Number, Query{"whippet_partitions_led", "{{instance}}"}),
			graph("Leads taken or lost", PerSecond, Query{"rate(whippet_partition_view_changes_total[1m])", "{{instance}}"}),
		}},
		{"Messages", []Panel{
			graph("Committed", PerSecond, Query{"sum by (instance, role) (rate(whippet_messages_committed_total[1m]))", "{{instance}} {{role}}"}),
			graph("Polled", BytesPerSecond, Query{"rate(whippet_polled_bytes_total[1m])", "{{instance}}"}),
			graph("Commit", Seconds, quantiles("whippet_commit_seconds", `plane="partition"`, "", "")...).
				about("From the stamp to the execution, at the primary: the write here, and the word of another member."),
			graph("Sync of the journal", Seconds, quantiles("whippet_journal_sync_seconds", `plane="partition"`, "", "")...),
			graph("Write to the journal", Seconds, quantiles("whippet_journal_write_seconds", `plane="partition"`, "", "")...),
			graph("Consumer lag", Number, Query{"sum by (kind) (whippet_consumer_lag_messages)", "{{kind}}"}).
				about("Messages behind the stored offsets. Who never came back counts too."),
			graph("Stored offsets", Number, Query{"sum by (kind) (whippet_consumer_offsets)", "{{kind}}"}),
			graph("Uncommitted operations", Number, Query{"whippet_uncommitted_ops", "{{instance}}"}),
			graph("Waiting requests", Number, Query{"whippet_waiting_calls", "{{instance}}"}),
			graph("Waiting events", Number, Query{`whippet_loop_inbox_events{plane="partition"}`, "{{instance}}"}),
		}},
		{"Disk", []Panel{
			graph("Stored", Bytes, Query{"whippet_partition_bytes", "{{instance}}"}),
			graph("Segment files", Number, Query{"whippet_partition_segments", "{{instance}}"}),
			disk("partition-replica"),
			journal("partition"),
			graph("Nearly full", Number, Query{"whippet_disk_low", "{{instance}}"}).about("1 while sends are refused."),
			graph("Failed segment writes", PerSecond, Query{"rate(whippet_segment_write_errors_total[1m])", "{{instance}}"}),
		}},
		{"Repair and damage", []Panel{
			repairs("partition"),
			graph("States fetched", PerSecond,
				Query{"sum by (instance) (rate(whippet_transfers_total[1m]))", "{{instance}}"},
				Query{"sum by (instance) (rate(whippet_transfers_failed_total[1m]))", "{{instance}} in vain"}),
			graph("Partitions moved here", PerSecond, Query{"rate(whippet_moves_total[1m])", "{{instance}}"}),
			graph("Copied for moves", BytesPerSecond, Query{"rate(whippet_move_copied_bytes_total[1m])", "{{instance}}"}),
			dropped("partition"),
			graph("Damaged partitions", Number,
				Query{"whippet_partition_fenced_total", "{{instance}} fenced"}, Query{"whippet_partition_quarantined_total", "{{instance}} unknown"}).
				about("Since the start of the process."),
			graph("Damage mended", Number, Query{"whippet_partition_mended_total", "{{instance}} segments"}).about("Fetched again from another member while the process ran."),
			graph("Segments verified", BytesPerSecond, Query{"rate(whippet_scrubbed_bytes_total[1m])", "{{instance}}"}),
			graph("Accepted loss", Number,
				Query{"whippet_accepted_loss_starts_total", "{{instance}} starts after a power cut"},
				Query{"whippet_accepted_loss_ops_total", "{{instance}} operations known to be lost"}),
		}},
		between("partition-replica"),
		process("partition-replica"),
	},
}

func journal(plane string) Panel {
	of := `{plane="` + plane + `"}`
	return graph("Journal in use", Share, Query{"whippet_journal_used_bytes" + of + " / whippet_journal_budget_bytes" + of, "{{instance}}"}).
		about("Share of its budget. A checkpoint starts at a half; at nine tenths sends are refused.")
}

func repairs(plane string) Panel {
	return graph("Operations repaired", PerSecond,
		Query{`sum by (instance, direction) (rate(whippet_repaired_ops_total{plane="` + plane + `"}[1m]))`, "{{instance}} {{direction}}"}).
		about("What a member lacked and asked for: in at it, out at the one that had it.")
}

func dropped(plane string) Panel {
	of := `{plane="` + plane + `"}`
	return graph("Frames not taken", PerSecond,
		Query{"sum by (reason) (rate(whippet_loop_dropped_frames_total" + of + "[1m]))", "{{reason}}"},
		Query{"sum(rate(whippet_protocol_faults_total" + of + "[1m]))", "impossible"})
}

func disk(job string) Panel {
	of := `{job="` + job + `"}`
	return graph("Free disk", Share, Query{"whippet_disk_free_bytes" + of + " / whippet_disk_size_bytes" + of, "{{instance}}"})
}
