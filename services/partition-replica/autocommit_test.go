package partitionreplica

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

func (w *world) stored(k offsetKey, partition uint32) (uint64, bool) {
	return w.find(w.group(partition)).offsets.get(k)
}

// TestRewindIsNotUndone: an auto-commit that is on its way to the log is not proposed a second time
// behind the consumer's own rewind because another consumer polls meanwhile.
func TestRewindIsNotUndone(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	w.topic(1)
	for range 3 {
		w.send(0, "x")
	}
	rewind := w.storeCall(plain(1), 0, 0)
	e := w.Engine(w.group(0))
	e.Do(func() { // the next turn proposes the auto-commit, takes the rewind, and has another poll
		w.poll(plain(1), 0, 3, true)
		w.Serve(rewind)
		e.Do(func() {
			w.poll(plain(2), 0, 3, true)
			w.find(w.group(0)).proposeAutoCommits()
		})
	})
	if w.wait(rewind); rewind.Status != 0 {
		t.Fatalf("rewind: status %v", rewind.Status)
	}
	if at, _ := w.stored(plain(1), 0); at != 0 {
		t.Errorf("offset %d after an acknowledged rewind to 0", at)
	}
	if at, _ := w.stored(plain(2), 0); at != 2 {
		t.Errorf("offset %d of the other consumer, want 2", at)
	}
	w.close()
}

// TestAutoCommitsOutliveAFullPipeline: more consumers than the pipeline has room poll in one turn;
// what each was promised is in the log afterwards, though none polls again.
func TestAutoCommitsOutliveAFullPipeline(t *testing.T) {
	const consumers = 100
	mem := vfs.NewMem(1)
	w := open(t, mem, false)
	w.topic(1)
	w.send(0, "x")
	w.Engine(w.group(0)).Do(func() {
		for id := range uint32(consumers) {
			w.poll(plain(id+1), 0, 1, true)
		}
	})
	w.close()
	w = open(t, mem, false)
	for id := range uint32(consumers) {
		if _, ok := w.stored(plain(id+1), 0); !ok {
			t.Errorf("auto-commit of consumer %d is lost after a clean restart", id+1)
		}
	}
	w.close()
}
