package partitionreplica

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestOffsetsOnAFullDisk: sends are refused when the disk is full; offsets are stored all the same,
// from the reserve.
func TestOffsetsOnAFullDisk(t *testing.T) {
	mem := vfs.NewMem(1)
	w := open(t, mem, false)
	w.topic(1)
	w.send(0, "x")
	mem.SetCapacity(mem.Allocated())
	refused := false
	for range 10000 {
		if c := w.send(0, "x"); c.Status != 0 {
			refused = true
			break
		}
	}
	if !refused {
		t.Fatal("the disk is not full")
	}
	for range 3 {
		if c := w.serve(w.storeCall(plain(1), 0, 0)); c.Status != 0 {
			t.Fatalf("an offset on a full disk: status %v, reason %v", c.Status, c.Reason)
		}
	}
	if c := w.send(0, "y"); c.Status != wire.CodeTransientNotAccepted {
		t.Errorf("a send on a full disk: status %v", c.Status)
	}
	mem.SetCapacity(0)
	w.Engine(w.group(0)).Advance()
	for try := 0; w.Engine(w.group(0)).Full() && try < 1000; try++ { // a second passes
		now.Add(10_000)
	}
	if c := w.send(0, "z"); c.Status != 0 {
		t.Errorf("a send once there is room again: status %v, reason %v", c.Status, c.Reason)
	}
	w.close()
}
