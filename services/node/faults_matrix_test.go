package node

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// damage is one thing that happens to one file behind the node's back.
type damage struct {
	name  string
	hit   func(m *vfs.Mem, file string)
	tail  bool   // takes everything from some point of the file on
	other string // the other file of a swap
}

func corrupt(name string, tail bool, change func([]byte) []byte) damage {
	return damage{name, func(m *vfs.Mem, file string) { m.Corrupt(file, change) }, tail, ""}
}

// damages of a file of the given content.
func damages(content []byte, others []string) []damage {
	n := len(content)
	list := []damage{
		{"deleted", func(m *vfs.Mem, file string) { m.Drop(file) }, true, ""},
		corrupt("emptied", true, func([]byte) []byte { return nil }),
		corrupt("zeroed", true, func(b []byte) []byte { return make([]byte, len(b)) }),
	}
	used := len(bytes.TrimRight(content, "\x00"))
	points := []int{0, 1, 9, 33, 65, 100, 300}
	for i := 1; i < 16; i++ {
		points = append(points, used*i/16)
	}
	points = append(points, used-1, used-20, used-100)
	slices.Sort(points)
	for _, at := range slices.Compact(points) {
		if at < 0 || at >= n {
			continue
		}
		list = append(list, corrupt(fmt.Sprintf("bit flipped at %d", at), false, func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b }))
	}
	for _, at := range []int{used / 5, used / 2, used - 1, used - 64} {
		if at > 0 && at < n {
			list = append(list, corrupt(fmt.Sprintf("cut at %d", at), true, func(b []byte) []byte { return b[:at] }))
		}
	}
	for _, at := range []int{0, used / 3 &^ 511, used * 3 / 4 &^ 511} {
		if at+512 <= n {
			list = append(list, corrupt(fmt.Sprintf("zeroed from %d to %d", at, at+512), at+512 >= used, func(b []byte) []byte { clear(b[at : at+512]); return b }))
		}
	}
	for _, other := range others {
		list = append(list, damage{"swapped with " + other, func(m *vfs.Mem, file string) {
			a, b := m.Read(file), m.Read(other)
			m.Corrupt(file, func([]byte) []byte { return b })
			m.Corrupt(other, func([]byte) []byte { return a })
		}, true, other})
	}
	return list
}

// kindOf sorts the files of a data directory.
func kindOf(file string) string {
	base := path.Base(file)
	switch {
	case strings.HasPrefix(file, "metadata/wal-"):
		return "metadata log"
	case strings.HasPrefix(base, "wal-"):
		return "partition log"
	case strings.HasPrefix(file, "metadata/checkpoint-"), strings.HasPrefix(file, "metadata/copy-"):
		return "metadata checkpoint"
	case strings.HasPrefix(base, "checkpoint-"), strings.HasPrefix(base, "copy-"):
		return "partition checkpoint"
	case strings.HasPrefix(base, "spare-"):
		return "spare"
	case strings.HasSuffix(base, ".log"):
		return "segment"
	case strings.HasSuffix(base, ".index"):
		return "index hint"
	}
	return base
}

// matrixDisk makes a data directory with every kind of file in it.
func matrixDisk(t *testing.T, clean bool) (*vfs.Mem, *run) {
	x := &run{world: newWorld(), mem: birth(t)}
	x.requests = 1
	x.start()
	x.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	x.createTopic("a", 3)
	x.createTopic("b", 2)
	const big = 200_000
	x.produce("a", 0, 1, 20, 300)
	for range 8 {
		x.produce("a", 0, big)
	}
	x.produce("a", 1, 10, 60_000)
	x.produce("a", 2, 70_000, 5)
	x.produce("b", 0, 40)
	x.commit("a", 0, alice, 5)
	x.commit("a", 2, bob, 1)
	x.second()
	x.checkpoint()
	x.second()
	x.second()
	x.createTopic("c", 1)
	x.produce("c", 0, 30)
	for i := range 6 {
		x.produce("a", 0, 7+i)
		x.produce("a", 1, 100+i, 3)
		x.produce("a", 2, 30_000+i)
		x.produce("b", 1, 500)
		x.produce("b", 1, 90_000)
		x.commit("a", 1, alice, uint64(i))
		x.second()
	}
	x.second()
	if x.broken != nil {
		t.Fatal(x.broken)
	}
	if clean {
		if err := x.halt(); err != nil {
			t.Fatal(err)
		}
	} else {
		x.mem.Kill()
	}
	return x.mem, x
}

