package segment

import (
	"encoding/binary"
	"errors"
	"math/rand"
	"sync"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// stampedMessages writes generation and offset into every payload, so that a reader can tell bytes of
// another place or life.
func stampedMessages(r *rand.Rand, generation, base uint64, n, size int) []message {
	ms := randomMessages(r, n, size+16)
	for i := range ms {
		binary.LittleEndian.PutUint64(ms[i].payload, generation)
		binary.LittleEndian.PutUint64(ms[i].payload[8:], base+uint64(i))
	}
	return ms
}

// TestReadersBesideTheLoop runs polls on any view, old ones too, while the loop appends, cuts,
// flushes, checkpoints, trims and purges. A poll returns exactly its offsets or says ErrTrimmed.
func TestReadersBesideTheLoop(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _, err := Open(fs, "p/1", Options{SegmentSize: 200 << 10, Files: NewFiles(2)}, State{})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() { pollUntil(t, l, stop, int64(i)) })
	}
	loopFor(t, l, 800)
	close(stop)
	readers.Wait()
}

func loopFor(t *testing.T, l *Log, steps int) {
	r := rand.New(rand.NewSource(99))
	var background sync.WaitGroup
	defer background.Wait()
	later := func(removal *Removal) {
		if removal != nil {
			background.Go(func() {
				if err := removal.Run(1); err != nil {
					t.Error(err)
				}
			})
		}
	}
	type finished struct {
		flush      *Flush
		checkpoint *Checkpoint
		err        error
	}
	done := make(chan finished, 8)
	checkpointing := false
	time, generation := uint64(0), uint64(0)
	for step := range steps {
		n, size := 1+r.Intn(10), r.Intn(200)
		if r.Intn(4) == 0 {
			n, size = 10, 7000
		}
		time++
		b := batchOf(l.Next(), time, 0, stampedMessages(r, generation, l.Next(), n, size))
		if p := l.Append(b, 1); p.Large {
			if _, err := p.File.WriteAt(b, p.At.Pos); err != nil {
				t.Fatal(err)
			}
		}
		switch r.Intn(8) {
		case 0:
			l.Cut(l.View().Next())
		case 1:
		default:
			l.Publish(l.Next())
		}
		if f := l.FlushPlan(int64(step)*1e9, false); f != nil {
			background.Go(func() { done <- finished{flush: f, err: f.Run()} })
		}
		if !checkpointing && r.Intn(20) == 0 {
			checkpointing = true
			c := l.Checkpoint()
			background.Go(func() { done <- finished{checkpoint: c, err: c.Run()} })
		}
		if r.Intn(30) == 0 {
			if last, ok := l.Sealed(1); ok {
				l.Trim(last)
			}
		}
		if r.Intn(200) == 0 {
			generation++
			l.Purge(generation)
		}
		for more := true; more; {
			select {
			case d := <-done:
				if d.err != nil {
					t.Fatal(d.err)
				}
				if d.flush != nil {
					l.Flushed(d.flush, nil)
				} else {
					checkpointing = false
					later(l.Checkpointed(d.checkpoint, nil))
				}
			default:
				more = false
			}
		}
	}
}

func pollUntil(t *testing.T, l *Log, stop chan struct{}, seed int64) {
	r := rand.New(rand.NewSource(seed))
	views := []*View{l.View()}
	polls, stale := 0, 0
	for {
		select {
		case <-stop:
			if polls == 0 {
				t.Error("no poll returned anything")
			}
			return
		default:
		}
		if len(views) < 5 {
			views = append(views, l.View())
		} else {
			views[r.Intn(5)] = l.View()
		}
		v := views[r.Intn(len(views))]
		q := Query{Kind: Offset, Value: v.Start() + uint64(r.Int63n(int64(v.Next()-v.Start())+1)), Count: uint32(1 + r.Intn(300))}
		p, o := v.Plan(q, 1<<(10+r.Intn(9)))
		if o == Empty {
			continue
		}
		if o == Cold {
			if err := p.Resolve(); errors.Is(err, ErrTrimmed) {
				stale++
				continue
			} else if err != nil {
				t.Error(err)
				return
			}
		}
		dst := make([]byte, p.Size())
		n, err := p.Read(dst)
		if errors.Is(err, ErrTrimmed) {
			stale++
			continue
		} else if err != nil {
			t.Error(err)
			return
		}
		polls++
		if !rightMessages(dst[:n], v.Generation(), q.Value, uint64(p.Messages())) {
			t.Errorf("poll %+v of generation %d returned other messages", q, v.Generation())
			return
		}
	}
}

// rightMessages reports whether run holds n messages of the generation from offset on.
func rightMessages(run []byte, generation, offset, n uint64) bool {
	for len(run) > 0 {
		h, b, rest, err := wire.NextBatch(run)
		if err != nil || wire.VerifyBatch(b) != nil {
			return false
		}
		for b = b[256:]; len(b) > 0; {
			size := 48 + int(binary.LittleEndian.Uint32(b[32:])) + int(binary.LittleEndian.Uint32(b[36:]))
			at := h.BaseOffset + uint64(binary.LittleEndian.Uint32(b[24:]))
			if at != offset || binary.LittleEndian.Uint64(b[48:]) != generation || binary.LittleEndian.Uint64(b[56:]) != offset {
				return false
			}
			offset++
			n--
			b = b[size:]
		}
		run = rest
	}
	return n == 0
}
