package frontdoor

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

const mib = 1 << 20

// place is a service that is only a name.
type place struct{ name string }

func (*place) Serve(*link.Call) {}

// queue has sends ask for a place one after the other; order lists those that got it.
type queue struct {
	gate  *gate
	mu    sync.Mutex
	order []string
	group sync.WaitGroup
}

// ask is a send that stands in the queue when it returns, unless it passed.
func (q *queue) ask(name string, to link.Service, group uint64, size int, limit time.Duration) *pass {
	p := new(pass)
	q.group.Go(func() {
		if q.gate.enter(p, to, group, size, limit) {
			q.mu.Lock()
			q.order = append(q.order, name)
			q.mu.Unlock()
		}
	})
	synctest.Wait()
	return p
}

// leave gives a place back and returns who has passed so far.
func (q *queue) leave(p *pass) []string {
	q.gate.leave(p)
	synctest.Wait()
	return q.passed()
}

func (q *queue) passed() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.order)
}

func (q *queue) idle(t *testing.T) {
	t.Helper()
	q.group.Wait()
	if len(q.gate.ways) != 0 {
		t.Errorf("%d ways are kept of a gate nobody is at", len(q.gate.ways))
	}
}

func atGate(t *testing.T, test func(t *testing.T, q *queue)) {
	synctest.Test(t, func(t *testing.T) { test(t, &queue{gate: newGate()}) })
}