// look judges what one partition shows: everything, or what is before the damage and then a typed
// status. Nothing else is right.
func (x *run) look(r *rig, p *part, group uint64) (fenced bool, err error) {
	want := p.after(len(p.past))
	f, failed := r.read(p.topic, p.number, x.consumers())
	for i, m := range f.messages {
		if m.offset != uint64(i) || i >= len(want.messages) {
			return false, fmt.Errorf("%s/%d: offset %d where %d is due, of %d", p.topic, p.number, m.offset, i, len(want.messages))
		}
		if !bytes.Equal(m.payload, payload(want.messages[i].number, want.messages[i].size)) {
			return false, fmt.Errorf("%s/%d: wrong bytes at offset %d", p.topic, p.number, i)
		}
	}
	if failed == nil && len(f.messages) == len(want.messages) {
		if why := want.differs(f, 0); why != "" {
			return false, fmt.Errorf("%s/%d: %s", p.topic, p.number, why)
		}
		b, e := x.messages(12)
		a := r.send(group, b)
		if a.ok() {
			p.past = append(p.past, e)
			if a.sent() != uint64(len(want.messages)) {
				return false, fmt.Errorf("%s/%d: a new message got offset %d", p.topic, p.number, a.sent())
			}
			return false, nil
		}
		if a.status == 0 || a.status.IsTransient() {
			return false, fmt.Errorf("%s/%d: send refused with %v", p.topic, p.number, a)
		}
		return true, nil
	}
	if failed == nil {
		return false, fmt.Errorf("%s/%d: silent gap: %d of %d messages, then an empty answer", p.topic, p.number, len(f.messages), len(want.messages))
	}
	b, _ := x.messages(12)
	if a := r.send(group, b); a.open || a.status == 0 || a.status.IsTransient() {
		return false, fmt.Errorf("%s/%d: fenced, but a send ends with %v", p.topic, p.number, a)
	}
	return true, nil
}

// survey judges a booted node after damage. torn allows the log to end early: what an unclean end
// leaves behind the last record can not be told from a record that was destroyed there.
func (x *run) survey(r *rig, views map[uint64]uint64, torn bool) (fenced int, mended bool, err error) {
	v := r.metadata.View()
	whole := v.Op >= x.op && wire.Hash64(v.EncodeSnapshot(nil)) == views[v.Op]
	if !whole && r.metadata.Damaged() == nil && !torn {
		return 0, false, fmt.Errorf("metadata shows op %d of %d as if that were all", v.Op, x.op)
	}
	if r.metadata.Damaged() != nil {
		if r.metric("whippet_metadata_damaged") != 1 || !r.logged("metadata") {
			return 0, false, fmt.Errorf("metadata is damaged, but log and metric do not say so")
		}
		r.asked = x.requests + 1
		if a := r.register(); !a.ok() {
			return 0, false, fmt.Errorf("metadata is damaged: no login: %v", a)
		}
		if a := r.change(wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("new")}.Append(nil)); a.status != wire.CodeStateFileCorrupted {
			return 0, false, fmt.Errorf("metadata is damaged: a change ends with %v", a)
		}
	}
	for id, p := range x.parts {
		if r.group(p.topic, p.number) != id {
			if whole {
				return 0, false, fmt.Errorf("%s/%d is gone", p.topic, p.number)
			}
			continue
		}
		is, err := x.look(r, p, id)
		if err != nil && !(torn && strings.Contains(err.Error(), "silent gap")) {
			return 0, false, err
		}
		if is {
			fenced++
		}
	}
	if fenced > 0 && (r.metric("whippet_partition_fenced_total") == 0 || !r.logged("fenced")) {
		return 0, false, fmt.Errorf("%d partitions are fenced, but log and metric do not say so", fenced)
	}
	return fenced, r.said.Len() > 0, nil
}

