package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// corruptions are the ways a file of size bytes is damaged: a flipped bit, zeroed ranges and a cut,
// each at places step bytes apart.
func corruptions(size, step int) map[string]func([]byte) []byte {
	m := map[string]func([]byte) []byte{}
	for at := 0; at < size; at += step {
		m[fmt.Sprintf("flip at %d", at)] = func(b []byte) []byte {
			b[at] ^= 1 << (at % 8)
			return b
		}
		for _, n := range []int{64, 4096} {
			m[fmt.Sprintf("zero %d at %d", n, at)] = func(b []byte) []byte {
				clear(b[at:min(at+n, len(b))])
				return b
			}
		}
		m[fmt.Sprintf("cut at %d", at)] = func(b []byte) []byte { return b[:at] }
	}
	return m
}

// opsOf is what recovery holds of a group: body hashes by op, without damaged ones.
func opsOf(t *testing.T, j *Journal, g *GroupLog) map[uint64]uint64 {
	ops := map[uint64]uint64{}
	if g.Image != nil {
		for i := 0; i+16 <= len(g.Image.State); i += 16 {
			ops[uint64(i/16+1)] = binary.LittleEndian.Uint64(g.Image.State[i:])
		}
	}
	for i := range g.Entries {
		e := &g.Entries[i]
		if body, err := j.Body(e, nil); err == nil {
			ops[e.Header.Op] = wire.Hash64(body) ^ e.At.Hash
		} else if !e.Damaged {
			t.Fatalf("group %d op %d is called good: %v", g.Group, e.Header.Op, err)
		}
	}
	return ops
}

// silent lists the groups that differ from want without a fault that says so.
func silent(t *testing.T, j *Journal, rec *Recovered, want model) (list []string) {
	seen := map[uint64]bool{}
	for i := range rec.Groups {
		g := &rec.Groups[i]
		if g.Gone && len(g.Faults) == 0 {
			continue
		}
		seen[g.Group] = true
		if len(g.Faults) > 0 {
			continue
		}
		ops, w := opsOf(t, j, g), want[g.Group]
		if !g.AdoptUnsure && (!slices.Equal(g.Adopted, w.adopted) || g.AdoptView != w.view) {
			list = append(list, fmt.Sprintf("group %d has adopted %d of view %d, want %d of %d", g.Group, len(g.Adopted), g.AdoptView, len(w.adopted), w.view))
		}
		if _, known := want[g.Group]; !known && len(rec.Corrupt) == 0 {
			list = append(list, fmt.Sprintf("group %d is back", g.Group))
		} else if len(ops) != len(w.hashes) {
			list = append(list, fmt.Sprintf("group %d has %d ops, want %d", g.Group, len(ops), len(w.hashes)))
		} else {
			for k, h := range w.hashes {
				if ops[uint64(k+1)] != h {
					list = append(list, fmt.Sprintf("group %d op %d has other bytes", g.Group, k+1))
				}
			}
		}
	}
	for id := range want {
		if !seen[id] && len(rec.Corrupt) == 0 {
			list = append(list, fmt.Sprintf("group %d is missing", id))
		}
	}
	return list
}

// TestCorruption damages every file of a journal at many places. Every open succeeds; a group that
// does not hold all it should has a fault, and a file with a damage in it is kept.
func TestCorruption(t *testing.T) {
	for _, stop := range []string{"graceful", "killed"} {
		t.Run(stop, func(t *testing.T) {
			r := newRig(t, 11, false)
			if err := r.run(60); err != nil {
				t.Fatal(err)
			}
			for r.j.checkpoint.at == 0 || len(r.j.files) < 2 {
				if err := r.step(); err != nil {
					t.Fatal(err)
				}
			}
			opt := r.opt
			if stop == "graceful" {
				if err := r.j.Close(); err != nil {
					t.Fatal(err)
				}
				opt.Durable = r.j.Position()
			}
			r.disk.Kill()
			step := 127
			if testing.Short() {
				step = 499
			}
			cases := 0
			for _, file := range r.disk.Files() {
				kinds := corruptions(len(r.disk.Read(file)), step)
				if strings.Contains(file, sparePrefix) {
					kinds = corruptions(4096, 2048)
				}
				for _, name := range slices.Sorted(maps.Keys(kinds)) {
					cases++
					c := r.disk.Clone(uint64(cases))
					c.Corrupt(file, kinds[name])
					damaged(t, c, opt, r, file+": "+name)
				}
				cases++
				c := r.disk.Clone(uint64(cases))
				c.Drop(file)
				damaged(t, c, opt, r, file+": removed")
			}
			t.Logf("%d cases", cases)
		})
	}
}

