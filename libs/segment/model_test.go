package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// The model: a partition is a slice of batches. A journal of everything done since the last
// checkpoint stands in for the real one, and a crash replays it into a reopened log.

type modelBatch struct {
	base, time uint64
	messages   []message
	bytes      []byte
}

func (b *modelBatch) next() uint64 { return b.base + uint64(len(b.messages)) }

type opKind uint8

const (
	opAppend opKind = iota
	opTrim
	opPurge
)

// record is one journal entry. Large bodies stand in the segment.
type record struct {
	kind  opKind
	batch *modelBatch
	at    Location // large
	large bool
	value uint64 // of trim and purge
}

type model struct {
	t    *testing.T
	rand *rand.Rand
	fs   vfs.FS
	mem  *vfs.Mem
	opt  Options
	log  *Log

	batches    []*modelBatch // retained; committed of them are visible
	committed  int
	start      uint64
	next       uint64
	time       uint64
	generation uint64

	state   State    // of the last checkpoint
	journal []record // above it
	synced  int      // journal records a power cut cannot take
	files   []vfs.File
	now     int64
	lives   map[uint64][]*modelBatch // all committed batches by generation, trimmed ones too
}

// crashed is thrown out of a step whose file system died under it.
type crashed struct{}

// must ends the test on an error, or the step if the error is a crash.
func (m *model) must(err error) {
	m.t.Helper()
	if err != nil && m.mem.Crashed() {
		panic(crashed{})
	} else if err != nil {
		m.t.Fatal(err)
	}
}

const modelSegment = 300 << 10

func newModel(t *testing.T, seed int64, mem *vfs.Mem) *model {
	m := &model{t: t, rand: rand.New(rand.NewSource(seed)), mem: mem, time: 1000, lives: map[uint64][]*modelBatch{}}
	m.opt = Options{SegmentSize: modelSegment}
	m.open()
	return m
}

func (m *model) open() {
	m.t.Helper()
	m.fs, m.opt.Files = m.mem.Mount(), NewFiles(3)
	l, _, err := Open(m.fs, "p/1", m.opt, m.state)
	m.must(err)
	m.log = l
}

// append adds one random batch, small, large or near the limit between them.
func (m *model) append() {
	n, size := 1+m.rand.Intn(6), 10+m.rand.Intn(300)
	switch m.rand.Intn(6) {
	case 0:
		n, size = 1+m.rand.Intn(20), 5000+m.rand.Intn(5000)
	case 1: // right around the limit
		n, size = 1, InlineLimit-256-48-20+m.rand.Intn(40)
	case 2:
		n, size = 50+m.rand.Intn(200), m.rand.Intn(50)
	}
	m.time += 1 + uint64(m.rand.Intn(10))
	b := &modelBatch{base: m.next, time: m.time, messages: randomMessages(m.rand, n, size)}
	b.bytes = batchOf(b.base, b.time, 0, b.messages)
	r := record{kind: opAppend, batch: b}
	buf := bytes.Clone(b.bytes)
	p := m.log.Append(buf, 1)
	if p.Large != (len(buf) > InlineLimit) {
		m.t.Fatalf("batch of %d bytes: large %v", len(buf), p.Large)
	}
	if p.Large {
		_, err := p.File.WriteAt(buf, p.At.Pos)
		m.must(err)
		r.large, r.at = true, p.At
		m.files = append(m.files, p.File)
	}
	for i := range buf {
		buf[i] = 0xDB // the caller's buffer is its own again
	}
	m.journal = append(m.journal, r)
	m.batches, m.next = append(m.batches, b), b.next()
}

func (m *model) cut() {
	n := m.committed + m.rand.Intn(len(m.batches)-m.committed+1)
	if n == len(m.batches) {
		return
	}
	removed := m.batches[n:]
	m.next = removed[0].base
	m.log.Cut(m.next)
	m.batches = m.batches[:n]
	m.journal = m.journal[:len(m.journal)-len(removed)] // uncommitted appends are the newest records
	m.synced = min(m.synced, len(m.journal))
}

