package service

import "time"

// System holds paths, logging and the switches of the storage.
type System struct {
	// Data directory. One process owns it; a lock file guards it.
	Path    string `key:"path" default:"local_data" env:"WHIPPET_DATA"`
	Runtime struct {
		// Directory below the data directory for `current_config.toml`; written anew at every start.
		Path string `key:"path" default:"runtime"`
	} `key:"runtime"`
	Logging    Logging         `key:"logging"`
	Encryption Encryption      `key:"encryption"`
	Stream     Layout          `key:"stream" use:"none: the layout of the data directory is fixed"`
	Topic      TopicLayout     `key:"topic" use:"none: the layout of the data directory is fixed"`
	Partition  PartitionLayout `key:"partition"`
	Segment    struct {
		// Archive expired segments.
		ArchiveExpired bool `key:"archive_expired" default:"false" use:"refuse: expired segments are deleted, there is no archive"`
	} `key:"segment"`
	Recovery struct {
		// Make up state that is missing at start.
		RecreateMissingState bool `key:"recreate_missing_state" default:"false" use:"refuse: missing state is never made up"`
	} `key:"recovery"`
	MemoryPool MemoryPool `key:"memory_pool" use:"none: limits.memory bounds the buffers"`
	Sharding   Sharding   `key:"sharding" use:"none: loops sets the number of event loops"`
}

// Logging describes the process's log on standard output.
type Logging struct {
	// Level of the log. `RUST_LOG` is used where this variable is absent.
	Level string `key:"level" default:"info" one:"trace debug info warn error off" env:"WHIPPET_LOG_LEVEL"`
	// Form of a log line.
	Format string `key:"format" env:"=WHIPPET_LOG_FORMAT" default:"text" one:"text json"`
	// Directory of log files.
	Path string `key:"path" default:"logs" use:"none: the log goes to standard output"`
	// Write log files.
	FileEnabled bool `key:"file_enabled" default:"true" use:"none: the log goes to standard output"`
	// Size of one log file.
	MaxFileSize Size `key:"max_file_size" default:"500 MB" use:"none: the log goes to standard output"`
	// Size of all log files.
	MaxTotalSize Size `key:"max_total_size" default:"4 GB" use:"none: the log goes to standard output"`
	// Time between two looks at the sizes.
	RotationCheckInterval time.Duration `key:"rotation_check_interval" default:"1 h" use:"none: the log goes to standard output"`
	// Age at which a log file is deleted.
	Retention time.Duration `key:"retention" default:"7 days" use:"none: the log goes to standard output"`
}

// Encryption is encryption at rest, which this version does not have.
type Encryption struct {
	// Encrypt stored data.
	Enabled bool `key:"enabled" default:"false" use:"refuse: data would be stored in the clear, this version cannot encrypt it"`
	// Key, 32 bytes as base64.
	Key Secret `key:"key" form:"base64" use:"refuse: data would be stored in the clear, this version cannot encrypt it"`
}

// Layout names the stream directories of the reference.
type Layout struct {
	// Directory of streams.
	Path string `key:"path" default:"streams"`
}

// TopicLayout names the topic directories of the reference.
type TopicLayout struct {
	// Directory of topics.
	Path string `key:"path" default:"topics"`
}

// PartitionLayout names the partition directories of the reference and holds one switch.
type PartitionLayout struct {
	// Directory of partitions.
	Path string `key:"path" default:"partitions" use:"none: the layout of the data directory is fixed"`
	// Verify checksums when messages are read from disk.
	ValidateChecksum bool `key:"validate_checksum" default:"true" use:"none: checksums are always verified"`
}

// MemoryPool is the reference's buffer pool.
type MemoryPool struct {
	// Use the pool.
	Enabled bool `key:"enabled" default:"true"`
	// Size of the pool.
	Size Size `key:"size" default:"4 GiB"`
	// Buffers of one size kept.
	BucketCapacity int `key:"bucket_capacity" default:"8192"`
}

