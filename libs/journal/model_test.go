package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// The model of a journal: what each group must hold after any prefix of the records written.
type modelGroup struct {
	hashes  []uint64 // body hash of op i+1
	ids     []uint64 // identity of op i+1, low half; the high one is 0
	commit  int
	adopted []wire.PrepareHeader // ops above, newest first
	view    uint32
}

type model map[uint64]modelGroup

func (m model) clone() model {
	c := maps.Clone(m)
	for id, g := range c {
		g.hashes, g.ids, g.adopted = slices.Clone(g.hashes), slices.Clone(g.ids), slices.Clone(g.adopted)
		c[id] = g
	}
	return c
}

func (m model) equal(o model) bool {
	return maps.EqualFunc(m, o, func(a, b modelGroup) bool {
		return slices.Equal(a.hashes, b.hashes) && slices.Equal(a.ids, b.ids) && slices.Equal(a.adopted, b.adopted) && a.view == b.view
	})
}

func (m model) String() string {
	s := ""
	for _, id := range slices.Sorted(maps.Keys(m)) {
		s += fmt.Sprintf("%d:%d+%d@%d ", id, len(m[id].hashes), len(m[id].adopted), m[id].view)
	}
	return s
}

// apply lets a record take effect on the model.
func (m model) apply(r *Record) {
	g := m[r.Group]
	switch r.Kind {
	case KindPrepare:
		g.hashes = append(g.hashes, wire.Hash64(r.Frame[wire.HeaderSize:])^r.At.Hash)
		g.ids = append(g.ids, le.Uint64(r.Frame))
		g.adopted = g.adopted[:max(0, len(g.adopted)-1)]
	case KindTruncate:
		head := uint64(len(g.hashes))
		g.adopted = g.adopted[len(g.adopted)-int(min(uint64(len(g.adopted)), max(r.Op, head+1)-head-1)):]
		g.hashes, g.ids = g.hashes[:min(head, r.Op-1)], g.ids[:min(head, r.Op-1)]
	case KindAdopt:
		g.view, g.adopted = le.Uint32(r.Frame), nil
		for b := r.Frame[8:]; len(b) > 0; b = b[wire.HeaderSize:] {
			var h wire.PrepareHeader
			if err := h.Decode(b); err != nil {
				panic(err)
			}
			g.adopted = append(g.adopted, h)
		}
	case KindBorn:
		g = modelGroup{}
	case KindGone:
		delete(m, r.Group)
		return
	}
	m[r.Group] = g
}

// rig is one disk with a journal in it and the states it may be found in.
type rig struct {
	t       testing.TB
	disk    *vfs.Mem
	rng     *rand.Rand
	opt     Options
	j       *Journal
	now     model   // after all records of completed rounds
	maybe   []model // after each prefix of records not known to survive; maybe[0] is certain
	all     []model // after each record ever written
	synced  bool    // every round is synced
	suspect bool
	reads   bool // read everything back now and then
	rounds  int
}

func testOptions(fs vfs.FS) Options {
	return Options{FS: fs, Dir: "loop-0", Owner: Owner{Node: [16]byte{7}, Loop: 3}, FileSize: 32 << 10, Budget: 1 << 20, Reserve: 32 << 10}
}

func newRig(t testing.TB, seed uint64, synced bool) *rig {
	r := &rig{t: t, disk: vfs.NewMem(seed), rng: rand.New(rand.NewPCG(seed, 1)), now: model{}, synced: synced}
	r.opt = testOptions(nil)
	return r
}

var errCrash = errors.New("crashed")

// open opens the journal as the next process would and checks what it finds.
func (r *rig) open() error {
	r.opt.FS, r.opt.Suspect = r.disk.Mount(), r.suspect
	j, rec, err := Open(r.opt)
	if err != nil {
		return err
	}
	r.j = j
	if len(rec.Corrupt) > 0 {
		r.t.Fatalf("damage reported after a crash: %+v", rec.Corrupt)
	}
	found := r.found(rec)
	if len(r.maybe) == 0 {
		r.maybe = []model{r.now}
	}
	if !r.suspect { // after a kill only the round that was running is uncertain
		i := slices.IndexFunc(r.maybe, r.now.equal)
		for i+1 < len(r.maybe) && r.maybe[i+1].equal(r.now) {
			i++
		}
		r.maybe = r.maybe[i:]
	}
	if !slices.ContainsFunc(r.maybe, found.equal) {
		r.t.Fatalf("found %v, want one of %v", found, r.maybe)
	}
	r.now, r.maybe = found, nil
	if r.reads {
		r.read()
	}
	r.suspect = false
	return nil
}