func damaged(t *testing.T, disk *vfs.Mem, opt Options, r *rig, name string) {
	t.Helper()
	opt.FS = disk.Mount()
	j, rec, err := Open(opt)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if list := silent(t, j, rec, r.now); len(list) > 0 {
		// What a killed write leaves cannot be told from a lost tail: then the log is a prefix.
		torn := opt.Durable == 0 && len(rec.Corrupt) == 0 && !strings.Contains(name, "flip")
		torn = torn && slices.ContainsFunc(r.all, func(m model) bool { return len(silent(t, j, rec, m)) == 0 })
		if !torn {
			t.Fatalf("%s: %v\ncorrupt %+v", name, list, rec.Corrupt)
		}
		return
	}
	if len(rec.Corrupt) == 0 {
		return
	}
	faults := faultsOf(rec)
	// The next process finds the same, and the journal works.
	disk.Kill()
	opt.FS = disk.Mount()
	j, rec, err = Open(opt)
	if err != nil {
		t.Fatalf("%s, again: %v", name, err)
	}
	for id, f := range faults {
		if faultsOf(rec)[id] == "" {
			t.Fatalf("%s: fault of group %d is forgotten: %s", name, id, f)
		}
	}
	if list := silent(t, j, rec, r.now); len(list) > 0 {
		t.Fatalf("%s, again: %v", name, list)
	}
	fence(t, disk, opt, j, rec, name)
}

func faultsOf(rec *Recovered) map[uint64]string {
	m := map[uint64]string{}
	for _, g := range rec.Groups {
		if len(g.Faults) > 0 {
			m[g.Group] = fmt.Sprint(g.Faults)
		}
	}
	return m
}

