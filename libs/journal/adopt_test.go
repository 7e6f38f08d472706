package journal

import (
	"errors"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// adopted makes the headers top..low of a group, newest first.
func adopted(group, low, top uint64) (list []wire.PrepareHeader) {
	for op := top; op >= low; op-- {
		h := wire.PrepareHeader{Command: wire.CommandPrepare, Operation: wire.OpSendMessages, Group: group, Op: op}
		h.Checksum = h.Identity()
		list = append(list, h)
	}
	return list
}

func opsOfHeaders(list []wire.PrepareHeader) (ops []uint64) {
	for i := range list {
		ops = append(ops, list[i].Op)
	}
	return ops
}

// TestAdopt: what takes adopted headers away, and what does not; each case again behind a
// checkpoint that the last record is below, and one that it is above.
func TestAdopt(t *testing.T) {
	adopt := func(view uint32, low, top uint64) Record { return AdoptRecord(1, view, adopted(1, low, top)) }
	cut := func(op uint64) Record { return Record{Kind: KindTruncate, Group: 1, Op: op} }
	two := []Record{prepare(1, 1, 10), prepare(1, 2, 10)}
	for _, c := range []struct {
		name    string
		records []Record
		want    []uint64
		view    uint32
	}{
		{"none", nil, nil, 0},
		{"above the head", []Record{adopt(4, 3, 6)}, []uint64{6, 5, 4, 3}, 4},
		{"a later one replaces it", []Record{adopt(4, 3, 6), adopt(5, 3, 4)}, []uint64{4, 3}, 5},
		{"a later one says that there is nothing", []Record{adopt(4, 3, 6), AdoptRecord(1, 5, nil)}, nil, 5},
		{"appended", []Record{adopt(4, 3, 6), prepare(1, 3, 10), prepare(1, 4, 10)}, []uint64{6, 5}, 4},
		{"appended to the end", []Record{adopt(4, 3, 3), prepare(1, 3, 10)}, nil, 4},
		{"truncated above the head", []Record{adopt(4, 3, 6), cut(5)}, []uint64{4, 3}, 4},
		{"truncated at the head", []Record{adopt(4, 3, 6), cut(2)}, nil, 4},
		{"truncated and named again", []Record{adopt(4, 3, 6), cut(2), adopt(4, 2, 6)}, []uint64{6, 5, 4, 3, 2}, 4},
		{"born", []Record{adopt(4, 3, 6), {Kind: KindBorn, Group: 1}}, nil, 0},
		{"gone", []Record{adopt(4, 3, 6), {Kind: KindGone, Group: 1}}, nil, 0},
	} {
		for _, way := range []string{"log", "image", "image and log"} {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				disk := vfs.NewMem(1)
				j, _ := mustOpen(t, disk, nil)
				mustWrite(t, j, two...)
				image := Image{Group: 1, Op: 1, State: []byte("state")}
				if way == "image and log" { // the image is of before, the log above it has it all
					if err := j.Checkpoint(j.Position(), []Image{image}); err != nil {
						t.Fatal(err)
					}
				}
				mustWrite(t, j, c.records...)
				if way == "image" { // the image has it all; the records are still below it
					images := []Image{image}
					images[0].AdoptView = c.view
					if len(c.want) > 0 {
						images[0].Adopted = adopted(1, c.want[len(c.want)-1], c.want[0])
					}
					switch c.name {
					case "born":
						images[0].Op = 0
					case "gone":
						images = nil
					}
					if err := j.Checkpoint(j.Position(), images); err != nil {
						t.Fatal(err)
					}
				}
				disk.Kill()
				_, rec := mustOpen(t, disk, nil)
				var g GroupLog
				if len(rec.Groups) > 0 {
					g = rec.Groups[0]
				}
				if !slices.Equal(opsOfHeaders(g.Adopted), c.want) || g.AdoptView != c.view || len(g.Faults) > 0 || len(rec.Corrupt) > 0 {
					t.Fatalf("adopted %v of view %d, want %v of %d; %+v", opsOfHeaders(g.Adopted), g.AdoptView, c.want, c.view, rec)
				}
				for i := range g.Adopted {
					if g.Adopted[i].Verify() != nil {
						t.Fatalf("header %+v", g.Adopted[i])
					}
				}
				if g.Image != nil && string(g.Image.State) != "state" {
					t.Fatalf("state %q", g.Image.State)
				}
			})
		}
	}
}

