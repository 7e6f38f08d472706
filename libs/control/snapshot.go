package control

// Snapshot is what a process measures of itself. Rates and latencies are those of the time since the snapshot
// before; what a role does not have is 0.
type Snapshot struct {
	Interval float64 `json:"interval"` // seconds that rates and latencies are of
	Uptime   float64 `json:"uptime"`   // seconds
	CPU      float64 `json:"cpu"`      // processors in use
	Memory   float64 `json:"memory"`   // bytes resident

	BufferUsed   float64 `json:"buffer_used"`   // bytes
	BufferBudget float64 `json:"buffer_budget"` // bytes

	// At front-doors.
	Connections float64 `json:"connections"`
	Requests    float64 `json:"requests"`  // a second
	Refused     float64 `json:"refused"`   // of them with another code than 0
	Retries     float64 `json:"retries"`   // calls repeated inside the cluster, a second
	Evictions   float64 `json:"evictions"` // a second
	BytesIn     float64 `json:"bytes_in"`  // of requests, a second
	BytesOut    float64 `json:"bytes_out"` // of replies, a second

	// At partition replicas.
	Messages    float64 `json:"messages"` // committed in partitions hosted here, a second
	Polled      float64 `json:"polled"`   // bytes of batches answered to polls, a second
	Hosted      float64 `json:"hosted"`   // partitions
	Led         float64 `json:"led"`      // partitions; in a cluster
	Unsettled   float64 `json:"unsettled"`
	ViewChanges float64 `json:"view_changes"` // since the start
	Lag         float64 `json:"lag"`          // messages behind stored offsets, in partitions led here
	Stored      float64 `json:"stored"`       // bytes of batches
	DiskLow     float64 `json:"disk_low"`     // 1: sends are refused for lack of space

	// At metadata replicas.
	MetadataPrimary float64 `json:"metadata_primary"` // 1 at the primary
	MetadataView    float64 `json:"metadata_view"`
	Nodes           float64 `json:"nodes"`      // registered partition replicas; at the primary
	NodesDown       float64 `json:"nodes_down"` // of them silent; at the primary

	// Latencies by what they are of: send, poll and other at front-doors, commit and sync of partitions, metadata
	// for commits there. One is absent when nothing was measured.
	Latencies map[string]Latency `json:"latencies,omitempty"`
}

// Latency is in seconds, as exact as the buckets of its histogram.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// figure is a field of a Snapshot and the series it is the sum of.
type figure struct {
	name         string
	label, value string // only series with it; with "!" in front of value, only those with another. label "": all
	rate         bool
	field        func(*Snapshot) *float64
}

var figures = []figure{
	{"process_cpu_seconds_total", "", "", true, func(s *Snapshot) *float64 { return &s.CPU }},
	{"process_resident_memory_bytes", "", "", false, func(s *Snapshot) *float64 { return &s.Memory }},
	{"whippet_buffer_used_bytes", "", "", false, func(s *Snapshot) *float64 { return &s.BufferUsed }},
	{"whippet_buffer_budget_bytes", "", "", false, func(s *Snapshot) *float64 { return &s.BufferBudget }},

	{"whippet_connections", "", "", false, func(s *Snapshot) *float64 { return &s.Connections }},
	{"whippet_requests_total", "", "", true, func(s *Snapshot) *float64 { return &s.Requests }},
	{"whippet_requests_total", "code", "!0", true, func(s *Snapshot) *float64 { return &s.Refused }},
	{"whippet_retries_total", "", "", true, func(s *Snapshot) *float64 { return &s.Retries }},
	{"whippet_evictions_total", "", "", true, func(s *Snapshot) *float64 { return &s.Evictions }},
	{"whippet_client_read_bytes_total", "", "", true, func(s *Snapshot) *float64 { return &s.BytesIn }},
	{"whippet_client_written_bytes_total", "", "", true, func(s *Snapshot) *float64 { return &s.BytesOut }},

	{"whippet_messages_committed_total", "", "", true, func(s *Snapshot) *float64 { return &s.Messages }},
	{"whippet_polled_bytes_total", "", "", true, func(s *Snapshot) *float64 { return &s.Polled }},
	{"whippet_partitions_hosted", "", "", false, func(s *Snapshot) *float64 { return &s.Hosted }},
	{"whippet_partitions_led", "", "", false, func(s *Snapshot) *float64 { return &s.Led }},
	{"whippet_partitions_unsettled", "", "", false, func(s *Snapshot) *float64 { return &s.Unsettled }},
	{"whippet_partition_view_changes_total", "", "", false, func(s *Snapshot) *float64 { return &s.ViewChanges }},
	{"whippet_consumer_lag_messages", "", "", false, func(s *Snapshot) *float64 { return &s.Lag }},
	{"whippet_partition_bytes", "", "", false, func(s *Snapshot) *float64 { return &s.Stored }},
	{"whippet_disk_low", "", "", false, func(s *Snapshot) *float64 { return &s.DiskLow }},

	{"whippet_metadata_primary", "", "", false, func(s *Snapshot) *float64 { return &s.MetadataPrimary }},
	{"whippet_metadata_view", "", "", false, func(s *Snapshot) *float64 { return &s.MetadataView }},
	{"whippet_metadata_nodes", "", "", false, func(s *Snapshot) *float64 { return &s.Nodes }},
	{"whippet_metadata_nodes_down", "", "", false, func(s *Snapshot) *float64 { return &s.NodesDown }},
}

// timing is a latency of a Snapshot and the histogram it is read from.
type timing struct{ name, label, value, key string }

var timings = []timing{
	{"whippet_request_seconds", "op", "send", "send"},
	{"whippet_request_seconds", "op", "poll", "poll"},
	{"whippet_request_seconds", "op", "other", "other"},
	{"whippet_commit_seconds", "plane", "partition", "commit"},
	{"whippet_journal_sync_seconds", "plane", "partition", "sync"},
	{"whippet_commit_seconds", "plane", "metadata", "metadata"},
}

// Names are the metrics that snapshots are made of.
func Names() map[string]bool {
	names := map[string]bool{}
	for _, f := range figures {
		names[f.name] = true
	}
	for _, t := range timings {
		names[t.name] = true
	}
	return names
}
