package frontdoor

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
)

// What large sends may have under way from this front-door, in bytes. A single one may be larger.
const (
	gated      = 64 << 10 // sends of this size and above pass the gate
	wayLimit   = 24 << 20 // to one process; its link takes more, so that what is small always passes
	shareMost  = 16 << 20 // to one partition
	shareLeast = 1 << 20
)

const (
	// answerGoal is when a partition should have answered a send. Later answers, and refusals for lack of
	// room, halve its share; answers in time let it grow again.
	answerGoal = 200 * time.Millisecond
	// bodyTime and bodyPace are how long a send keeps its place at the gate while its body is on its way: a slow
	// client does not hold others up, it needs a place again when its body is there.
	bodyTime = 750 * time.Millisecond
	bodyPace = 4 << 20 // bytes a second
)

// gate is where large sends wait for their partitions, before their bodies are read: what waits here is in
// the client's memory and not in this process's, and has crossed no link. Partitions of one process take
// turns, the sends of one partition pass in the order in which they came. The share of a partition follows
// the pace of its answers, so that what has passed is answered soon, however many front-doors there are.
type gate struct {
	mu   sync.Mutex
	ways map[link.Service]*way
	idle *way // for the next one: a lone client does not pay for a new one with each send
}

func newGate() *gate { return &gate{ways: make(map[link.Service]*way)} }

// way is what goes to one process.
type way struct {
	service link.Service
	used    int // bytes
	shares  map[uint64]*share
	turns   []*share // those with sends that wait
	idle    *share   // for the next one
}

// share is what goes to one partition.
type share struct {
	group   uint64
	used    int // bytes
	limit   int
	halved  time.Time
	waiting []*pass // by arrival
	behind  int     // bytes that wait
}

// pass is the place of one send. A session has one and uses it again; fields behind the first two are
// guarded by the gate.
type pass struct {
	entered bool        // it may hold something
	timer   *time.Timer // ends reading

	way     *way // nil: it holds nothing
	share   *share
	size    int
	granted bool
	ready   chan struct{} // closed when granted; nil unless it waits
	reading bool          // the body is on its way
}

// enter takes a place for size bytes to a partition of a process, after waiting for at most limit.
func (g *gate) enter(p *pass, service link.Service, group uint64, size int, limit time.Duration) bool {
	g.mu.Lock()
	w := g.way(service)
	s := w.share(group)
	p.entered, p.way, p.share, p.size, p.granted = true, w, s, size, false
	if limit > 0 && s.behind > 2*s.limit {
		limit = limit/2 + rand.N(limit)/2 // its turn will hardly come: such are refused a few at a time
	}
	s.behind += size
	if s.waiting = append(s.waiting, p); len(s.waiting) == 1 {
		w.turns = append(w.turns, s)
	}
	if w.grant(); p.granted {
		g.mu.Unlock()
		return true
	}
	p.ready = make(chan struct{})
	g.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ready:
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p.ready = nil
	if !p.granted {
		w.withdraw(p)
		g.clear(p)
	}
	return p.granted
}

// way returns what goes to a process. g.mu is held.
func (g *gate) way(service link.Service) *way {
	w := g.ways[service]
	if w != nil {
		return w
	}
	if w = g.idle; w == nil {
		w = &way{shares: make(map[uint64]*share)}
	}
	g.idle, w.service, g.ways[service] = nil, service, w
	return w
}

// share returns what goes to a partition of the process. g.mu is held.
func (w *way) share(group uint64) *share {
	s := w.shares[group]
	if s != nil {
		return s
	}
	if s = w.idle; s == nil {
		s = &share{limit: shareMost}
	}
	w.idle, s.group, w.shares[group] = nil, group, s
	return s
}

