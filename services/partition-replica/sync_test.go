package partitionreplica

import (
	"errors"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// TestFailedSegmentSyncEndsTheProcess: the kernel may have dropped what was written before; going on,
// with checkpoints failing for ever, would hide it.
func TestFailedSegmentSyncEndsTheProcess(t *testing.T) {
	mem := vfs.NewMem(1)
	w := open(t, mem, false)
	w.topic(1)
	w.send(0, "x")
	status := 0
	w.Replica.fatal = func(s int, _ error) { status = s }
	mem.SetFault(func(c vfs.Call) vfs.Fault {
		if c.Op == vfs.OpSync && strings.HasSuffix(c.Name, ".log") {
			return vfs.Fault{Err: errors.New("I/O error")}
		}
		return vfs.Fault{}
	})
	if err := w.Engine(w.group(0)).Checkpoint(); err == nil {
		t.Fatal("the checkpoint counts bytes whose sync failed")
	}
	if status != 3 {
		t.Fatalf("status %d", status)
	}
}