// found turns what recovery reports into a model.
func (r *rig) found(rec *Recovered) model {
	m := model{}
	for _, g := range rec.Groups {
		if len(g.Faults) > 0 {
			r.t.Fatalf("group %d has faults after a crash: %+v", g.Group, g.Faults)
		}
		if g.Gone {
			continue
		}
		var mg modelGroup
		if g.Image != nil {
			for b := g.Image.State; len(b) > 0; b = b[16:] {
				mg.hashes = append(mg.hashes, binary.LittleEndian.Uint64(b))
				mg.ids = append(mg.ids, binary.LittleEndian.Uint64(b[8:]))
			}
			mg.commit = len(mg.hashes)
		}
		for i := range g.Entries {
			e := &g.Entries[i]
			body, err := r.j.Body(e, nil)
			if err != nil {
				r.t.Fatalf("body of %d/%d: %v", g.Group, e.Header.Op, err)
			}
			if want := uint64(len(mg.hashes) + 1); e.Header.Op != want {
				r.t.Fatalf("group %d has op %d, want %d", g.Group, e.Header.Op, want)
			}
			mg.hashes = append(mg.hashes, wire.Hash64(body)^e.At.Hash)
			mg.ids = append(mg.ids, e.Header.Checksum.Lo)
		}
		mg.adopted, mg.view = g.Adopted, g.AdoptView
		m[g.Group] = mg
	}
	n := 0
	if err := r.j.Replay(rec, func(e *Entry, body []byte) error { n++; return nil }); err != nil {
		r.t.Fatalf("replay: %v", err)
	}
	for _, g := range rec.Groups {
		n -= len(g.Entries)
	}
	if n != 0 {
		r.t.Fatalf("replay differs from the entries by %d", n)
	}
	return m
}

func frame(group, op uint64, body []byte) []byte { return chained(group, op, 0, body) }

// chained is a frame whose parent has the identity.
func chained(group, op, parent uint64, body []byte) []byte {
	h := wire.PrepareHeader{Command: wire.CommandPrepare, Operation: wire.OpSendMessages, Group: group, Op: op, Size: uint32(wire.HeaderSize + len(body))}
	h.Parent.Lo = parent
	h.Checksum = h.Identity()
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(body))
	h.Put(b)
	return append(b, body...)
}

// read reads every group back and compares it with the model.
func (r *rig) read() {
	reader, marks := r.j.NewReader(), 0
	for _, g := range r.j.index.groups {
		marks += len(g.marks)
	}
	if marks != r.j.index.count {
		r.t.Fatalf("%d marks, counted %d", marks, r.j.index.count)
	}
	for id := range uint64(8) {
		g := r.now[id]
		head := uint64(len(g.hashes))
		first, ok := r.j.First(id)
		if !ok {
			first = head + 1
		}
		if first > uint64(g.commit)+1 {
			r.t.Fatalf("group %d begins at %d of %d", id, first, head)
		}
		for _, op := range []uint64{0, first - 1, head + 1} {
			if _, _, err := reader.Read(id, op); !errors.Is(err, ErrDropped) {
				r.t.Fatalf("group %d op %d of %d..%d: %v", id, op, first, head, err)
			}
		}
		low := first
		check := func(e *Entry, body []byte) error {
			if h := wire.Hash64(body) ^ e.At.Hash; e.Header.Op != low || e.Header.Group != id || h != g.hashes[low-1] {
				r.t.Fatalf("group %d op %d reads as op %d of %d, hash %x, want %x", id, low, e.Header.Op, e.Header.Group, h, g.hashes[low-1])
			}
			low++
			return nil
		}
		for op := first; op <= head; op++ {
			e, body, err := reader.Read(id, op)
			if err == nil {
				low = op
				err = check(&e, body)
			}
			if err != nil {
				r.t.Fatalf("group %d op %d of %d..%d: %v", id, op, first, head, err)
			}
		}
		low = first
		if err := reader.Range(id, first, head, check); err != nil || low != head+1 {
			r.t.Fatalf("group %d ops %d..%d, read to %d: %v", id, first, head, low-1, err)
		}
	}
}

