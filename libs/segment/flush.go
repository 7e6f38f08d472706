package segment

// FlushPlan returns the copying of committed small batches to their files that is due at now (any
// monotonic clock in nanoseconds), nil if none is due or one is in flight. force: whatever waits.
func (l *Log) FlushPlan(now int64, force bool) *Flush { return nil }

// Flush is one lazily made copy. Run on any goroutine, then hand it to Flushed on the loop.
type Flush struct{}

func (f *Flush) Run() error { return nil }

// Flushed takes the result of Run back. After an error the bytes stay in memory and are planned again.
func (l *Log) Flushed(f *Flush, err error) {}