// Sharding is the reference's thread-per-core layout.
type Sharding struct {
	// Processors used.
	CPUAllocation string `key:"cpu_allocation" default:"numa:auto"`
	// Pin threads to processors.
	PinCores bool `key:"pin_cores" default:"true"`
	// Requests waiting for one shard.
	InboxCapacity int `key:"inbox_capacity" default:"1024"`
	// Replies waiting for one shard.
	ReplyInboxCapacity int `key:"reply_inbox_capacity" default:"1024"`
	// Time to drain at a stop.
	ShutdownDrainTimeout time.Duration `key:"shutdown_drain_timeout" default:"10 s"`
	// Time between two looks while draining.
	ShutdownPollInterval time.Duration `key:"shutdown_poll_interval" default:"50 ms"`
	// Time to join the shards.
	ShutdownJoinTimeout time.Duration `key:"shutdown_join_timeout" default:"30 s"`
	// Time between two reconciliations.
	ReconcilePeriodicInterval time.Duration `key:"reconcile_periodic_interval" default:"1 s"`
}

// Storage bounds disk use.
type Storage struct {
	// Free space below which sends are refused with a retryable status, or 5 % of the file system if that is less. Reads, trims, deletes and offset stores go on.
	LowWater Size `key:"low_water" own:"" default:"1 GiB"`
	// Space set aside for each loop, so that trims, deletes and offset stores work on a full disk.
	Reserve Size `key:"reserve" own:"" default:"128 MiB" range:"1 MiB.."`
	// Time deleted data stays in `trash` before its space is freed. Under pressure it is freed at once.
	TrashDelay time.Duration `key:"trash_delay" own:"" default:"10 m"`
	// Bytes a second of closed segments that are read again and verified in the background; 0 turns it off. What is damaged is restored from another member.
	ScrubRate Size `key:"scrub_rate" own:"" default:"8 MiB"`
	// Time between two such rounds over everything.
	ScrubPause time.Duration `key:"scrub_pause" own:"" default:"1 h"`
}

// Journal sizes the log that every loop writes.
type Journal struct {
	// Size of one journal file.
	FileSize Size `key:"file_size" own:"" default:"64 MiB" range:"1 MiB..1 GiB"`
	// Journal bytes of one loop. A checkpoint starts at half of it, and every 512 MiB; at nine tenths sends are refused with a retryable status.
	Budget Size `key:"budget" own:"" default:"2 GiB" range:"16 MiB.."`
}

// Metadata sizes the metadata group.
type Metadata struct {
	// Metadata operations in flight.
	PrepareQueueDepth int `key:"prepare_queue_depth" default:"32" range:"1..127"`
	// Slots of the reference's journal.
	JournalSlots int `key:"journal_slots" default:"1024" use:"none: the journal has no slots"`
	// Sessions the client table holds. When it is full of live sessions, logins are refused with a retryable status.
	ClientsTableMax int `key:"clients_table_max" default:"65536" range:"2..65536"`
	// Roster of metadata replicas, `id=host:port,...`, the same text on every process. The port is that of the replica plane, the service plane is on the next one.
	Roster string `key:"roster" env:"=WHIPPET_METADATA"`
}

// Partition sizes a partition group.
type Partition struct {
	// Operations of one partition in flight.
	PrepareQueueDepth int `key:"prepare_queue_depth" default:"32" range:"1..127"`
	// Bytes a second that copies of partitions moving to this node take, all together; 0 is as fast as it goes.
	MoveRate Size `key:"move_rate" own:"" default:"64 MiB"`
	// Partitions copied to this node at once.
	MovesAtOnce int `key:"moves_at_once" own:"" default:"2" range:"1..64"`
	// Entries of the reference's ring.
	EvictedRingCapacity int `key:"evicted_ring_capacity" default:"4096" use:"none: repair reads the journal and the segments"`
	// Bytes of the reference's ring.
	EvictedRingBytesMax Size `key:"evicted_ring_bytes_max" default:"16 MiB" use:"none: repair reads the journal and the segments"`
	// Bytes of the reference's cache for transfers.
	TransferServedCacheBytesMax Size `key:"transfer_served_cache_bytes_max" default:"2176 MiB" use:"none: transfers read the segments"`
	// Largest artifact accepted in a transfer.
	TransferArtifactBytesMax Size `key:"transfer_artifact_bytes_max" default:"1088 MiB" use:"none: transfers read the segments"`
}
