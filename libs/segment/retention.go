package segment

import "github.com/whippet-mq/whippet/libs/vfs"

// Retention is the input of TrimPlan.
type Retention struct {
	Now, Expiry  uint64 // microseconds; Expiry 0: never
	MaxBytes     int64  // of sealed segments; 0: unlimited
	Watermark    uint64 // DeleteSegments: sealed segments whose last offset is at or below it go
	HasWatermark bool
	Barrier      uint64 // lowest stored consumer offset, NoBarrier
}

// TrimPlan returns the last offset a trim op should remove; false: nothing to trim. At most 16 segments.
func (l *Log) TrimPlan(r Retention) (upTo uint64, ok bool) { return 0, false }

// Trim removes the sealed segments whose last offset is <= upTo, never the active one, and swaps the View. nil: nothing to remove.
func (l *Log) Trim(upTo uint64) *Removal { return nil }

// Sealed returns the last offset of the count-th oldest sealed segment (the newest if there are fewer); false: none.
func (l *Log) Sealed(count int) (last uint64, ok bool) { return 0, false }

// Purge drops every message, committed or not; offsets restart at 0 under the new generation.
func (l *Log) Purge(generation uint64) *Removal { return nil }

// Drop removes the whole partition; the Log is not used afterwards.
func (l *Log) Drop() *Removal { return nil }

// Removal renames removed files into the trash. Run on any goroutine; now is wall clock in
// seconds, the name in the trash carries it. A Removal that never ran is found and made up for by Settle.
type Removal struct{}

func (r *Removal) Run(now int64) error { return nil }

// Discard moves the directory of a partition that is not open into the trash.
func Discard(fs vfs.FS, dir, trash string, now int64) error { return nil }

// EmptyTrash deletes what was renamed into the trash before the given second.
func EmptyTrash(fs vfs.FS, trash string, before int64) error { return nil }

// Files caches open segment files, least recently used first out.
type Files struct{}

func NewFiles(limit int) *Files { return &Files{} }
