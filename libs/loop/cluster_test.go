package loop

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// cluster is some nodes with one loop each that host the same groups. Nothing happens by itself: a seed
// chooses what comes next, time is a number, disks are in memory.
type cluster struct {
	t      *testing.T
	rng    *rand.Rand
	now    vsr.Tick
	nodes  []*node
	groups []uint64
	policy vsr.Policy
	wires  map[[2]int][]*letter // frames under way, by sender and receiver, oldest first
	cut    map[[2]int]bool      // pairs that do not hear each other
	lossy  int                  // one frame of so many is lost, 0 = none
	alter  func(to int, h *wire.Header)

	history map[uint64][]string // per group: what each op was applied as, anywhere
	acked   map[string]bool     // bodies that were acknowledged
	sent    int
	trace   []string
	lost    uint64
	seen    tally
}

// tally counts what a run went through.
type tally struct{ acked, views, cut, transfers, repairs int }

type letter struct {
	header wire.Header
	body   []byte
}

// node is one process and its disk.
type node struct {
	c        *cluster
	id       uint8
	fs       *vfs.Mem
	up       bool
	evidence *journal.Evidence
	life     *journal.Life
	engine   *Engine
	votes    *Votes
	echoes   *Echoes
	writer   *lazyWriter
	machines map[uint64]*ledger
	fatal    bool           // it asked for its end
	stalled  bool           // its disk writes nothing
	wiped    bool           // its disk was lost once
	broken   bool           // states can not be read at the next start
	dead     map[uint8]bool // as its pulse says
	silent   map[uint8]vsr.Tick
	epoch    int           // lives so far
	heard    map[uint8]int // epochs of the others
}

// lazyWriter completes rounds when it is told to.
type lazyWriter struct {
	*journal.Inline
	rounds []*journal.Round
}

func (w *lazyWriter) TryInline(*journal.Round) (journal.Done, bool) { return journal.Done{}, false }
func (w *lazyWriter) Submit(r *journal.Round) bool {
	w.rounds = append(w.rounds, r)
	return true
}

// newCluster starts n nodes that host groups with rotated member lists.
func newCluster(t *testing.T, seed uint64, n int, groups int, policy vsr.Policy) *cluster {
	c := &cluster{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: 1, policy: policy,
		wires: map[[2]int][]*letter{}, cut: map[[2]int]bool{}, history: map[uint64][]string{}, acked: map[string]bool{},
	}
	for i := range groups {
		c.groups = append(c.groups, uint64(i+1))
	}
	for i := range n {
		c.nodes = append(c.nodes, &node{c: c, id: uint8(10 + i), fs: vfs.NewMem(seed*100 + uint64(i))})
	}
	for _, n := range c.nodes {
		n.start()
	}
	return c
}

func (c *cluster) logf(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf("%d: ", c.now)+fmt.Sprintf(format, args...))
}

func (c *cluster) fail(format string, args ...any) {
	c.t.Helper()
	for _, line := range c.trace[max(0, len(c.trace)-60):] {
		c.t.Log(line)
	}
	c.t.Fatalf(format, args...)
}

// applied checks that every member applies the same op for ever.
func (c *cluster) applied(m *ledger, op uint64, body string) {
	h := c.history[m.group]
	switch {
	case op == uint64(len(h))+1:
		c.history[m.group] = append(h, body)
	case op > uint64(len(h)):
		c.fail("node %d group %d: applied op %d, nobody applied %d", m.n.id, m.group, op, len(h)+1)
	case h[op-1] != body:
		c.fail("node %d group %d: op %d is %q here and %q elsewhere", m.n.id, m.group, op, body, h[op-1])
	}
}

func (c *cluster) node(id int) *node { return c.nodes[id-10] }

// pool is where received frames live: poisoned builds find what is released too early.
var pool = buffer.NewPool(64 << 20)

// deliver hands over a frame of a pair, or loses it. Lanes let frames overtake each other, and broken
// connections bring some twice.
func (c *cluster) deliver(pair [2]int) {
	q := c.wires[pair]
	i := 0
	if c.rng.IntN(4) == 0 {
		i = c.rng.IntN(min(len(q), 4))
	}
	l := q[i]
	if c.lossy == 0 || c.rng.IntN(c.lossy) > 0 {
		q = slices.Delete(q, i, i+1)
	}
	if c.wires[pair] = q; len(q) == 0 {
		delete(c.wires, pair)
	}
	to := c.node(pair[1])
	if !to.up || c.cut[pair] || c.lossy > 0 && c.rng.IntN(c.lossy) == 0 {
		return
	}
	if l.header.Command() == wire.CommandRepairPrepare {
		c.seen.repairs++
	}
	c.logf("%d -> %d %v %s", pair[0], pair[1], l.header.Command(), describe(&l.header))
	var frame *buffer.Frame
	if len(l.body) > 0 {
		frame, _ = pool.Try(wire.HeaderSize + len(l.body))
		copy(frame.Bytes(), l.header[:])
		copy(frame.Bytes()[wire.HeaderSize:], l.body)
	}
	if header := l.header; c.alter != nil {
		c.alter(pair[1], &header)
		to.engine.Receive(uint8(pair[0]), &header, frame, wire.HeaderSize)
		return
	}
	to.engine.Receive(uint8(pair[0]), &l.header, frame, wire.HeaderSize)
}

