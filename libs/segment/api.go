package segment

import (
	"github.com/whippet-mq/whippet/libs/vfs"
)

// InlineLimit is the largest batch in bytes that travels inside the journal record; a larger one
// is written to its segment first and only named by the record.
const InlineLimit = 64 << 10

// NoBarrier is the retention barrier of a partition without stored consumer offsets.
const NoBarrier = ^uint64(0)

// Options says how the partitions of one process keep their messages.
type Options struct {
	SegmentSize int64  // bytes after which the next batch opens a new file; default 1 GiB
	Files       *Files // open files, shared by all logs of the process; nil makes a private cache
	Trash       string // directory removed files are renamed into; default "trash"
	NoVerify    bool   // polls do not verify the checksums of whole batches read from disk
}

// Location names a large batch in its segment file; the journal record of the batch carries it.
// Convertible to journal.Location.
type Location struct {
	Segment  uint64 // base offset of the segment
	Pos, Len int64
	Hash     uint64 // XXH3 of the 256-byte batch header, which binds the frames through its checksum
}

// Placement says where Append put a batch. Large batches must be written by the caller: Batch at
// At.Pos of File, before the journal record that names At. Large is false: nothing to write.
type Placement struct {
	Large bool
	File  vfs.File
	At    Location
}

// Report says what Open found.
type Report struct {
	Segments int   // files the state counts
	Bytes    int64 // bytes the state counts
	Unknown  int   // names in the directory the state does not account for, left alone
}
