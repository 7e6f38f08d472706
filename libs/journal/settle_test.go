package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// TestSettledDamageIsNoTear: damage that one recovery has reported does not make a later one, after
// a power cut, end the log there: what was synced behind it stays.
func TestSettledDamageIsNoTear(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 100), prepare(2, 1, 100), prepare(1, 2, 100))
	name := j.path(j.active().name)
	disk.Kill()
	disk.Corrupt(name, func(b []byte) []byte { b[fileHeaderSize+headerSize+300] ^= 1; return b })
	j, rec := mustOpen(t, disk, nil)
	if len(rec.Corrupt) != 1 || len(rec.Groups[0].Faults) == 0 || len(rec.Groups[1].Faults) != 0 {
		t.Fatalf("%+v", rec)
	}
	if err := j.Write(&Round{Sync: true, Records: []Record{prepare(2, 2, 100)}}); err != nil {
		t.Fatal(err)
	}
	disk.PowerCut()
	_, rec = mustOpen(t, disk, func(o *Options) { o.Suspect = true })
	if headOf(rec, 1) != 2 || headOf(rec, 2) != 2 || len(rec.Groups[0].Faults) == 0 || len(rec.Groups[1].Faults) != 0 {
		t.Fatalf("%+v", rec)
	}
}

// TestDigestNamesTheHit: when whole records are gone, the next synced record tells which groups lost
// what; groups it does not list, or lists with the head they have, are not fenced.
func TestDigestNamesTheHit(t *testing.T) {
	for _, digest := range []bool{true, false} {
		disk := vfs.NewMem(1)
		j, _ := mustOpen(t, disk, nil)
		mustWrite(t, j, prepare(1, 1, 100), prepare(2, 1, 100), prepare(3, 1, 100))
		if err := errors.Join(j.Sync(), j.MarkSynced()); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, j, prepare(2, 2, 100))
		from := j.active().end
		mustWrite(t, j, prepare(1, 2, 100), prepare(1, 3, 100))
		to := j.active().end
		if digest {
			if err := errors.Join(j.Sync(), j.MarkSynced()); err != nil {
				t.Fatal(err)
			}
		}
		mustWrite(t, j, prepare(4, 1, 100))
		name := j.path(j.active().name)
		disk.Kill()
		disk.Corrupt(name, func(b []byte) []byte { clear(b[from:to]); return b })
		_, rec := mustOpen(t, disk, nil)
		want := map[uint64]Fault{1: {FaultMissing, 2, 3, rec.End}}
		if !digest {
			lsn := rec.Groups[0].Faults[0].LSN
			want = map[uint64]Fault{1: {FaultUnsure, 2, 0, lsn}, 2: {FaultUnsure, 3, 0, lsn}, 3: {FaultUnsure, 2, 0, lsn}}
		}
		for _, g := range rec.Groups {
			w, fault := want[g.Group]
			if !fault && len(g.Faults) > 0 || fault && (len(g.Faults) != 1 || g.Faults[0] != w) {
				t.Errorf("digest %v, group %d: %+v, want %+v", digest, g.Group, g.Faults, w)
			}
		}
	}
}

// TestDurableWaitsForBodies: a position is not called durable while a large body below it is not.
func TestDurableWaitsForBodies(t *testing.T) {
	disk := vfs.NewMem(1)
	body, err := disk.Create("body")
	if err != nil {
		t.Fatal(err)
	}
	j, _ := mustOpen(t, disk, nil)
	before := j.Durable()
	r := &Round{
		Records: []Record{{Kind: KindPrepare, Group: 1, Op: 1, Frame: frame(1, 1, nil), At: Location{Len: 100_000}}},
		Large:   []LargeBody{{File: body, Data: make([]byte, 100_000)}},
	}
	if err := errors.Join(j.Write(r), j.Sync()); err != nil {
		t.Fatal(err)
	}
	if j.Durable() != before {
		t.Fatal("durable without its body")
	}
	if err := j.SyncAll(); err != nil {
		t.Fatal(err)
	}
	if j.Durable() != j.Position() {
		t.Fatalf("durable to %d of %d", j.Durable(), j.Position())
	}
}

// sparse is a file system that cannot reserve space.
type sparse struct{ vfs.FS }

type sparseFile struct{ vfs.File }

func (s sparse) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	return sparseFile{f}, err
}

func (f sparseFile) Allocate(size int64) error { return f.Truncate(size) }

// TestFullDiskWithoutReservation: a write that the full disk cut in two leaves nothing of itself.
func TestFullDiskWithoutReservation(t *testing.T) {
	disk := vfs.NewMem(1)
	open := func() (*Journal, *Recovered) {
		opt := testOptions(sparse{disk.Mount()})
		j, rec, err := Open(opt)
		if err != nil {
			t.Fatal(err)
		}
		return j, rec
	}
	j, _ := open()
	mustWrite(t, j, prepare(1, 1, 100))
	disk.SetCapacity(disk.Allocated() + 8192)
	err := j.Write(&Round{Records: []Record{prepare(1, 2, 500), prepare(1, 3, 500), prepare(1, 4, 20_000)}})
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	disk.SetCapacity(0)
	mustWrite(t, j, prepare(1, 2, 500)) // as long as the first record of the failed round
	disk.Kill()
	_, rec := open()
	if headOf(rec, 1) != 2 || len(rec.Corrupt) > 0 || len(rec.Groups[0].Faults) > 0 {
		t.Fatalf("head %d, %+v", headOf(rec, 1), rec)
	}
}

// TestForeignFiles: the log and the checkpoint of another node are kept aside, and nothing in them
// is taken for this node's.
func TestForeignFiles(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 100), prepare(2, 1, 100))
	if err := j.Checkpoint(j.Position(), []Image{{Group: 1, Op: 1}}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, j, prepare(3, 1, 100))
	disk.Kill()
	j, rec := mustOpen(t, disk, func(o *Options) { o.Owner.Node[0]++ })
	if len(rec.Groups) != 0 || len(rec.Corrupt) < 2 {
		t.Fatalf("%+v", rec)
	}
	mustWrite(t, j, prepare(4, 1, 100))
	if err := j.Checkpoint(j.Position(), []Image{{Group: 4, Op: 1}}); err != nil {
		t.Fatal(err)
	}
	disk.Kill()
	_, rec = mustOpen(t, disk, func(o *Options) { o.Owner.Node[0]++ })
	if len(rec.Groups) != 1 || headOf(rec, 4) != 1 || len(rec.Corrupt) != 0 {
		t.Fatalf("%+v", rec)
	}
	if kept := strings.Count(fmt.Sprint(disk.Files()), damagedSuffix); kept != 3 {
		t.Fatalf("%v", disk.Files())
	}
}

// TestLostFileStaysLost: that a file is missing is found again by every recovery, although what told of it
// was an empty file that is gone.
func TestLostFileStaysLost(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 24_000))
	mustWrite(t, j, prepare(1, 2, 24_000))
	lost := j.path(j.active().name)
	disk.Kill()
	mustOpen(t, disk, nil)
	disk.Kill()
	disk.Drop(lost)
	for range 3 {
		_, rec := mustOpen(t, disk, nil)
		if len(rec.Corrupt) == 0 || len(rec.Groups) != 1 || len(rec.Groups[0].Faults) == 0 {
			t.Fatalf("%+v", rec)
		}
		disk.Kill()
	}
}
