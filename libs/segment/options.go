package segment

import (
	"github.com/whippet-mq/whippet/libs/vfs"
)

// InlineLimit is the largest batch in bytes that travels inside its journal record; a larger one
// is written to its segment first and only named by the record.
const InlineLimit = 64 << 10

const (
	defaultSegmentSize = 1 << 30
	maxSegmentSize     = 2 << 30 // keeps index positions in 32 bits, the batch that crosses included
	defaultReply       = 8 << 20
	headerSize         = 256
)

// Options says how the partitions of one process keep their messages.
type Options struct {
	SegmentSize int64  // bytes after which the next batch opens a new file; default 1 GiB, at most 2 GiB
	Files       *Files // open files, shared by all logs of the process; nil makes a private cache
	Trash       string // directory removed files are renamed into; default "trash"
	NoVerify    bool   // polls skip the checksums of whole batches read from disk
}

func (o Options) withDefaults() Options {
	if o.SegmentSize <= 0 {
		o.SegmentSize = defaultSegmentSize
	}
	o.SegmentSize = min(o.SegmentSize, maxSegmentSize)
	if o.Files == nil {
		o.Files = NewFiles(0)
	}
	if o.Trash == "" {
		o.Trash = "trash"
	}
	return o
}

// Location names a large batch in its segment file; the journal record of the batch carries it.
// It converts to journal.Location.
type Location struct {
	Segment  uint64 // base offset of the segment
	Pos, Len int64  // bytes
	Hash     uint64 // XXH3 of the 256-byte batch header, which binds the frames through its checksum
}

// Placement says where Append put a batch. A large batch is the caller's to write: all of it, at
// At.Pos of File, before the journal record that names At. Otherwise there is nothing to write.
type Placement struct {
	Large bool
	File  vfs.File // stays usable whatever happens to the log; opens and creates on first use
	At    Location
}
