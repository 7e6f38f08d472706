package segment

// Log is the loop side of one partition's messages. One goroutine at a time uses it; View, Flush.Run,
// Checkpoint.Run and Removal.Run belong to any.
type Log struct{}

// Append places a stamped batch behind the last one. It never touches the file system. A small batch
// is copied; a large one stays the caller's, who writes it at the Placement. Panics if the batch does not start at Next.
func (l *Log) Append(batch []byte, op uint64) Placement { return Placement{} }

// Cut drops the uncommitted batches from offset next on. Panics below the commit point.
func (l *Log) Cut(next uint64) {}

// Publish moves the commit point to next, the offset behind the last committed message, and swaps the View.
// A large batch may be published only once its bytes are written.
func (l *Log) Publish(next uint64) {}

// View returns the published view. Any goroutine.
func (l *Log) View() *View { return nil }

// Next is the offset the next appended batch starts at; Time the base timestamp of the last batch (0: none).
func (l *Log) Next() uint64 { return 0 }
func (l *Log) Time() uint64 { return 0 }

// Generation is the purge generation.
func (l *Log) Generation() uint64 { return 0 }

// Stats of the committed log and of what waits in memory.
type Stats struct {
	Generation  uint64
	Segments    int
	Start, Next uint64 // committed messages are Start <= offset < Next
	Bytes       int64  // committed, retained
	Unflushed   int64  // committed small batches that only memory and the journal hold
	Uncommitted int64
}

func (l *Log) Stats() Stats { return Stats{} }
