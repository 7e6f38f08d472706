package loop

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// peering returns what the group of s has as a member of several; nil for a group of one.
func (e *Engine) peering(s *Spec) *peering {
	if s.Members <= 1 {
		return nil
	}
	if len(s.Nodes) != int(s.Members) {
		panic("loop: a group needs a node for each member")
	}
	p := &peering{cluster: s.Cluster, nodes: s.Nodes, self: s.Self, leased: s.Leased}
	if v, ok := e.options.Votes.Get(s.ID); ok {
		p.vote, p.epoch = vsr.Vote{View: v.View, LogView: v.LogView}, v.Epoch
	}
	return p
}

// judge says how far the log of a group with peers may be trusted (rule D5).
func (e *Engine) judge(s *Spec, records bool) vsr.LogState {
	var vote *journal.Vote
	if v, ok := e.options.Votes.Get(s.ID); ok {
		vote = &v
	}
	switch e.options.Evidence.Judge(vote, records, s.Policy.Synced, s.Policy.Incarnation || s.Lost) {
	case journal.Whole:
		return vsr.Whole
	case journal.Born:
		return vsr.Born
	case journal.Empty:
		return vsr.Empty
	}
	return vsr.Suspect
}

// join lets a group with peers take part: its core is made and runs from now on.
func (e *Engine) join(g *Group, s *Spec, b vsr.Boot) {
	p := g.peers
	b.View, b.LogView = p.vote.View, p.vote.LogView
	b.Started = e.started
	if s.Policy.Incarnation {
		b.Incarnation = wire.U128{Lo: e.Rand() | 1, Hi: e.Rand()}
	}
	p.commit, p.held, p.logged, p.settled = b.Commit, b.Head, b.Head, b.Commit
	if b.State == vsr.Born {
		p.birth, p.epoch = true, e.options.Evidence.Epoch
		e.Loop.vote(g)
	}
	g.core = vsr.New(s.group(), vsr.Limits{Pipeline: e.options.Limits.Pipeline}, b)
	e.Loop.clustered = append(e.Loop.clustered, g)
	e.Loop.observe(g)
	e.Loop.heat(g)
	e.Loop.schedule(g, e.Tick())
	g.Machine.Role(g.core.Primary(), b.View)
}

// leave takes a removed group with peers out of everything that would step it.
func (l *Loop) leave(g *Group) {
	p := g.peers
	l.schedule(g, 0)
	if i := slices.Index(l.clustered, g); i >= 0 {
		l.clustered = slices.Delete(l.clustered, i, i+1)
	}
	if p.changing {
		p.changing = false
		l.changing--
	}
	for _, w := range p.parked {
		w.body.release()
	}
	p.parked, p.asked = nil, false
}

// Receive takes a frame of another node; its body, behind start bytes that the loop may overwrite,
// is verified on the caller's goroutine. The frame's reference goes with it; a nil frame is a header
// alone.
func (e *Engine) Receive(from uint8, h *wire.Header, frame *buffer.Frame, start int) {
	f := NewPeerFrame(from, h, frame, start)
	if f == nil {
		e.Loop.Counters.Malformed.Add(1)
		return
	}
	if !e.postFrame(f) {
		e.Loop.Counters.Crowded.Add(1)
		f.Release()
		return
	}
	e.tryTurn()
}

// NodeDead tells the loop that a node is not heard any more, and so say enough others.
func (e *Engine) NodeDead(node uint8) { e.Do(func() { e.Loop.NodeDead(node) }) }

// NodeAlive tells the loop that a node is heard again.
func (e *Engine) NodeAlive(node uint8) { e.Do(func() { e.Loop.NodeAlive(node) }) }

// NodeConnected tells the loop that a node is connected anew.
func (e *Engine) NodeConnected(node uint8) { e.Do(func() { e.Loop.NodeConnected(node) }) }

// Watch compares the echoes of nodes with the groups led here; due every 100 ms.
func (e *Engine) Watch() { e.Do(e.Loop.Watch) }

// Send implements Env.
func (e *Engine) Send(node uint8, f Frame) bool {
	return e.options.Peers != nil && e.options.Peers.Send(node, f)
}

// SaveVotes implements Env.
func (e *Engine) SaveVotes(seq uint64, votes []journal.Vote) {
	saved := func(err error) {
		e.Loop.voted(seq, err)
		if err != nil && e.options.Fatal != nil {
			e.options.Fatal(3, err)
		}
	}
	if e.options.Stepped {
		e.Go(func() error { return e.options.Votes.table.Save(votes) }, saved)
		return
	}
	e.options.Votes.save(votes, func(err error) { e.Do(func() { saved(err) }) })
}

// First implements Env.
func (e *Engine) First(group uint64) (uint64, bool) { return e.journal.First(group) }

// Range implements Env.
func (e *Engine) Range(group, low, top uint64, visit func(*journal.Entry, []byte) error) error {
	r, ok := e.readers.Get().(*journal.Reader)
	if !ok {
		r = e.journal.NewReader()
	}
	defer e.readers.Put(r)
	return r.Range(group, low, top, visit)
}

// MakeWhole implements Env. A fence goes with a checkpoint: until it is durable a restart finds it again.
func (e *Engine) MakeWhole(group uint64, fenced bool, done func(error)) {
	e.Go(e.journal.SyncAll, func(err error) {
		if err != nil || !fenced {
			done(err)
			return
		}
		e.journal.Heal(group)
		e.afterCheckpoint(done)
	})
}
