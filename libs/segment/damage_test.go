package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// ruin is a log of several segments whose files a test damages between two runs.
type ruin struct {
	*model
	state State
	files map[string][]byte // as they were
	logs  []string
	index []string
}

func newRuin(t *testing.T, fs *vfs.Mem) *ruin {
	t.Helper()
	m := newModel(t, 1, fs)
	for range 90 {
		m.append()
	}
	m.committed = len(m.batches)
	m.log.Publish(m.next)
	c := m.log.Checkpoint()
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	m.log.Checkpointed(c, nil)
	if len(c.State.Segments) < 3 {
		t.Fatalf("only %d segments", len(c.State.Segments))
	}
	// The growing segment's hint is not due yet; write it all the same.
	if err := c.extents[len(c.extents)-1].writeHint(); err != nil {
		t.Fatal(err)
	}
	m.log.Close()
	r := &ruin{model: m, state: c.State, files: map[string][]byte{}}
	es, err := fs.ReadDir("p/1/0000000000")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		name := "p/1/0000000000/" + e.Name
		r.files[name] = readFile(t, fs, name)
		if strings.HasSuffix(name, ".log") {
			r.logs = append(r.logs, name)
		} else {
			r.index = append(r.index, name)
		}
	}
	if len(r.logs) != len(r.index) || len(r.logs) != len(c.State.Segments) {
		t.Fatalf("files: %v %v", r.logs, r.index)
	}
	return r
}

