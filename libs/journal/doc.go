// Package journal is the one durable log of a loop: records of all its consensus groups in one
// sequence of append-only files, checkpoints that let old files go, and the small files a node's
// restart evidence stands in (identity, session record, votes).
//
// The core ([Journal]) is synchronous and starts no goroutine; [Writer] puts it behind one writer
// and one syncer goroutine with group commit: whatever is submitted while a write or a sync runs
// goes out together with the next.
//
// # Log
//
// A log file is named wal-<first LSN>, preallocated and recycled; a log that is written a lot gets files
// whose blocks were written before (Prepare), so that its syncs change no metadata. An LSN is a byte position in the
// log: the record at offset o of the file with first LSN f has LSN f+o and carries it, so bytes of a
// file's earlier life are never taken for records. A record is a 56-byte header, a payload padded to
// 8 bytes and a 32-byte footer. Header and payload have separate checksums and the footer repeats
// group, op and length, so that one damaged place always leaves the name of what it hit. After each
// sync a "synced" record says up to where the log was durable and lists the groups touched since the
// one before with their heads, and where their records stand that are no prepares; it tells which
// groups a larger damage cannot have hit.
//
// # Recovery
//
// After a kill the page cache is whole: only the last record may be torn, any other damage is
// corruption. After a power cut (Options.Suspect) the log ends at the first damage above the last
// "synced" position, even if valid records follow; damage below it is corruption too. Corruption
// never refuses a boot: it is reported with the groups it can have hit ([Fault]), and the file is
// kept aside under a name ending in .damaged when its turn to be recycled comes. Every open starts
// a new file, whose header says where the log ended, so that bytes cut off once stay cut off.
//
// # Several members
//
// What the log of a group holds above its commit point may be taken back by a truncate record, and a
// view's log may reach beyond it: the headers of the ops it lacks are an adopt record ([AdoptRecord],
// [GroupLog].Adopted). Entries are read back for peers through a sparse index ([Reader]).
//
// # Checkpoint
//
// checkpoint-<LSN> holds one image per group, each with its own checksum. It is written beside,
// synced, renamed and the directory synced before any log file below it goes.
//
// The package never verifies large bodies (their segment does) and never decides what a fault means
// for a group.
package journal