func (m *model) publish() {
	if n := m.committed + m.rand.Intn(len(m.batches)-m.committed+1); n > m.committed {
		m.committed = n
		m.log.Publish(m.batches[n-1].next())
	}
}

func (m *model) trim() {
	if m.committed != len(m.batches) {
		return // the op would follow uncommitted ones in the log; they commit together
	}
	upTo, ok := m.log.Sealed(1 + m.rand.Intn(3))
	if !ok {
		return
	}
	m.applyTrim(upTo)
	m.journal = append(m.journal, record{kind: opTrim, value: upTo})
	m.log.Trim(upTo)
}

func (m *model) applyTrim(upTo uint64) {
	for len(m.batches) > 0 && m.batches[0].next()-1 <= upTo {
		m.start = m.batches[0].next()
		m.batches = m.batches[1:]
		m.committed--
	}
}

func (m *model) purge() {
	m.generation++
	m.journal = append(m.journal[:len(m.journal)-(len(m.batches)-m.committed)], record{kind: opPurge, value: m.generation})
	m.synced = min(m.synced, len(m.journal))
	m.batches, m.committed, m.start, m.next = nil, 0, 0, 0
	m.log.Purge(m.generation)
}

func (m *model) run(r *Removal) {
	if r == nil {
		return
	}
	m.must(r.Run(m.now))
}

func (m *model) flush() {
	m.now += int64(m.rand.Intn(6e9))
	f := m.log.FlushPlan(m.now, m.rand.Intn(3) == 0)
	if f == nil {
		return
	}
	m.must(f.Run())
	if m.rand.Intn(4) == 0 {
		m.append() // meanwhile
		m.publish()
	}
	m.log.Flushed(f, nil)
}

func (m *model) checkpoint() {
	c := m.log.Checkpoint()
	uncommitted := len(m.batches) - m.committed
	m.must(c.Run())
	if m.rand.Intn(4) == 0 {
		m.log.Checkpointed(c, errors.New("the journal could not write it"))
		return
	}
	removal := m.log.Checkpointed(c, nil)
	st, err := DecodeState(c.State.Append(nil))
	if err != nil {
		m.t.Fatal(err)
	}
	m.state = st
	m.journal = m.journal[len(m.journal)-uncommitted:]
	m.synced = 0
	if m.rand.Intn(3) > 0 {
		m.run(removal)
	}
	if m.rand.Intn(2) == 0 {
		m.sync()
	}
}

// sync does what the journal's syncer does: bodies first.
func (m *model) sync() {
	for _, f := range m.files {
		m.must(f.Sync())
	}
	m.files = nil
	m.synced = len(m.journal)
}

// reopen replays the first n journal records; from sure on, a large body may be gone and then ends
// the log there. verify is how a boot after a power cut looks at large bodies.
func (m *model) reopen(n, sure int, verify bool) {
	m.t.Helper()
	m.files = nil
	m.open()
	journal := m.journal[:n]
	m.rebuild()
	m.journal = nil
	for i, r := range journal {
		switch r.kind {
		case opAppend:
			var err error
			if r.large {
				if err = m.log.Restore(r.at, 1, verify); err == nil {
					m.files = append(m.files, m.log.last)
				}
			} else {
				m.log.Append(bytes.Clone(r.batch.bytes), 1)
			}
			var d *Damage
			if errors.As(err, &d) && i >= sure {
				m.settle()
				return // never acked: the log ends here
			} else if err != nil {
				m.t.Fatalf("record %d of %d, %d sure: %v", i, n, sure, err)
			}
			m.batches, m.next, m.time = append(m.batches, r.batch), r.batch.next(), r.batch.time
			m.committed++
			m.log.Publish(m.next)
		case opTrim:
			m.applyTrim(r.value)
			m.log.Trim(r.value)
		case opPurge:
			m.generation = r.value
			m.batches, m.committed, m.start, m.next = nil, 0, 0, 0
			m.log.Purge(r.value)
		}
		m.journal = append(m.journal, r)
	}
	m.settle()
}