// round makes a random round that is legal on the model.
func (r *rig) round() (*Round, []model) {
	round := &Round{Seq: uint64(r.rounds), Sync: r.synced || r.rng.IntN(4) == 0}
	m := r.now.clone()
	var states []model
	for range 1 + r.rng.IntN(5) {
		id := uint64(1 + r.rng.IntN(6))
		g, ok := m[id]
		rec := Record{Kind: KindPrepare, Group: id, Op: uint64(len(g.hashes) + 1)}
		parent := uint64(0)
		if n := len(g.ids); n > 0 {
			parent = g.ids[n-1]
		}
		switch x := r.rng.IntN(20); {
		case !ok:
			rec.Kind, rec.Op = KindBorn, 0
		case x == 0 && len(g.hashes) > g.commit:
			rec.Kind, rec.Op = KindTruncate, uint64(g.commit+1+r.rng.IntN(len(g.hashes)-g.commit))
		case x == 1:
			rec.Kind, rec.Op = KindGone, 0
		case x == 4:
			rec = AdoptRecord(id, r.rng.Uint32N(9)+1, r.headers(id, rec.Op, r.rng.IntN(6)))
		case x == 5 && len(g.adopted) > 0:
			rec.Kind, rec.Op = KindTruncate, rec.Op+uint64(r.rng.IntN(len(g.adopted)+1))
		case x == 2:
			rec.Frame = chained(id, rec.Op, parent, nil)
			rec.At = Location{Segment: r.rng.Uint64(), Pos: 77, Len: 100_000, Hash: r.rng.Uint64()}
		default:
			size := r.rng.IntN(300)
			if x == 3 {
				size = r.rng.IntN(9000)
			}
			body := make([]byte, size)
			for i := range body {
				body[i] = byte(r.rng.Uint32())
			}
			rec.Frame = chained(id, rec.Op, parent, body)
		}
		round.Records = append(round.Records, rec)
		m.apply(&rec)
		states = append(states, m.clone())
	}
	return round, states
}

// headers makes n headers of ops from low on, newest first.
func (r *rig) headers(id, low uint64, n int) (list []wire.PrepareHeader) {
	for i := range uint64(n) {
		h := wire.PrepareHeader{Command: wire.CommandPrepare, Operation: wire.OpSendMessages, Group: id, Op: low + uint64(n) - 1 - i, Client: wire.U128{Lo: r.rng.Uint64()}}
		h.Checksum = h.Identity()
		list = append(list, h)
	}
	return list
}

// step does one random thing; errCrash if the process died in it.
func (r *rig) step() error {
	r.rounds++
	switch r.rng.IntN(12) {
	case 0:
		return r.checkpoint()
	case 1:
		return r.sync(r.j.Sync)
	case 2:
		return r.sync(func() error { return errors.Join(r.j.Sync(), r.j.MarkSynced()) })
	}
	if r.reads && r.rounds%4 == 0 {
		r.read()
	}
	round, states := r.round()
	if len(r.maybe) == 0 {
		r.maybe = []model{r.now}
	}
	r.maybe = append(r.maybe, states...)
	if err := r.j.Write(round); err != nil {
		return r.died(err)
	}
	r.all = append(r.all, states...)
	r.now = states[len(states)-1].clone()
	for _, id := range slices.Sorted(maps.Keys(r.now)) {
		g := r.now[id]
		g.commit = r.rng.IntN(len(g.hashes)-g.commit+1) + g.commit
		r.now[id] = g
	}
	if round.Sync {
		r.maybe = nil
	}
	return nil
}

func (r *rig) sync(f func() error) error {
	if err := f(); err != nil {
		return r.died(err)
	}
	r.maybe = nil
	return nil
}

func (r *rig) died(err error) error {
	if !r.disk.Crashed() {
		r.t.Fatalf("round %d: %v", r.rounds, err)
	}
	return errCrash
}

func (r *rig) checkpoint() error {
	var images []Image
	for _, id := range slices.Sorted(maps.Keys(r.now)) {
		g := r.now[id]
		m := Image{Group: id, Op: uint64(g.commit), Commit: uint64(g.commit), Adopted: g.adopted, AdoptView: g.view}
		for i, h := range g.hashes[:g.commit] {
			m.State = binary.LittleEndian.AppendUint64(m.State, h)
			m.State = binary.LittleEndian.AppendUint64(m.State, g.ids[i])
			binary.LittleEndian.PutUint64(m.Head[:], g.ids[i]) // its checksum
		}
		images = append(images, m)
	}
	return r.sync(func() error { return r.j.Checkpoint(r.j.Position(), images) })
}

// crash ends the process, or the machine, and says what may be found then.
func (r *rig) crash(power bool) {
	if r.disk.Crashed() {
		r.disk.Restart()
	} else if power {
		r.disk.PowerCut()
	} else {
		r.disk.Kill()
	}
	r.suspect = r.suspect || power
}

// run opens the journal and works until steps are done or the process dies.
func (r *rig) run(steps int) error {
	if err := r.open(); err != nil {
		return r.died(err)
	}
	for range steps {
		if err := r.step(); err != nil {
			return err
		}
	}
	return nil
}
