package journal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

func mustOpen(t *testing.T, disk *vfs.Mem, change func(*Options)) (*Journal, *Recovered) {
	t.Helper()
	opt := testOptions(disk.Mount())
	if change != nil {
		change(&opt)
	}
	j, rec, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return j, rec
}

func prepare(group, op uint64, size int) Record {
	return Record{Kind: KindPrepare, Group: group, Op: op, Frame: frame(group, op, make([]byte, size))}
}

func mustWrite(t *testing.T, j *Journal, records ...Record) {
	t.Helper()
	if err := j.Write(&Round{Records: records}); err != nil {
		t.Fatal(err)
	}
}

func headOf(rec *Recovered, group uint64) uint64 {
	for i := range rec.Groups {
		if rec.Groups[i].Group == group {
			return rec.Groups[i].Head()
		}
	}
	return 0
}

// TestCheckpointKeepsUncommitted: entries above an image stay in the log, whatever was truncated in
// the same write before them, and however many files follow.
func TestCheckpointKeepsUncommitted(t *testing.T) {
	for _, way := range []Kind{KindTruncate, KindBorn} {
		t.Run(way.String(), func(t *testing.T) {
			disk := vfs.NewMem(1)
			j, _ := mustOpen(t, disk, nil)
			mustWrite(t, j, prepare(3, 1, 24_000)) // the file is full behind the next two writes
			mustWrite(t, j, Record{Kind: KindBorn, Group: 1}, prepare(1, 1, 9), prepare(1, 2, 9), prepare(1, 3, 9))
			image := Image{Group: 1}
			if way == KindTruncate {
				image.Op = 1
				mustWrite(t, j, Record{Kind: KindTruncate, Group: 1, Op: 2}, prepare(1, 2, 9), prepare(1, 3, 9))
			} else {
				mustWrite(t, j, prepare(3, 1, 24_000)) // the file is full behind the next two writes
				mustWrite(t, j, Record{Kind: KindBorn, Group: 1}, prepare(1, 1, 9), prepare(1, 2, 9), prepare(1, 3, 9))
			}
			for op := uint64(1); op <= 20; op++ {
				mustWrite(t, j, prepare(2, op, 10_000))
			}
			if err := j.Checkpoint(j.Position(), []Image{image, {Group: 2, Op: 20}, {Group: 3, Op: 1}}); err != nil {
				t.Fatal(err)
			}
			disk.Kill()
			_, rec := mustOpen(t, disk, nil)
			if head := headOf(rec, 1); head != 3 || len(rec.Corrupt) > 0 {
				t.Fatalf("head %d, %+v", head, rec)
			}
		})
	}
}

// TestCheckpointFreesLog: covered files go, are recycled, and neither undone nor forgotten entries pin them.
func TestCheckpointFreesLog(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 9), prepare(1, 2, 9), prepare(3, 1, 9), prepare(3, 2, 9), prepare(4, 1, 1))
	mustWrite(t, j, Record{Kind: KindTruncate, Group: 1, Op: 2}, Record{Kind: KindGone, Group: 3})
	op := uint64(0)
	most := int64(0)
	for range 30 {
		for range 10 {
			op++
			mustWrite(t, j, prepare(2, op, 10_000))
		}
		if err := j.Checkpoint(j.Position(), []Image{{Group: 1, Op: 1}, {Group: 2, Op: op}, {Group: 4, Op: 1}}); err != nil {
			t.Fatal(err)
		}
		if used := j.Used(); used > 64<<10 {
			t.Fatalf("%d bytes used after a checkpoint", used)
		}
		most = max(most, disk.Allocated())
	}
	if most > 1<<20 {
		t.Fatalf("%d bytes allocated", most)
	}
	if err := j.FreeSpares(); err != nil || disk.Allocated() > 6*32<<10 {
		t.Fatalf("%v, %d bytes allocated", err, disk.Allocated())
	}
	names := fmt.Sprint(disk.Files())
	if n := strings.Count(names, checkpointPrefix); n != 1 {
		t.Fatalf("%d checkpoints in %s", n, names)
	}
	disk.Kill()
	_, rec := mustOpen(t, disk, nil)
	if headOf(rec, 1) != 1 || headOf(rec, 2) != op || headOf(rec, 3) != 0 || headOf(rec, 4) != 1 {
		t.Fatalf("%+v", rec)
	}
}

// TestManyRestarts: restarts without a checkpoint neither fill the disk nor lose anything.
func TestManyRestarts(t *testing.T) {
	disk := vfs.NewMem(1)
	for i := range uint64(200) {
		j, rec := mustOpen(t, disk, nil)
		if headOf(rec, 1) != i {
			t.Fatalf("head %d, want %d", headOf(rec, 1), i)
		}
		mustWrite(t, j, prepare(1, i+1, 10))
		disk.Kill()
	}
	if n := disk.Allocated(); n > 200*4096+8*32<<10 {
		t.Fatalf("%d bytes allocated", n)
	}
}

// TestCheckpointFileIsMendedFromItsCopy: whatever happens to one of the two files of a checkpoint,
// nothing is lost, and the next start finds both whole.
func TestCheckpointFileIsMendedFromItsCopy(t *testing.T) {
	faults := map[string]func(*vfs.Mem, string){
		"gone": func(m *vfs.Mem, name string) { m.Drop(name) },
		"cut":  func(m *vfs.Mem, name string) { m.Corrupt(name, func(b []byte) []byte { return b[:len(b)/2] }) },
		"zero": func(m *vfs.Mem, name string) { m.Corrupt(name, func(b []byte) []byte { return make([]byte, len(b)) }) },
	}
	for _, prefix := range []string{checkpointPrefix, copyPrefix} {
		for fault, hit := range faults {
			disk := vfs.NewMem(1)
			j, _ := mustOpen(t, disk, nil)
			mustWrite(t, j, prepare(1, 1, 100), prepare(2, 1, 100))
			images := []Image{{Group: 1, Op: 1, State: []byte("one")}, {Group: 2, Op: 1, State: []byte("two")}}
			if err := j.Checkpoint(j.Position(), images); err != nil {
				t.Fatal(err)
			}
			for _, name := range disk.Files() {
				if strings.Contains(name, "/"+prefix) {
					hit(disk, name)
				}
			}
			disk.Kill()
			_, rec := mustOpen(t, disk, nil)
			if len(rec.Groups) != 2 || string(rec.Groups[0].Image.State) != "one" || string(rec.Groups[1].Image.State) != "two" ||
				len(rec.Groups[0].Faults)+len(rec.Groups[1].Faults) > 0 || (fault != "gone") != (len(rec.Corrupt) > 0) {
				t.Fatalf("%s %s: %+v", prefix, fault, rec)
			}
			disk.Kill()
			_, rec = mustOpen(t, disk, nil)
			if names := strings.Join(disk.Files(), " "); len(rec.Corrupt) > 0 || strings.Count(names, copyPrefix) < 1 || strings.Count(names, "/"+checkpointPrefix) < 1 {
				t.Fatalf("%s %s, second start: %+v, %s", prefix, fault, rec, names)
			}
		}
	}
}