func (m *model) settle() {
	m.must(m.log.Settle())
	m.synced = 0
}

// rebuild sets the model back to what the checkpoint state counts.
func (m *model) rebuild() {
	m.batches = nil
	for _, b := range m.lives[m.state.Generation] {
		if b.base >= m.state.Start && b.next() <= m.state.Next {
			m.batches = append(m.batches, b)
		}
	}
	m.committed = len(m.batches)
	m.start, m.next, m.generation = m.state.Start, m.state.Next, m.state.Generation
}

// remember notes the committed batches of the current generation.
func (m *model) remember() {
	known := m.lives[m.generation]
	for _, b := range m.batches[:m.committed] {
		for len(known) > 0 && known[len(known)-1].base >= b.base && known[len(known)-1] != b {
			known = known[:len(known)-1] // lost with the power, its offset given again
		}
		if len(known) == 0 || known[len(known)-1].base < b.base {
			known = append(known, b)
		}
	}
	m.lives[m.generation] = known
}

// expect computes what a poll must return, from messages alone.
func (m *model) expect(q Query, maxBytes int) (out []byte, n uint32, first uint64) {
	batches := m.batches[:m.committed]
	end := m.start
	if m.committed > 0 {
		end = batches[m.committed-1].next()
	}
	from := m.start
	switch q.Kind {
	case Offset:
		from = max(from, q.Value)
	case Timestamp:
		from = end
		for _, b := range batches {
			if b.time >= q.Value {
				from = b.base
				break
			}
		}
	case Last:
		if end-m.start > uint64(q.Count) {
			from = end - uint64(q.Count)
		}
	}
	left := uint64(q.Count)
	for _, b := range batches {
		if b.next() <= from || left == 0 {
			continue
		}
		if n > 0 && len(out)+len(b.bytes) > maxBytes {
			break
		}
		skip := 0
		if from > b.base {
			skip = int(from - b.base)
		}
		if n == 0 {
			first = b.base + uint64(skip)
		}
		take := min(len(b.messages)-skip, int(min(left, 1<<30)))
		out = append(out, batchOf(b.base, b.time, skip, b.messages[skip:skip+take])...)
		n += uint32(take)
		left -= uint64(take)
	}
	return out, n, first
}

func (m *model) randomQuery() Query {
	q := Query{Kind: Kind(1 + m.rand.Intn(4)), Count: uint32(m.rand.Intn(40))}
	switch m.rand.Intn(4) {
	case 0:
		q.Count = uint32(m.rand.Intn(2000))
	case 1:
		q.Count = 1<<32 - 1
	}
	if q.Kind == Offset {
		q.Value = uint64(m.rand.Int63n(int64(m.next) + 5))
	} else if q.Kind == Timestamp {
		q.Value = uint64(m.rand.Int63n(int64(m.time) + 10))
		if len(m.batches) > 0 && m.rand.Intn(2) == 0 {
			q.Value = m.batches[m.rand.Intn(len(m.batches))].time + uint64(m.rand.Intn(2))
		}
	}
	return q
}

func (m *model) poll() {
	q := m.randomQuery()
	maxBytes := 1 + m.rand.Intn(1<<m.rand.Intn(21))
	want, count, first := m.expect(q, maxBytes)
	got, p := m.read(q, maxBytes)
	if !bytes.Equal(got, want) || p.Messages() != count {
		m.t.Fatalf("poll %+v of at most %d: %d bytes, %d messages; want %d bytes, %d messages from %d (log %d..%d)",
			q, maxBytes, len(got), p.Messages(), len(want), count, first, m.start, m.next)
	}
	if count > 0 && (p.FirstOffset() != first || p.LastOffset() != first+uint64(count)-1) {
		m.t.Fatalf("poll %+v: offsets %d..%d, want %d..%d", q, p.FirstOffset(), p.LastOffset(), first, first+uint64(count)-1)
	}
}