func readFile(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Open(name)
	if vfs.IsNotExist(err) {
		f, err = fs.Create(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// judge opens the log and polls it all over. It returns the damage met; everything that was read
// must be right.
func (r *ruin) judge(polls int) *Damage {
	r.t.Helper()
	r.opt.Files = NewFiles(2)
	l, _, err := Open(r.fs, "p/1", r.opt, r.state)
	if err != nil {
		r.t.Fatal(err)
	}
	r.log = l
	defer l.Close()
	var met *Damage
	if err := l.Settle(); err != nil && !errors.As(err, &met) {
		r.t.Fatal(err)
	}
	for i := range polls {
		q := r.randomQuery()
		maxBytes := 1 << r.rand.Intn(22)
		if i == 0 {
			q, maxBytes = Query{Kind: First, Count: 1<<32 - 1}, 1<<40
		}
		p, o := l.View().Plan(q, maxBytes)
		if o == Empty {
			continue
		}
		if o == Cold {
			if err := p.Resolve(); err != nil {
				r.note(&met, err)
				continue
			}
		}
		dst := make([]byte, p.Size())
		n, err := p.Read(dst)
		if err == ErrTrimmed { // an index was rebuilt: once more must do
			p, _ = l.View().Plan(q, maxBytes)
			dst = make([]byte, p.Size())
			n, err = p.Read(dst)
		}
		if err != nil {
			r.note(&met, err)
			continue
		}
		if want, _, _ := r.expect(q, maxBytes); !bytes.Equal(dst[:n], want) {
			r.t.Fatalf("poll %+v of at most %d returned wrong bytes", q, maxBytes)
		}
	}
	return met
}

func (r *ruin) note(met **Damage, err error) {
	r.t.Helper()
	var d *Damage
	if !errors.As(err, &d) {
		r.t.Fatalf("damage must be told as such: %v", err)
	}
	*met = d
}

func (r *ruin) repair() {
	for name, b := range r.files {
		writeFile(r.t, r.fs, name, b)
	}
}

func TestDamagedLogIsNeverServed(t *testing.T) {
	r := newRuin(t, vfs.NewMem(1))
	if d := r.judge(20); d != nil {
		t.Fatalf("undamaged: %v", d)
	}
	random := rand.New(rand.NewSource(3))
	cases := map[string]func(name string, b []byte) []byte{
		"missing":   nil,
		"empty":     func(_ string, b []byte) []byte { return nil },
		"shortened": func(_ string, b []byte) []byte { return b[:random.Intn(len(b))] },
		"zeroed": func(_ string, b []byte) []byte {
			at := random.Intn(len(b) - 512)
			clear(b[at : at+512])
			return b
		},
		"a batch repeated": func(_ string, b []byte) []byte {
			n := parseHeader(b).length
			return slices.Insert(b, 0, b[:n]...)
		},
	}
	for at := range 52 { // every header byte, in the first batch and in the newest
		cases[fmt.Sprintf("first header byte %d", at)] = func(_ string, b []byte) []byte { b[at] ^= 1 << random.Intn(8); return b }
	}
	for i := range 60 {
		cases[fmt.Sprintf("random bit %d", i)] = func(_ string, b []byte) []byte {
			b[random.Intn(len(b))] ^= 1 << random.Intn(8)
			return b
		}
	}
	for what, ruin := range cases {
		name := r.logs[random.Intn(len(r.logs))]
		if ruin == nil {
			if err := r.fs.Remove(name); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, r.fs, name, ruin(name, bytes.Clone(r.files[name])))
		}
		d := r.judge(10)
		if d == nil {
			t.Errorf("%s in %s: served without a word", what, name)
		} else if d.Path != name {
			t.Errorf("%s in %s: blamed %s", what, name, d.Path)
		}
		r.repair()
	}
}

func TestDamagedIndexIsNoDamage(t *testing.T) {
	r := newRuin(t, vfs.NewMem(1))
	random := rand.New(rand.NewSource(4))
	cases := map[string]func(name string, b []byte) []byte{
		"missing":   nil,
		"empty":     func(_ string, b []byte) []byte { return nil },
		"shortened": func(_ string, b []byte) []byte { return b[:random.Intn(len(b))] },
		"of another segment": func(name string, b []byte) []byte {
			for _, other := range r.index {
				if other != name {
					return r.files[other]
				}
			}
			return nil
		},
		"misleading": func(_ string, b []byte) []byte { return lie(b, func(e *entry) { e.pos += 300 }) },
		"skewed":     func(_ string, b []byte) []byte { return lie(b, func(e *entry) { e.delta++ }) },
	}
	for i := range 40 {
		cases[fmt.Sprintf("random bit %d", i)] = func(_ string, b []byte) []byte {
			b[random.Intn(len(b))] ^= 1 << random.Intn(8)
			return b
		}
	}
	for what, ruin := range cases {
		for _, name := range r.index {
			if ruin == nil {
				if err := r.fs.Remove(name); err != nil {
					t.Fatal(err)
				}
			} else {
				writeFile(t, r.fs, name, ruin(name, bytes.Clone(r.files[name])))
			}
		}
		if d := r.judge(20); d != nil {
			t.Errorf("index %s: %v", what, d)
		}
		r.repair()
	}
}

// lie rewrites all entries of a hint file but the first and the last and seals it again, so that
// nothing but the log itself contradicts it.
func lie(b []byte, change func(*entry)) []byte {
	base := uint64(0)
	for i := range 8 {
		base |= uint64(b[8+i]) << (8 * i)
	}
	h, ok := decodeHint(base, b)
	if !ok {
		panic("hint does not decode")
	}
	for i := 1; i < len(h.entries)-1; i++ {
		change(&h.entries[i])
	}
	return encodeHint(base, &h.index, h.next, h.fence)
}

func TestStateDecode(t *testing.T) {
	s := State{Generation: 3, Start: 5, Next: 20, Time: 77, SegmentSize: 1 << 20, Segments: []SegmentState{
		{Base: 5, Next: 9, Length: 900, Last: 300, FirstTime: 1, LastTime: 2, Hash: 3},
		{Base: 9, Next: 20, Length: 1000, Last: 0, FirstTime: 4, LastTime: 77},
	}}
	b := s.Append([]byte("x"))[1:]
	got, err := DecodeState(b)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(s) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range b {
		b[i] ^= 0x10
		if _, err := DecodeState(b); err == nil {
			t.Fatalf("byte %d flipped and accepted", i)
		}
		b[i] ^= 0x10
		if _, err := DecodeState(b[:i]); err == nil {
			t.Fatalf("cut at %d and accepted", i)
		}
	}
	s.Segments[1].Base = 10 // a hole
	if _, err := DecodeState(s.Append(nil)); err == nil {
		t.Fatal("hole accepted")
	}
}