func testMatrix(t *testing.T, clean bool) {
	base, x := matrixDisk(t, clean)
	files := append(base.Files(), ".x", "metadata/.x", "loops/0/.x", "loops/.x", "partitions/.x", "trash/.x")
	for _, f := range base.Files() {
		if kindOf(f) == "segment" {
			files = append(files, path.Dir(f)+"/.x", path.Dir(f)+"/junk.log", path.Dir(path.Dir(f))+"/.x")
			break
		}
	}
	views, parts, next := x.views, x.parts, x.next
	type row struct{ faults, mended, fenced, metadata, most int }
	table := map[string]*row{}
	newest := map[string]string{} // log file of a directory
	for _, f := range base.Files() {
		if strings.Contains(path.Base(f), "wal-") {
			newest[path.Dir(f)] = max(newest[path.Dir(f)], f)
		}
	}
	boots := 0
	for i, file := range files {
		content := base.Read(file)
		stray := content == nil
		var list []damage
		if stray {
			list = []damage{{"stray file", func(m *vfs.Mem, file string) {
				if f, err := m.Create(file); err == nil {
					_, _ = f.WriteAt([]byte("what is this"), 0)
					_ = f.Close()
				}
			}, false, ""}}
		} else {
			var others []string
			for j := i + 1; j < len(files) && len(others) < 2; j++ {
				if base.Read(files[j]) != nil {
					others = append(others, files[j])
				}
			}
			list = damages(content, others)
		}
		kind := kindOf(file)
		if table[kind] == nil {
			table[kind] = &row{}
		}
		for _, d := range list {
			mem := base.Clone(uint64(boots))
			d.hit(mem, file)
			what := fmt.Sprintf("%s: %s", file, d.name)
			torn := !clean && d.tail && (newest[path.Dir(file)] == file || newest[path.Dir(d.other)] == d.other)
			y := &run{world: &world{parts: map[uint64]*part{}, who: x.who, op: x.op, views: views, requests: x.requests, next: next}, mem: mem}
			for id, p := range parts {
				copied := *p
				copied.past = slices.Clone(p.past)
				y.parts[id] = &copied
			}
			r, err := boot(mem, nil)
			boots++
			if err != nil {
				t.Errorf("%s: boot refused: %v", what, err)
				continue
			}
			y.rig = r
			fenced, mended, err := y.survey(r, views, torn)
			if err != nil {
				t.Errorf("%s: %v\n%s", what, err, r.said)
				continue
			}
			k := table[kind]
			k.faults++
			k.most = max(k.most, fenced)
			if r.metadata.Damaged() != nil {
				k.metadata++
			}
			switch {
			case fenced > 0:
				k.fenced++
			case mended:
				k.mended++
			}
			one := !d.tail && !strings.Contains(d.name, "zeroed")
			if one && fenced > 1 || fenced > 1 && (kind == "segment" || kind == "index hint") && !strings.Contains(d.name, "swapped") {
				t.Errorf("%s: %d partitions are fenced\n%s", what, fenced, r.said)
			}
			if torn || boots%4 != 0 {
				continue
			}
			// What a boot found out must not be forgotten by the next.
			if err := r.halt(); err != nil {
				t.Errorf("%s: stop: %v", what, err)
				continue
			}
			again, err := boot(mem, nil)
			if err != nil {
				t.Errorf("%s: second boot refused: %v", what, err)
				continue
			}
			y.rig = again
			if f, _, err := y.survey(again, allViews(views, again), false); err != nil || f != fenced {
				t.Errorf("%s: second boot: %d fenced, before %d: %v\n%s", what, f, fenced, err, again.said)
			}
		}
	}
	for kind, k := range table {
		t.Logf("%-20s %4d faults: repaired or harmless %d (said %d), partition fenced %d (at most %d), metadata read-only %d",
			kind, k.faults, k.faults-k.fenced-k.metadata, k.mended, k.fenced, k.most, k.metadata)
	}
	t.Logf("%d boots", boots)
}

// allViews accepts the view of a node that went on from a whole one.
func allViews(views map[uint64]uint64, r *rig) map[uint64]uint64 {
	v := r.metadata.View()
	if _, known := views[v.Op]; known {
		return views
	}
	return map[uint64]uint64{v.Op: wire.Hash64(v.EncodeSnapshot(nil))}
}

func TestCorruptionMatrixAfterStop(t *testing.T) { testMatrix(t, true) }
func TestCorruptionMatrixAfterKill(t *testing.T) {
	if testing.Short() {
		t.Skip("one matrix is enough for a short run")
	}
	testMatrix(t, false)
}
