package loop

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// wired is three engines with their goroutines, on links that are channels.
type wired struct {
	t       *testing.T
	engines [3]*Engine
	groups  [3]*Group
	votes   [3]*Votes
	echoes  [3]*Echoes
	links   [3]chan delivery
	down    [3]atomic.Bool
	gone    sync.WaitGroup
}

type delivery struct {
	from   uint8
	header wire.Header
	body   []byte
}

type wiredPeer struct {
	w    *wired
	self uint8
}

func (p wiredPeer) Send(to uint8, f Frame) bool {
	if p.w.down[p.self].Load() || p.w.down[to].Load() {
		return false
	}
	select {
	case p.w.links[to] <- delivery{p.self, *f.Header, append([]byte(nil), f.Body...)}:
		return true
	default:
		return false
	}
}

func newWired(t *testing.T, policy vsr.Policy) *wired {
	w := &wired{t: t}
	begin := time.Now()
	ticks := func() vsr.Tick { return vsr.Tick(time.Since(begin).Microseconds()) + 1 }
	for i := range w.links {
		w.links[i] = make(chan delivery, 1024)
	}
	for i := range w.engines {
		fs := vfs.NewMem(uint64(i) + 1)
		evidence, err := journal.LoadEvidence(fs, ".")
		if err != nil {
			t.Fatal(err)
		}
		owner := [16]byte{byte(i + 1)}
		if w.votes[i], _, err = OpenVotes(fs, ".", owner, false); err != nil {
			t.Fatal(err)
		}
		w.echoes[i] = &Echoes{}
		e, _, err := OpenEngine(EngineOptions{
			FS: fs, Dir: "log", Log: hclog.NewNullLogger(), Limits: Limits{Pipeline: 16, Queue: 64}, Owner: journal.Owner{Node: owner},
			FileSize: 1 << 20, Budget: 16 << 20, Reserve: 1 << 20, Workers: 2,
			Peers: wiredPeer{w, uint8(i)}, Votes: w.votes[i], Evidence: evidence, Echoes: w.echoes[i], Ticks: ticks,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.engines[i] = e
		w.groups[i] = e.Born(Spec{ID: 7, Members: 3, Self: uint8(i), Nodes: []uint8{0, 1, 2}, Policy: policy}, &safeLedger{})
		e.Start()
		w.gone.Add(1)
		go func() {
			defer w.gone.Done()
			for d := range w.links[i] {
				if d.from == 0xff {
					return
				}
				frame, _ := pool.Try(wire.HeaderSize + len(d.body))
				copy(frame.Bytes()[wire.HeaderSize:], d.body)
				e.Receive(d.from, &d.header, frame, wire.HeaderSize)
			}
		}()
	}
	w.gone.Add(1)
	go w.pulse(ticks)
	return w
}

// safeLedger counts what was applied; any goroutine reads the count.
type safeLedger struct {
	ledger
	count atomic.Int64
}

func (m *safeLedger) Stage(*wire.PrepareHeader, []byte) (Staged, error)  { return Staged{}, nil }
func (m *safeLedger) Follow(*wire.PrepareHeader, []byte) (Staged, error) { return Staged{}, nil }
func (m *safeLedger) Unstage(uint64)                                     {}
func (m *safeLedger) Apply(*wire.PrepareHeader, []byte, *link.Call)      { m.count.Add(1) }

// pulse says who is reached until node 0xff is down.
func (w *wired) pulse(ticks func() vsr.Tick) {
	defer w.gone.Done()
	var silent [3]int
	for range 200 {
		time.Sleep(100 * time.Millisecond)
		for i := range w.engines {
			if w.down[i].Load() {
				if silent[i]++; silent[i] == 5 {
					for j := range w.engines {
						if j != i {
							w.engines[j].NodeDead(uint8(i))
						}
					}
				}
				continue
			}
			for j := range w.engines {
				if i != j && !w.down[j].Load() {
					w.echoes[i].Set(uint8(j), ticks())
				}
			}
			w.engines[i].Watch()
		}
	}
}

func (w *wired) stop() {
	for i := range w.engines {
		w.links[i] <- delivery{from: 0xff}
	}
	w.gone.Wait()
	for i, e := range w.engines {
		if err := e.Close(time.Second); err != nil {
			w.t.Error(err)
		}
		if err := w.votes[i].Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// write repeats a write until a primary takes it, and returns how long that took.
func (w *wired) write(body string) time.Duration {
	w.t.Helper()
	begin := time.Now()
	for time.Since(begin) < 10*time.Second {
		for i, g := range w.groups {
			if w.down[i].Load() || !g.Primary() {
				continue
			}
			c := link.NewCall()
			c.Group, c.Body = 7, []byte(body)
			w.engines[i].Serve(c)
			select {
			case <-c.Done():
				if c.Status == 0 {
					return time.Since(begin)
				}
			case <-time.After(3 * time.Second):
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("nobody takes a write")
	return 0
}

// With its goroutines a group serves, survives its primary within a second, and its members come to the
// same point without anybody asking.
func TestRunnersOfThree(t *testing.T) {
	for _, policy := range []vsr.Policy{{}, {Synced: true}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWired(t, policy)
			time.Sleep(time.Second)
			var writers sync.WaitGroup
			for range 4 {
				writers.Go(func() {
					for range 25 {
						w.write("x")
					}
				})
			}
			writers.Wait()
			for i, g := range w.groups {
				if g.Primary() {
					w.down[i].Store(true)
				}
			}
			if took := w.write("y"); took > time.Second {
				t.Errorf("the next primary took %v", took)
			}
			time.Sleep(2 * time.Second)
			for i, g := range w.groups {
				if n := g.Machine.(*safeLedger).count.Load(); !w.down[i].Load() && n != 101 {
					t.Errorf("member %d applied %d of 101", i, n)
				}
			}
			time.Sleep(20 * time.Second)
			w.stop()
		})
	}
}