// The sends of a partition pass in the order in which they came, as far as its share goes; those of another
// partition, or process, do not wait for them.
func TestGateHasTurns(t *testing.T) {
	atGate(t, func(t *testing.T, q *queue) {
		here, there := &place{"here"}, &place{"there"}
		a := q.ask("a", here, 1, shareMost, time.Hour)
		b := q.ask("b", here, 1, shareMost, time.Hour)
		c := q.ask("c", here, 1, shareMost, time.Hour)
		d := q.ask("d", here, 2, mib, time.Hour)
		e := q.ask("e", there, 1, mib, time.Hour)
		if got, want := q.passed(), []string{"a", "d", "e"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		f := q.ask("f", here, 1, mib, time.Hour)
		if got, want := q.leave(a), []string{"a", "d", "e", "b"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		if got, want := q.leave(b), []string{"a", "d", "e", "b", "c"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		if got, want := q.leave(c), []string{"a", "d", "e", "b", "c", "f"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		for _, p := range []*pass{d, e, f} {
			q.leave(p)
		}
		q.idle(t)
	})
}

// Beyond what a process may have nobody passes, and what is large keeps its turn though smaller ones would fit.
func TestGateBoundsProcess(t *testing.T) {
	atGate(t, func(t *testing.T, q *queue) {
		here := &place{"here"}
		a := q.ask("a", here, 1, shareMost, time.Hour)
		b := q.ask("b", here, 2, wayLimit-shareMost, time.Hour)
		large := q.ask("large", here, 3, 64*mib, time.Hour)
		small := q.ask("small", here, 4, mib, time.Hour)
		if got, want := q.leave(b), []string{"a", "b"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		if got, want := q.leave(a), []string{"a", "b", "large"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		if got, want := q.leave(large), []string{"a", "b", "large", "small"}; !slices.Equal(got, want) {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		q.leave(small)
		q.idle(t)
	})
}

// Who waits for too long is refused, and is not in anybody's way after that.
func TestGateGivesUp(t *testing.T) {
	atGate(t, func(t *testing.T, q *queue) {
		here := &place{"here"}
		a := q.ask("a", here, 1, 10*mib, time.Hour)
		begun := time.Now()
		large := q.ask("large", here, 1, 10*mib, time.Second)
		b := q.ask("b", here, 1, 2*mib, time.Hour)
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := q.passed(), []string{"a", "b"}; !slices.Equal(got, want) || large.granted || time.Since(begun) != time.Second {
			t.Fatalf("passed: %v, want %v", got, want)
		}
		if q.gate.enter(large, here, 1, 10*mib, 0) || q.gate.enter(large, here, 1, 10*mib, -time.Second) {
			t.Error("there was room for a send that could not wait")
		}
		q.leave(a)
		q.leave(b)
		q.idle(t)
	})
}

// A place is not kept for a body that does not come. When it has come its send needs a place again.
func TestGateDoesNotWaitForBodies(t *testing.T) {
	atGate(t, func(t *testing.T, q *queue) {
		here := &place{"here"}
		slow := q.ask("slow", here, 1, shareMost, time.Hour)
		q.gate.read(slow)
		b := q.ask("b", here, 1, shareMost, time.Hour)
		limit := bodyTime + time.Duration(shareMost)*time.Second/bodyPace
		time.Sleep(limit - time.Millisecond)
		synctest.Wait()
		if got := q.passed(); len(got) != 1 {
			t.Fatalf("passed: %v", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := q.passed(); len(got) != 2 {
			t.Fatalf("passed: %v", got)
		}
		if q.gate.ensure(slow, here, 1, shareMost, time.Second) {
			t.Error("two sends have one place")
		}
		q.leave(b)
		if !q.gate.ensure(slow, here, 1, shareMost, time.Second) {
			t.Error("there is room")
		}
		q.leave(slow)

		quick := q.ask("quick", here, 1, mib, time.Hour)
		q.gate.read(quick)
		if !q.gate.ensure(quick, here, 1, mib, 0) {
			t.Error("a place was lost")
		}
		time.Sleep(time.Hour)
		if quick.way == nil {
			t.Error("a place was taken away though the body is there")
		}
		q.leave(quick)
		q.idle(t)
	})
}

// A partition that answers late gets less at a time, one that answers in time more.
func TestGateFollowsPace(t *testing.T) {
	atGate(t, func(t *testing.T, q *queue) {
		here := &place{"here"}
		last := q.ask("last", here, 1, mib, time.Hour) // keeps the share from being forgotten
		share := last.share
		answer := func(took time.Duration, crowded bool) {
			p := q.ask("p", here, 1, mib/2, time.Hour)
			time.Sleep(answerGoal + time.Millisecond)
			q.gate.answered(p, took, crowded)
		}
		answer(answerGoal, false)
		if share.limit != shareMost {
			t.Errorf("%d bytes after an answer in time", share.limit)
		}
		answer(2*answerGoal, false)
		if share.limit != shareMost/2 {
			t.Errorf("%d bytes after a late answer", share.limit)
		}
		answer(0, true)
		if share.limit != shareMost/4 {
			t.Errorf("%d bytes after a refusal", share.limit)
		}
		p := q.ask("p", here, 1, mib/2, time.Hour)
		q.gate.answered(p, time.Second, false)
		if share.limit != shareMost/4 {
			t.Errorf("%d bytes: one crowd counted twice", share.limit)
		}
		for range 10 {
			answer(time.Second, false)
		}
		if share.limit != shareLeast {
			t.Errorf("%d bytes at least", share.limit)
		}
		for range 10000 {
			answer(0, false)
		}
		if share.limit != shareMost {
			t.Errorf("%d bytes when all is well again", share.limit)
		}
		q.leave(last)
		q.idle(t)
	})
}

// However sends come, wait, lapse and go: nothing is over its bound, nothing is lost, nobody waits for room
// that is there.
func TestGateRandom(t *testing.T) {
	atGate(t, func(t *testing.T, q *queue) {
		places := []*place{{"a"}, {"b"}}
		check := func() {
			q.gate.mu.Lock()
			defer q.gate.mu.Unlock()
			for _, w := range q.gate.ways {
				used := 0
				for _, s := range w.shares {
					used += s.used
					behind := 0
					for _, p := range s.waiting {
						behind += p.size
					}
					if s.used > 0 && behind > 0 && s.used+s.waiting[0].size <= s.limit && w.used+s.waiting[0].size <= wayLimit && w.turns[0] == s {
						t.Error("a send waits for nothing")
					}
					if behind != s.behind || s.used < 0 || s.used > max(shareMost, 20*mib) {
						t.Errorf("%d bytes used, %d counted and %d waiting", s.used, s.behind, behind)
					}
				}
				if used != w.used || used > wayLimit {
					t.Errorf("%d bytes counted, %d used", w.used, used)
				}
			}
		}
		for i := range 200 {
			q.group.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				p := new(pass)
				for range 50 {
					to, group, size := places[random.IntN(2)], random.Uint64N(3), 1+random.IntN(20*mib)
					pause := time.Duration(random.IntN(1000)) * time.Millisecond
					if !q.gate.enter(p, to, group, size, pause) {
						continue
					}
					check()
					if random.IntN(2) == 0 {
						q.gate.read(p)
						time.Sleep(pause * 4)
						if !q.gate.ensure(p, to, group, size, pause) {
							q.gate.leave(p)
							continue
						}
						check()
					}
					time.Sleep(pause)
					q.gate.answered(p, pause, random.IntN(4) == 0)
					check()
				}
			})
		}
		q.idle(t)
	})
}

// Sends beyond the share of a partition wait without being read, and are refused when that takes too long:
// they cost no memory, reach nobody, and their connections go on.
func TestSendsWaitUnread(t *testing.T) {
	w := start(t, func(c *Config) { c.BusyFor = time.Second })
	admin := w.root(t)
	admin.topic("s", "t", 1)
	const clients = 60
	body := sendBody(t, "s", "t", toPartition0, string(make([]byte, mib)))
	pass := shareMost / (wire.HeaderSize + len(body))
	open := make(chan struct{})
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation == wire.OpSendMessages {
			<-open
		}
		return false
	})
	conns := make([]*client, clients)
	for i := range conns {
		conns[i] = w.root(t)
	}
	answers := make(chan wire.Code, clients)
	var group sync.WaitGroup
	for _, c := range conns {
		group.Go(func() { answers <- c.call(wire.OpSendMessages, 0, body).Status })
	}
	for range clients - pass {
		if code := <-answers; code != wire.CodeTransientNotAccepted {
			t.Errorf("status %v", code)
		}
		if used := w.pool.Used(); used > int64(pass)*2*mib {
			t.Errorf("%d bytes of buffers for %d sends that passed", used, pass)
		}
	}
	close(open)
	group.Wait()
	for range pass {
		if code := <-answers; code != 0 {
			t.Errorf("status %v of a send that passed", code)
		}
	}
	if stored := w.parts.stored(0); stored != uint64(pass) {
		t.Errorf("%d messages are stored, %d were taken", stored, pass)
	}
	for _, c := range conns {
		c.ok(c.read(wire.CmdPing, nil))
	}
}