// fence does what an owner does with damage: it checkpoints what it has and goes on. The faulty
// groups, and no others, stay fenced; the log is free of the damage.
func fence(t *testing.T, disk *vfs.Mem, opt Options, j *Journal, rec *Recovered, name string) {
	t.Helper()
	fenced := map[uint64]bool{99: false}
	var images []Image
	for i := range rec.Groups {
		g := &rec.Groups[i]
		faulty := len(g.Faults) > 0
		if g.Gone && !faulty {
			continue
		}
		fenced[g.Group] = faulty
		if !faulty || i%2 == 0 { // an owner may know nothing of a group without an image
			images = append(images, Image{Group: g.Group, Op: g.Head()})
		}
	}
	if err := j.Write(&Round{Records: []Record{{Kind: KindBorn, Group: 99}, {Kind: KindPrepare, Group: 99, Op: 1, Frame: frame(99, 1, []byte("x"))}}, Sync: true}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	images = append(images, Image{Group: 99})
	if err := j.Checkpoint(j.Position(), images); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if j.Used() > 2*opt.FileSize {
		t.Fatalf("%s: the damage holds %d bytes of log", name, j.Used())
	}
	disk.Kill()
	opt.FS, opt.Durable = disk.Mount(), 0
	_, rec, err := Open(opt)
	if err != nil {
		t.Fatalf("%s, after the checkpoint: %v", name, err)
	}
	for _, g := range rec.Groups {
		want, known := fenced[g.Group]
		if !known || g.Image == nil || g.Image.Fenced != want || len(g.Faults) > 0 != want {
			t.Fatalf("%s, after the checkpoint: group %d %+v, fenced %v; %+v", name, g.Group, g, want, rec.Corrupt)
		}
	}
	if len(rec.Groups) != len(fenced) || len(rec.Corrupt) > 0 {
		t.Fatalf("%s, after the checkpoint: %d of %d groups; %+v", name, len(rec.Groups), len(fenced), rec.Corrupt)
	}
	lost := slices.Contains(slices.Collect(maps.Values(fenced)), true) && !strings.Contains(name, "removed")
	if kept := strings.Count(fmt.Sprint(disk.Files()), damagedSuffix); kept == 0 && lost {
		t.Fatalf("%s: nothing is kept aside: %v", name, disk.Files())
	}
}

// TestLastRecord flips every bit of the last record of a killed process's log, one at a time: the
// record is complete, so each flip is corruption of a known group, never a tear.
func TestLastRecord(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 100), prepare(2, 1, 100))
	name, end := j.path(j.active().name), int(j.active().end)
	mustWrite(t, j, prepare(1, 2, 100))
	last := int(j.active().end)
	disk.Kill()
	for bit := end * 8; bit < last*8; bit++ {
		c := disk.Clone(1)
		c.Corrupt(name, func(b []byte) []byte { b[bit/8] ^= 1 << (bit % 8); return b })
		j, rec := mustOpen(t, c, nil)
		if len(rec.Groups) != 2 || headOf(rec, 1) != 2 || headOf(rec, 2) != 1 || len(rec.Groups[1].Faults) != 0 {
			t.Fatalf("byte %d: %+v", bit/8-end, rec)
		}
		g := &rec.Groups[0]
		if len(opsOf(t, j, g)) != 2 && len(g.Faults) == 0 {
			t.Fatalf("byte %d: lost without a word: %+v", bit/8-end, rec)
		}
	}
}

// TestTornTail cuts the last write of a killed process at every byte: what was whole stays, the rest
// is a tear and no damage.
func TestTornTail(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 100))
	name, end := j.path(j.active().name), int(j.active().end)
	body := bytes.Repeat([]byte{0xEE}, 100)
	first := Record{Kind: KindPrepare, Group: 1, Op: 2, Frame: frame(1, 2, body)}
	second := Record{Kind: KindPrepare, Group: 2, Op: 1, Frame: frame(2, 1, body)}
	mustWrite(t, j, first, second)
	last := int(j.active().end)
	disk.Kill()
	const whole = headerSize + wire.HeaderSize + 100 // the rest is padding and footer
	for at := end; at <= last; at++ {
		c := disk.Clone(1)
		c.Corrupt(name, func(b []byte) []byte { clear(b[at:]); return b })
		for range 2 {
			_, rec := mustOpen(t, c, nil)
			want1, want2 := uint64(1), uint64(0)
			if at-end >= whole {
				want1 = 2
			}
			if at-end-int(first.diskSize()) >= whole {
				want2 = 1
			}
			if h1, h2 := headOf(rec, 1), headOf(rec, 2); h1 != want1 || h2 != want2 {
				t.Fatalf("cut at %d: heads %d and %d, want %d and %d", at-end, h1, h2, want1, want2)
			}
			if len(rec.Corrupt) > 0 {
				t.Fatalf("cut at %d: %+v", at-end, rec.Corrupt)
			}
			c.Kill()
		}
	}
}

// TestAbsentFromCheckpoint: a group that a complete checkpoint does not hold was gone.
func TestAbsentFromCheckpoint(t *testing.T) {
	disk := vfs.NewMem(1)
	j, _ := mustOpen(t, disk, nil)
	mustWrite(t, j, prepare(1, 1, 100), prepare(2, 1, 100))
	if err := j.Checkpoint(j.Position(), []Image{{Group: 1, Op: 1}}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, j, prepare(3, 1, 100))
	disk.Kill()
	_, rec := mustOpen(t, disk, nil)
	if len(rec.Groups) != 2 || headOf(rec, 1) != 1 || headOf(rec, 3) != 1 || len(rec.Corrupt) > 0 {
		t.Fatalf("%+v", rec)
	}
}
