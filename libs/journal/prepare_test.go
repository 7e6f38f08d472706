package journal

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// fill appends records of group 1, from op on, until the log is at least size bytes longer.
func fill(t *testing.T, j *Journal, op uint64, size int64) uint64 {
	t.Helper()
	for end := j.Position() + LSN(size); j.Position() < end; op++ {
		if err := j.Write(&Round{Records: []Record{prepare(1, op, 3000)}}); err != nil {
			t.Fatal(err)
		}
	}
	return op
}

// TestLogMovesToWrittenBlocks: a log that is written a lot gets a file whose blocks exist, moves there
// with its next record, and is whole afterwards. Recycled, such a file counts as what it is.
func TestLogMovesToWrittenBlocks(t *testing.T) {
	opt := testOptions(vfs.NewOS(t.TempDir()))
	opt.FileSize, opt.Reserve, opt.Budget = 4<<20, 4<<20, 1<<30
	j, _, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	op := fill(t, j, 1, prewriteFrom/2)
	if j.PrepareDue() || j.active().written {
		t.Fatal("a quiet log asks for a file")
	}
	op = fill(t, j, op, prewriteFrom)
	if !j.PrepareDue() {
		t.Fatal("nothing is due")
	}
	j.Prepare()
	if j.PrepareDue() || j.active().written {
		t.Fatal("made, and due or in use already")
	}
	before := len(j.files)
	op = fill(t, j, op, 1)
	if f := j.active(); len(j.files) != before+1 || !f.written || f.end >= f.size {
		t.Fatalf("%d files, then %d; active %+v", before, len(j.files), f)
	}
	if j.PrepareDue() {
		t.Fatal("due although the active file is good")
	}
	op = fill(t, j, op, opt.FileSize/4*3)
	if !j.PrepareDue() {
		t.Fatal("the end of the file is near and none to follow")
	}
	j.mu.Lock()
	f := j.files[0]
	j.files = j.files[1:]
	f.written = true
	err = j.release(f)
	j.mu.Unlock()
	if err != nil || !j.writtenSpare() {
		t.Fatalf("%v, spares %+v", err, j.spares)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, rec, err := Open(opt)
	if err != nil || headOf(rec, 1) != op-1 {
		t.Fatalf("%v, head %d, want %d", err, headOf(rec, 1), op-1)
	}
	_ = j.Close()
}

// TestWrittenBlocksAreNoDuty: where the file system can not write blocks ahead, or has no room, the log
// stays in its file and the attempt is not repeated.
func TestWrittenBlocksAreNoDuty(t *testing.T) {
	opt := testOptions(vfs.NewMem(1))
	opt.FileSize, opt.Reserve, opt.Budget = 4<<20, 4<<20, 1<<30
	j, _, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	op := fill(t, j, 1, prewriteFrom+1)
	j.Prepare()
	if j.PrepareDue() || j.writtenSpare() {
		t.Fatalf("due again; spares %+v", j.spares)
	}
	before := len(j.files)
	fill(t, j, op, 1)
	if len(j.files) != before {
		t.Fatal("moved to a file that is no better")
	}
	_ = j.Close()
}
