// Package segment keeps the messages of partitions: files that hold exactly the wire batches, sparse
// indexes that are hints, and immutable views that polls read without entering a loop.
//
// # Parts
//
//   - Log is the loop side of one partition, used by one goroutine. It does no I/O: what must be
//     written, synced, renamed or read comes out as a value with a Run method for another goroutine
//     (Flush, Checkpoint, Removal, Scrub) or as a Placement for the journal's writer.
//   - View is the committed prefix at one moment, swapped by Publish. Plan resolves a poll against
//     it without I/O and without allocating; Plan.Read copies, verifies and slices.
//   - State is what a checkpoint keeps: the files, how many bytes of each count, where offsets go on.
//   - Files is the process's cache of open files.
//
// It never decides what is committed, reads no clock, draws no random number, starts no goroutine and
// never acknowledges anything.
//
// # How a batch passes through
//
// A stamped batch is appended to the uncommitted tail. Up to 64 KiB it is copied into tail memory and
// travels in its journal record; a larger one is written to its place in the file by the journal's
// writer, and the record names the place. Publish makes it visible. Small batches are copied to the
// file later, many at a time; until then polls read them from memory. A checkpoint writes what is
// left, syncs the files with their names and only then counts their bytes; from then on the journal
// may forget them.
//
// Where a batch stands is a function of the batches before it: the first one that finds
// SegmentSize bytes or more in the newest file opens the next file, named by its base offset. So the
// files of replicas are equal, and a replay finds every batch where its record says.
//
// # What readers may rely on
//
// Bytes a view shows never change: tail memory is append-only and left to the collector, the committed
// part of a file is never written again except with the same bytes, and no name is ever used for
// two contents a view could mix up: a purge starts a new directory. A file a trim took away reads as
// the old bytes while it is open, and as ErrTrimmed after that.
//
// # On disk
//
//	<dir>/<purge generation, 10 digits>/<base offset, 20 digits>.log    batches back to back
//	<dir>/<purge generation, 10 digits>/<base offset, 20 digits>.index  hint, see index.go
//	trash/<second>-<old name>.<n>                                       waits for EmptyTrash
//
// A file may be longer than its State counts; the rest is not trusted. Bytes that count and are missing
// or do not verify are Damage: told, never served, and the files stay as they are. An index is
// used if its checksum is right and it leads to a batch with the offset it promises; otherwise it is
// rebuilt from the log. A removed file waits in the log until no journal record can name it, then
// in the trash until its caller empties that.
package segment
