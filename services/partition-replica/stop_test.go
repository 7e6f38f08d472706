package partitionreplica

import (
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestStopWithMuchFileWork: the checkpoint of a stop lets go of the files of more purged partitions than
// the queue of file work holds. All of them are in the trash when Close returns.
func TestStopWithMuchFileWork(t *testing.T) {
	const partitions = 1500
	mem := vfs.NewMem(1)
	w := open(t, mem, true)
	w.topic(partitions / 2)
	w.change(wire.OpCreatePartitions, wire.PartitionsRequest{
		Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Count: partitions / 2,
	}.Append(nil))
	for p := range uint32(partitions) {
		if c := w.send(p, "x"); c.Status != 0 {
			t.Fatalf("send: status %v", c.Status)
		}
	}
	w.close() // the bytes have to be in files
	w = open(t, mem, true)
	w.purge()
	for p := range uint32(partitions) { // the purge comes before what is sent after its reply
		if c := w.send(p, "y"); c.Status != 0 {
			t.Fatalf("send after the purge: status %v, reason %v", c.Status, c.Reason)
		}
	}
	if err := w.Replica.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	trash, err := mem.ReadDir(trashDir)
	if err != nil || len(trash) != partitions {
		t.Errorf("%d directories in the trash after a stop, want %d (%v)", len(trash), partitions, err)
	}
}