func describe(h *wire.Header) string {
	p, _ := wire.DecodePreamble(h[:])
	group, _ := wire.GroupOf(h)
	op := uint64(0)
	if c := h.Command(); c == wire.CommandPrepare || c == wire.CommandRepairPrepare {
		op = binary.LittleEndian.Uint64(h[176:])
	} else if c == wire.CommandPrepareOk {
		op = binary.LittleEndian.Uint64(h[160:])
	}
	return fmt.Sprintf("group %d view %d op %d", group, p.View, op)
}

// pairs lists the pairs with frames under way in a fixed order.
func (c *cluster) pairs() [][2]int {
	var all [][2]int
	for p := range c.wires {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return all
}

// busy lists what could happen now without time passing.
func (c *cluster) busy() (all []func()) {
	for _, p := range c.pairs() {
		all = append(all, func() { c.deliver(p) })
	}
	for _, n := range c.nodes {
		if n.up && len(n.engine.steps) > 0 {
			all = append(all, func() { n.engine.Step() })
		}
		if n.up && !n.stalled && len(n.writer.rounds) > 0 {
			all = append(all, n.complete)
		}
	}
	return all
}

// complete writes the oldest round.
func (n *node) complete() {
	r := n.writer.rounds[0]
	n.writer.rounds = n.writer.rounds[1:]
	done, ok := n.writer.Inline.TryInline(r)
	if !ok {
		done = journal.Done{Seq: r.Seq, Err: errOverBudget}
	}
	n.c.logf("node %d round %d done: %v", n.id, r.Seq, done.Err)
	n.engine.Notify(done)
}

// pass lets time go on to the next timer or by limit, whichever is sooner, and the pulses beat.
func (c *cluster) pass(limit vsr.Tick) {
	at := c.now + limit
	for _, n := range c.nodes {
		if n.up {
			if wake, ok := n.engine.Loop.NextWake(); ok {
				at = min(at, max(wake, c.now+1))
			}
		}
	}
	c.now = at
	for _, n := range c.nodes {
		if n.up {
			n.beat()
			n.checkLease()
			n.engine.turn.Lock()
			n.engine.Loop.Tick()
			n.engine.endTurn()
		}
	}
	for _, n := range c.nodes {
		if n.up {
			n.engine.turn.Lock()
			n.engine.runTurn()
			n.engine.endTurn()
		}
	}
}

// beat is a pulse: pings are answered at once by who is reachable; after 500 ms of silence a node is dead.
func (n *node) beat() {
	c := n.c
	for _, other := range c.nodes {
		if other == n {
			continue
		}
		if other.up && !c.cut[[2]int{int(n.id), int(other.id)}] && !c.cut[[2]int{int(other.id), int(n.id)}] {
			n.pinged(other)
			n.reported(other)
			delete(n.silent, other.id)
			if was := n.heard[other.id]; was != 0 && was != other.epoch && !n.dead[other.id] {
				n.engine.NodeDead(other.id) // what it led it leads no more
				n.engine.NodeAlive(other.id)
			}
			n.heard[other.id] = other.epoch
			if n.dead[other.id] {
				delete(n.dead, other.id)
				n.engine.NodeAlive(other.id)
			}
			continue
		}
		since, ok := n.silent[other.id]
		switch {
		case !ok:
			n.silent[other.id] = c.now
		case c.now-since > 500_000 && !n.dead[other.id]:
			n.dead[other.id] = true
			n.engine.NodeDead(other.id)
		}
	}
	n.engine.Watch()
}

// pinged is a Ping to another node and its Pong.
func (n *node) pinged(other *node) {
	other.echoes.Hear(n.id, n.c.now)
	n.echoes.Set(other.id, n.c.now)
	if view, ok := other.engine.Loop.Group(n.c.groups[0]).Follows(); ok {
		n.echoes.Pledge(other.id, n.c.now, view)
	}
}

// reported is what the other node answers when this one has lost its votes.
func (n *node) reported(other *node) {
	for _, id := range n.c.groups {
		g, theirs := n.engine.Loop.Group(id), other.engine.Loop.Group(id)
		if g.Lost() && (!theirs.Lost() || n.c.policy.Incarnation) {
			n.engine.Do(func() { n.engine.Loop.PeerView(g, other.id, theirs.View()) })
		}
	}
}

// reconnect is what heals a link: connections are made anew.
func (c *cluster) reconnect() {
	for _, a := range c.nodes {
		for _, b := range c.nodes {
			if a != b && a.up && b.up {
				a.engine.NodeConnected(b.id)
			}
		}
	}
}

// run lets things happen in an order the seed chooses, until nothing does for so much time.
func (c *cluster) run(quiet vsr.Tick) {
	limit := c.now + quiet
	for c.now < limit {
		all := c.busy()
		if len(all) == 0 || c.rng.IntN(20) == 0 {
			c.pass(50_000)
			continue
		}
		all[c.rng.IntN(len(all))]()
		c.checkHeld()
	}
}

// settle runs until every frame is delivered and every disk idle, without time passing.
func (c *cluster) settle() {
	for range 100_000 {
		all := c.busy()
		if len(all) == 0 {
			return
		}
		all[c.rng.IntN(len(all))]()
	}
	c.fail("the cluster does not come to rest")
}

// write sends one request to a group on a node.
func (n *node) write(group uint64) *pending {
	n.c.sent++
	body := fmt.Sprintf("group %d write %d", group, n.c.sent)
	call := link.NewCall()
	call.Group, call.Body = group, []byte(body)
	n.engine.Serve(call)
	p := &pending{call: call, body: body}
	p.check(n.c)
	return p
}

// pending is a request and, once there, its answer.
type pending struct {
	call *link.Call
	body string
	done bool
}

// check takes the answer if it is there and reports whether the write was acknowledged.
func (p *pending) check(c *cluster) bool {
	if !p.done {
		select {
		case <-p.call.Done():
			p.done = true
		default:
			return false
		}
		if p.call.Status == 0 {
			c.acked[p.body] = true
			c.seen.acked++
			if h := c.history[p.call.Group]; p.call.Op > uint64(len(h)) || h[p.call.Op-1] != p.body {
				c.fail("acknowledged as op %d, which is something else", p.call.Op)
			}
		}
	}
	return p.call.Status == 0
}

// primary is the node that leads a group, nil if there is none or more than one.
func (c *cluster) primary(group uint64) *node {
	var found *node
	for _, n := range c.nodes {
		if n.up && n.engine.Loop.Group(group).Primary() {
			if found != nil {
				return nil
			}
			found = n
		}
	}
	return found
}

// converge requires that every group takes a write and that all members come to the same state.
func (c *cluster) converge() {
	c.t.Helper()
	clear(c.cut)
	c.lossy = 0
	for _, n := range c.nodes {
		if !n.up {
			n.start()
		}
	}
	c.run(1_000_000)
	c.reconnect()
	for _, id := range c.groups {
		c.mustWrite(id)
	}
	c.run(3_000_000)
	c.settle()
	for _, id := range c.groups {
		for _, n := range c.nodes {
			if !slices.Equal(n.machines[id].applied, c.history[id]) {
				c.fail("node %d group %d applied %d ops, others %d", n.id, id, len(n.machines[id].applied), len(c.history[id]))
			}
		}
	}
	for _, id := range c.groups {
		c.seen.views += int(c.nodes[0].engine.Loop.Group(id).View())
	}
	c.t.Logf("%+v", c.seen)
	for body := range c.acked {
		if !c.holds(body) {
			c.fail("acknowledged %q is gone", body)
		}
	}
}

func (c *cluster) holds(body string) bool {
	for _, h := range c.history {
		if slices.Contains(h, body) {
			return true
		}
	}
	return false
}

// mustWrite repeats a write until the group takes it.
func (c *cluster) mustWrite(group uint64) {
	c.t.Helper()
	for until := c.now + 20_000_000; c.now < until; {
		if n := c.primary(group); n != nil {
			p := n.write(group)
			for wait := c.now + 2_000_000; c.now < wait && !p.done; p.check(c) {
				c.run(20_000)
			}
			if p.check(c) {
				return
			}
			c.logf("node %d answers a write to group %d: done %v status %v reason %v", n.id, group, p.done, p.call.Status, p.call.Reason)
		}
		c.run(50_000)
	}
	for _, n := range c.nodes {
		if n.up {
			g := n.engine.Loop.Group(group)
			c.logf("node %d view %d primary %v head %d commit %d applied %d", n.id, g.View(), g.Primary(), g.Head(), g.core.Commit(), g.Applied())
		}
	}
	c.fail("group %d takes no write", group)
}