func (m *model) read(q Query, maxBytes int) ([]byte, *Plan) {
	m.t.Helper()
	p, o := m.log.View().Plan(q, maxBytes)
	if o == Empty {
		return nil, &p
	}
	if o == Cold && m.rand.Intn(2) == 0 {
		m.must(p.Resolve())
	}
	dst := make([]byte, p.Size())
	n, err := p.Read(dst)
	m.must(err)
	return dst[:n], &p
}

// check compares the figures and polls everything.
func (m *model) check() {
	m.t.Helper()
	s := m.log.Stats()
	var size int64
	next := m.start
	for _, b := range m.batches[:m.committed] {
		size += int64(len(b.bytes))
		next = b.next()
	}
	if s.Start != m.start || s.Next != next || s.Bytes != size || s.Generation != m.generation || m.log.Next() != m.next {
		m.t.Fatalf("stats %+v, next %d; want %d..%d of %d bytes, generation %d, next %d", s, m.log.Next(), m.start, next, size, m.generation, m.next)
	}
	want, _, _ := m.expect(Query{Kind: First, Count: 1<<32 - 1}, 1<<40)
	got, _ := m.read(Query{Kind: First, Count: 1<<32 - 1}, 1<<40)
	if !bytes.Equal(got, want) {
		m.t.Fatalf("whole log differs: %d bytes, want %d", len(got), len(want))
	}
}

func (m *model) step() {
	switch n := m.rand.Intn(100); {
	case n < 40:
		m.append()
	case n < 60:
		m.publish()
	case n < 65:
		m.cut()
	case n < 80:
		m.poll()
	case n < 88:
		m.flush()
	case n < 91:
		m.checkpoint()
	case n < 94:
		m.sync()
	case n < 97:
		m.trim()
	case n < 98 && m.rand.Intn(3) == 0:
		m.purge()
	default:
		m.check()
	}
	m.remember()
}

func TestModel(t *testing.T) {
	for seed := range int64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed, vfs.NewMem(uint64(seed)))
			for i := range 400 {
				m.step()
				if i%100 == 99 { // a clean restart
					m.log.Close()
					m.reopen(len(m.journal), len(m.journal), false)
					m.remember()
					m.check()
				}
			}
		})
	}
}

// crash ends the process, or the machine's run, and starts the next one with what a journal would
// still have: everything after a kill, at least the synced records after a power cut.
func (m *model) crash(power bool) {
	n := len(m.journal)
	if power {
		m.mem.PowerCut()
		n = m.synced + m.rand.Intn(n-m.synced+1)
		m.reopen(n, m.synced, true)
	} else {
		m.mem.Kill()
		m.reopen(n, n, false)
	}
	m.remember()
	m.check()
}

func TestCrashBetweenSteps(t *testing.T) {
	for seed := range int64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed, vfs.NewMem(uint64(seed)))
			for range 400 {
				m.step()
				if m.rand.Intn(40) == 0 {
					m.crash(m.rand.Intn(2) == 0)
				}
			}
		})
	}
}

// TestCrashAtEveryCall runs a workload again and again and ends it in the middle of its k-th call
// that changes the disk, for every k.
func TestCrashAtEveryCall(t *testing.T) {
	for _, power := range []bool{false, true} {
		for seed := range int64(1) {
			t.Run(fmt.Sprintf("power=%v/%d", power, seed), func(t *testing.T) {
				k := 1
				for crashAt(t, seed, k, power) {
					k++
				}
				if k < 20 {
					t.Errorf("only %d calls", k)
				}
			})
		}
	}
}

// crashAt reports whether the workload came as far as its k-th call.
func crashAt(t *testing.T, seed int64, k int, power bool) bool {
	m := newModel(t, seed, vfs.NewMem(uint64(seed)<<20+uint64(k)))
	m.mem.CrashAt(k, power)
	if !m.untilCrash(100) {
		return false
	}
	m.crash(power)
	for range 30 {
		m.step()
	}
	m.check()
	return true
}

func (m *model) untilCrash(steps int) (happened bool) {
	defer func() {
		if r := recover(); r == (crashed{}) {
			happened = true
			m.remember()
		} else if r != nil {
			panic(r)
		}
	}()
	for range steps {
		m.step()
	}
	return false
}
