package segment

import "github.com/whippet-mq/whippet/libs/vfs"

// Open starts a log from its checkpoint state (zero: a new partition). It trusts only the bytes st
// counts. Damage found is kept until Settle, because a trim or purge replayed from the journal may remove it.
// The caller then replays the journal entries above the checkpoint in order: Append for bodies it holds (small),
// Restore for large ones, Trim, Purge; and ends with Settle.
func Open(fs vfs.FS, dir string, opt Options, st State) (*Log, Report, error) {
	return nil, Report{}, nil
}

// Restore re-appends a large batch whose bytes stand in the file. verify reads and checks all of
// it (suspect boots, or the record lies above the last synced one), else only its header. Error: *Damage, the log is unchanged.
func (l *Log) Restore(at Location, op uint64, verify bool) error { return nil }

// Settle ends recovery. Error: *Damage that still stands: the partition is fenced, its files stay as they are.
func (l *Log) Settle() error { return nil }

// Close flushes nothing; it gives file handles back.
func (l *Log) Close() error { return nil }