// grant lets sends pass as far as there is room. g.mu is held.
func (w *way) grant() {
	for full := 0; full < len(w.turns); {
		s := w.turns[0]
		p := s.waiting[0]
		if s.used > 0 && s.used+p.size > s.limit {
			w.turns = append(behindFirst(w.turns), s)
			full++
			continue
		}
		if w.used > 0 && w.used+p.size > wayLimit {
			return // it keeps its turn, however large it is
		}
		s.waiting, w.turns = behindFirst(s.waiting), behindFirst(w.turns)
		if len(s.waiting) > 0 {
			w.turns = append(w.turns, s)
		}
		full = 0
		w.used, s.used, s.behind = w.used+p.size, s.used+p.size, s.behind-p.size
		if p.granted = true; p.ready != nil {
			close(p.ready)
		}
	}
}

// behindFirst is list without its first, in the same memory.
func behindFirst[T any](list []T) []T { return slices.Delete(list, 0, 1) }

// withdraw takes a pass that waits off its queue. g.mu is held.
func (w *way) withdraw(p *pass) {
	s := p.share
	s.waiting, s.behind = remove(s.waiting, p), s.behind-p.size
	if len(s.waiting) == 0 {
		w.turns = remove(w.turns, s)
	}
	w.grant() // it may have been in the way of smaller ones
}

func remove[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// read lets the body of a send that was let in come: for a while its place is kept meanwhile.
func (g *gate) read(p *pass) {
	g.mu.Lock()
	p.reading = true
	g.mu.Unlock()
	limit := bodyTime + time.Duration(p.size)*time.Second/bodyPace
	if p.timer == nil {
		p.timer = time.AfterFunc(limit, func() { g.lapse(p) })
	} else {
		p.timer.Reset(limit)
	}
}

// lapse gives the place of a send away whose body is slow.
func (g *gate) lapse(p *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.reading {
		g.giveBack(p)
	}
}

// ensure is enter for a send whose body is there, unless it has its place still.
func (g *gate) ensure(p *pass, service link.Service, group uint64, size int, limit time.Duration) bool {
	if p.timer != nil {
		p.timer.Stop()
	}
	g.mu.Lock()
	p.reading = false
	if w := p.way; w != nil && w.service == service && p.share.group == group {
		g.mu.Unlock()
		return true
	}
	g.giveBack(p)
	g.mu.Unlock()
	return g.enter(p, service, group, size, limit)
}

// answered gives the place of a send back that the partition has answered after a while: with its outcome or
// for lack of room.
func (g *gate) answered(p *pass, took time.Duration, crowded bool) {
	if !p.entered {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := p.share; s != nil {
		s.learn(p.size, took, crowded)
	}
	g.end(p)
}

// learn fits the share to the pace of the answers.
func (s *share) learn(size int, took time.Duration, crowded bool) {
	if !crowded && took <= answerGoal {
		s.limit = min(shareMost, s.limit+size*shareLeast/s.limit)
		return
	}
	// What is under way was let in by the old limit: its answers say nothing of the new one.
	if now := time.Now(); now.Sub(s.halved) > answerGoal {
		s.halved, s.limit = now, max(shareLeast, s.limit/2)
	}
}

// leave gives the place of a send back that was not made. It costs nothing without one.
func (g *gate) leave(p *pass) {
	if p.entered {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.end(p)
	}
}

// end is leave; g.mu is held.
func (g *gate) end(p *pass) {
	p.entered, p.reading = false, false
	g.giveBack(p)
}

// giveBack lets others have what a pass holds. g.mu is held.
func (g *gate) giveBack(p *pass) {
	w, s := p.way, p.share
	if w == nil {
		return
	}
	w.used, s.used = w.used-p.size, s.used-p.size
	w.grant()
	g.clear(p)
}

// clear makes p hold nothing and forgets what is idle. g.mu is held.
func (g *gate) clear(p *pass) {
	w, s := p.way, p.share
	p.way, p.share = nil, nil
	if s.used == 0 && len(s.waiting) == 0 && s.limit == shareMost {
		delete(w.shares, s.group)
		s.halved, w.idle = time.Time{}, s
	}
	if w.used == 0 && len(w.turns) == 0 {
		delete(g.ways, w.service)
		w.service, g.idle = nil, w
	}
}
