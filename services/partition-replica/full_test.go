package partitionreplica

import (
	"strings"
	"syscall"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// fullLog makes every write to the partitions' journal fail for lack of space.
func fullLog(mem *vfs.Mem) {
	mem.SetFault(func(c vfs.Call) vfs.Fault {
		if strings.HasPrefix(c.Name, loopDir(0)) && (c.Op == vfs.OpWrite || c.Op == vfs.OpAllocate) {
			return vfs.Fault{Err: syscall.ENOSPC}
		}
		return vfs.Fault{}
	})
}

// TestPurgeOutlivesAFullDisk: the purge's own op met a full disk; it is ordered again once there is
// room, before what is sent then.
func TestPurgeOutlivesAFullDisk(t *testing.T) {
	mem := vfs.NewMem(1)
	w := open(t, mem, false)
	w.topic(1)
	for range 3 {
		w.send(0, "before")
	}
	fullLog(mem)
	w.purge()
	if c := w.send(0, "meanwhile"); c.Status != wire.CodeTransientNotAccepted {
		t.Fatalf("a send on a full disk: status %v", c.Status)
	}
	mem.SetFault(nil)
	now.Add(2_000_000)
	if c := w.send(0, "after"); c.Status != 0 {
		t.Fatalf("a send after the disk has room: status %v", c.Status)
	}
	if n := w.poll(plain(1), 0, 10, false); n != 1 {
		t.Errorf("%d messages after the purge, want 1", n)
	}
	w.close()
}