// TestAdoptLost: an adopt record that damage took is never passed over in silence, whether its own
// bytes are left or a synced record has to tell.
func TestAdoptLost(t *testing.T) {
	for _, what := range []string{"flip", "zero", "zero, gone", "zero, adopted again"} {
		t.Run(what, func(t *testing.T) {
			disk := vfs.NewMem(1)
			j, _ := mustOpen(t, disk, nil)
			mustWrite(t, j, prepare(1, 1, 10), prepare(2, 1, 10))
			if err := errors.Join(j.Sync(), j.MarkSynced()); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, j, prepare(2, 2, 10))
			from := j.active().end
			mustWrite(t, j, AdoptRecord(1, 4, adopted(1, 2, 9)))
			to := j.active().end
			switch what {
			case "zero, gone":
				mustWrite(t, j, Record{Kind: KindGone, Group: 1}, Record{Kind: KindBorn, Group: 1})
			case "zero, adopted again":
				mustWrite(t, j, AdoptRecord(1, 5, adopted(1, 2, 3)))
			}
			if err := errors.Join(j.Sync(), j.MarkSynced()); err != nil {
				t.Fatal(err)
			}
			name := j.path(j.active().name)
			disk.Kill()
			disk.Corrupt(name, func(b []byte) []byte {
				if what == "flip" {
					b[from+headerSize+400] ^= 1
				} else {
					clear(b[from:to])
				}
				return b
			})
			_, rec := mustOpen(t, disk, nil)
			faulty := what != "zero, gone" // an adoption that replaces another one cannot tell that it did
			if len(rec.Corrupt) == 0 || len(rec.Groups) != 2 || len(rec.Groups[0].Faults) > 0 != faulty || len(rec.Groups[1].Faults) > 0 {
				t.Fatalf("%+v", rec)
			}
		})
	}
}

// TestCommitPoint: the commit point is the highest that image and good entries tell.
func TestCommitPoint(t *testing.T) {
	entry := func(op, commit uint64) Record {
		h := wire.PrepareHeader{Command: wire.CommandPrepare, Operation: wire.OpSendMessages, Group: 1, Op: op, Commit: commit, Size: wire.HeaderSize + 8}
		h.Checksum = h.Identity()
		b := make([]byte, wire.HeaderSize+8)
		h.Put(b)
		return Record{Kind: KindPrepare, Group: 1, Op: op, Frame: b}
	}
	log := []Record{entry(1, 0), entry(2, 0), entry(3, 2), entry(4, 2)}
	for _, c := range []struct {
		name   string
		image  *Image
		more   []Record
		damage bool // of the last record
		want   uint64
	}{
		{"entries", nil, nil, false, 2},
		{"image", &Image{Group: 1, Op: 1, Commit: 1}, nil, false, 2},
		{"image knows more", &Image{Group: 1, Op: 2, Commit: 4}, nil, false, 4},
		{"a later entry", nil, []Record{entry(5, 4)}, false, 4},
		{"a damaged entry does not count", nil, []Record{entry(5, 4)}, true, 2},
		{"a truncated entry does not count", nil, []Record{entry(5, 4), {Kind: KindTruncate, Group: 1, Op: 3}}, false, 0},
		{"born again", nil, []Record{{Kind: KindBorn, Group: 1}, entry(1, 0)}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := vfs.NewMem(1)
			j, _ := mustOpen(t, disk, nil)
			mustWrite(t, j, log...)
			if c.image != nil {
				if err := j.Checkpoint(j.Position(), []Image{*c.image}); err != nil {
					t.Fatal(err)
				}
			}
			mustWrite(t, j, c.more...)
			name, last := j.path(j.active().name), j.active().end
			disk.Kill()
			if c.damage {
				disk.Corrupt(name, func(b []byte) []byte { b[last-footerSize-1] ^= 1; return b })
			}
			_, rec := mustOpen(t, disk, nil)
			if len(rec.Groups) != 1 || rec.Groups[0].Commit != c.want {
				t.Fatalf("want %d: %+v", c.want, rec)
			}
		})
	}
}
