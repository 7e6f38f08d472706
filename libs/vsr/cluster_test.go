package vsr_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// member is one replica with its disk. Its log in memory is the disk's with what is pending.
type member struct {
	replica  *vsr.Replica
	disk     disk
	log      []wire.PrepareHeader // disk.base+1, …
	up       bool
	slow     bool // writes wait for the command write
	paused   bool // the process does not run; what is sent to it waits
	deaf     uint32
	started  vsr.Tick
	wake     vsr.Tick
	applied  uint64
	tokens   map[vsr.Body]bool
	transfer *vsr.Transfer
}

func (m *member) runs() bool { return m.up && !m.paused }

// packet is a frame on its way.
type packet struct {
	from, to uint8
	header   wire.Header
	suffix   []wire.PrepareHeader
}

// cluster is a group of members in one thread: a scenario decides what is delivered, written and lost.
type cluster struct {
	group   vsr.Group
	limits  vsr.Limits
	members []*member
	net     []packet
	cut     map[[2]uint8]bool // links that lose everything
	lost    func(*packet) bool
	held    func(*packet) bool // stays on its way
	onWrite func(i uint8) bool // false: the write does not happen
	tick    vsr.Tick
	now     uint64
	tokens  vsr.Body
	random  uint64
	quiet   bool
	say     func(format string, args ...any)
	check   checker
}

func newCluster(g vsr.Group, lim vsr.Limits, state vsr.LogState, say func(string, ...any)) *cluster {
	c := &cluster{group: g, limits: lim, cut: map[[2]uint8]bool{}, say: say, tick: 1_000_000, now: 1_000_000, random: 88172645463325252}
	c.check = newChecker(c)
	for m := range g.Members {
		c.members = append(c.members, &member{disk: disk{vote: vsr.Vote{Whole: state <= vsr.Born}}})
		c.start(m, state, 0)
	}
	return c
}

// start starts a member that has been up for age already.
func (c *cluster) start(i uint8, state vsr.LogState, started vsr.Tick) {
	m := c.members[i]
	b := m.disk.boot(state)
	b.Started = started
	b.Incarnation = wire.U128{Lo: c.next() | 1}
	g := c.group
	g.Self = i
	m.replica = vsr.New(g, c.limits, b)
	m.up, m.started, m.applied = true, started, m.replica.Applied()
	m.log = slices.Clone(m.disk.log)
	m.tokens = map[vsr.Body]bool{}
	m.transfer = nil
	m.deaf = 0
	c.step(i, vsr.Input{Kind: vsr.InputTick})
}

func (c *cluster) next() uint64 {
	c.random ^= c.random << 13
	c.random ^= c.random >> 7
	c.random ^= c.random << 17
	return c.random
}

// step steps one member and takes its effects.
func (c *cluster) step(i uint8, in vsr.Input) {
	m := c.members[i]
	in.Tick, in.Now, in.Rand = c.tick, c.now, c.next()
	var out vsr.Output
	m.replica.Step(&in, &out)
	m.wake = out.Wake
	c.check.output(i, &in, &out)
	c.effects(i, &out)
	c.check.state(i)
	for _, r := range out.Refused {
		c.tell("%d refuse %s code=%d %v", i, opText(r.Op), uint32(r.Code), r.Why)
	}
	if out.Commit != 0 {
		c.tell("%d commit %d", i, out.Commit)
		m.applied = out.Commit
		c.step(i, vsr.Input{Kind: vsr.InputApplied, Op: out.Commit})
	}
}

func opText(op uint64) string {
	if op == 0 {
		return "request"
	}
	return fmt.Sprintf("op %d", op)
}

func (c *cluster) tell(format string, args ...any) {
	if !c.quiet {
		c.say(format, args...)
	}
}

func (c *cluster) effects(i uint8, out *vsr.Output) {
	m := c.members[i]
	if out.Truncate != 0 {
		c.tell("%d truncate %d", i, out.Truncate)
		m.log = cutLog(m.log, m.disk.base, out.Truncate)
	}
	if out.AdoptView != 0 {
		c.tell("%d adopt view=%d [%s]", i, out.AdoptView, names(out.Adopt))
	}
	for k := range out.Append {
		m.log = append(m.log, out.Append[k].Header)
		c.tell("%d append %s", i, name(&out.Append[k].Header))
	}
	m.disk.queue(out)
	if v := out.Vote; v.Save {
		whole := ""
		if !v.Whole {
			whole = " not whole"
		}
		left := ""
		if v.Deserts {
			left = fmt.Sprintf(" leaves=%d", v.Deserted)
		}
		c.tell("%d save view=%d log=%d%s%s", i, v.View, v.LogView, whole, left)
	}
	if out.Role.Changed {
		c.tell("%d primary=%v view=%d", i, out.Role.Primary, out.Role.View)
	}
	if out.Lost != 0 || out.Salvaged {
		c.tell("%d salvages, lost %d", i, out.Lost)
	}
	if out.Fault != vsr.FaultNone {
		c.tell("%d fault %v", i, out.Fault)
	}
	if out.Transfer.Wanted {
		c.tell("%d transfer from %d above %d", i, out.Transfer.From, out.Transfer.Above)
		t := out.Transfer
		m.transfer = &t
	}
	for k := range out.Send {
		c.send(i, &out.Send[k])
	}
	for _, s := range out.Serve {
		c.serve(i, s)
	}
}

func (c *cluster) send(from uint8, s *vsr.Send) {
	for to := range c.group.Members {
		if to != from && (s.To == to || s.To == vsr.Everyone) {
			c.net = append(c.net, packet{from: from, to: to, header: s.Header, suffix: slices.Clone(s.Suffix)})
		}
	}
}

// serve answers a range from the log, as a caller does.
func (c *cluster) serve(i uint8, s vsr.Serve) {
	m := c.members[i]
	low := s.Low
	if low <= m.disk.base {
		low = m.disk.base + 1
		c.repairEnd(i, s, wire.CommandRangeEvicted, low)
	}
	for op := low; op <= s.Top; op++ {
		h := m.log[op-m.disk.base-1]
		h.Command = wire.CommandRepairPrepare
		if s.View != 0 {
			h.View = s.View
		}
		p := packet{from: i, to: s.To}
		h.Put(p.header[:])
		c.net = append(c.net, p)
	}
	c.repairEnd(i, s, wire.CommandRepairDone, s.Top)
}

func (c *cluster) repairEnd(i uint8, s vsr.Serve, command wire.Command, op uint64) {
	h := wire.RepairEndHeader{Preamble: wire.Preamble{Cluster: c.group.Cluster, Command: command, Replica: i}, Nonce: s.Nonce, Op: op, Group: c.group.ID}
	p := packet{from: i, to: s.To}
	h.Put(p.header[:])
	c.net = append(c.net, p)
}

// deliver hands over packet number k.
func (c *cluster) deliver(k int) {
	p := c.net[k]
	c.net = slices.Delete(c.net, k, k+1)
	m := c.members[p.to]
	if !m.up || c.cut[[2]uint8{p.from, p.to}] || c.lost != nil && c.lost(&p) {
		return
	}
	c.tell("%d>%d %s", p.from, p.to, frameText(&p))
	c.hand(&p)
}

func (c *cluster) hand(p *packet) {
	c.tokens++
	in := vsr.Input{Kind: vsr.InputFrame, From: p.from, Header: &p.header, Suffix: p.suffix, BodyOK: true}
	if cmd := p.header.Command(); cmd == wire.CommandPrepare || cmd == wire.CommandRepairPrepare {
		in.Body = c.tokens
		in.BodyHash = bodyHash
		c.members[p.to].tokens[in.Body] = true
	}
	c.step(p.to, in)
}

const bodyHash = 0x1234

// frameText is a frame in a few words.
func frameText(p *packet) string {
	h := &p.header
	switch h.Command() {
	case wire.CommandPrepare, wire.CommandRepairPrepare:
		var d wire.PrepareHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("%v view=%d %s commit=%d", h.Command(), d.View, name(&d), d.Commit)
	case wire.CommandPrepareOk:
		var d wire.PrepareOkHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("PrepareOk view=%d op=%d", d.View, d.Op)
	case wire.CommandCommit:
		var d wire.CommitHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("Commit view=%d commit=%d token=%#x", d.View, d.Commit, d.TimestampMonotonic)
	case wire.CommandStartViewChange:
		var d wire.StartViewChangeHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("StartViewChange view=%d", d.View)
	case wire.CommandDoViewChange:
		var d wire.DoViewChangeHeader
		must(d.Decode(h[:]))
		flag := ""
		if d.Flags != 0 {
			flag = " suspect"
		}
		return fmt.Sprintf("DoViewChange view=%d log=%d head=%d commit=%d%s [%s]", d.View, d.LogView, d.Op, d.Commit, flag, vouched(p.suffix, d.Present, d.Nack))
	case wire.CommandStartView:
		var d wire.StartViewHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("StartView view=%d head=%d commit=%d [%s]", d.View, d.Op, d.Commit, names(p.suffix))
	case wire.CommandRequestStartView:
		var d wire.RequestStartViewHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("RequestStartView view=%d", d.View)
	case wire.CommandRequestPrepares:
		var d wire.RequestPreparesHeader
		must(d.Decode(h[:]))
		return fmt.Sprintf("RequestPrepares %d..%d", d.FromOp, d.ToOp)
	}
	var d wire.RepairEndHeader
	must(d.Decode(h[:]))
	return fmt.Sprintf("%v op=%d", h.Command(), d.Op)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// name is an op and the number of the request in it: two prepares at one op differ in the latter.
func name(h *wire.PrepareHeader) string {
	if h.Blank() {
		return fmt.Sprintf("%d?", h.Op)
	}
	return fmt.Sprintf("%d#%d", h.Op, h.Request)
}

func names(list []wire.PrepareHeader) string {
	return vouched(list, wire.U128{Lo: ^uint64(0), Hi: ^uint64(0)}, wire.U128{})
}

// vouched lists a suffix; ops that are not present are in parentheses, denied ones marked !, runs are
// shortened.
func vouched(list []wire.PrepareHeader, present, nack wire.U128) string {
	var words []string
	for i := range list {
		if len(list) > 8 && i > 2 && i < len(list)-3 {
			if i == 3 {
				words = append(words, "…")
			}
			continue
		}
		w := name(&list[i])
		if !present.Bit(i) {
			w = "(" + w + ")"
		}
		if nack.Bit(i) {
			w += "!"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// settle delivers and writes until nothing moves. No time passes.
func (c *cluster) settle() {
	for range 100_000 {
		if !c.move() {
			return
		}
	}
	panic("the cluster does not come to rest")
}

func (c *cluster) move() bool {
	for i, m := range c.members {
		if m.up && !m.slow && !m.paused && m.disk.busy() {
			c.write(uint8(i))
			return true
		}
	}
	for k := range c.net {
		if p := &c.net[k]; !c.members[p.to].paused && (c.held == nil || !c.held(p)) {
			c.deliver(k)
			return true
		}
	}
	return false
}

// write carries out one write of a member, the log's first.
func (c *cluster) write(i uint8) {
	d := &c.members[i].disk
	if c.onWrite != nil && !c.onWrite(i) {
		return
	}
	if len(d.pending) == 0 {
		c.save(i)
		return
	}
	for _, in := range d.write(c.group.Policy.Synced) {
		c.step(i, in)
	}
}

// save writes the next vote of a member.
func (c *cluster) save(i uint8) {
	if d := &c.members[i].disk; len(d.votes) > 0 {
		for _, in := range d.save() {
			c.step(i, in)
		}
	}
}

// pass lets time go by: members tick when they want to, and everything settles in between.
func (c *cluster) pass(us vsr.Tick) {
	end := c.tick + us
	c.settle()
	for {
		at := vsr.Tick(0)
		for _, m := range c.members {
			if m.runs() && m.wake != 0 && m.wake <= end && (at == 0 || m.wake < at) {
				at = m.wake
			}
		}
		if at == 0 {
			break
		}
		c.tick = max(c.tick, at)
		for i, m := range c.members {
			if m.runs() && m.wake != 0 && m.wake <= c.tick {
				c.step(uint8(i), vsr.Input{Kind: vsr.InputTick})
			}
		}
		c.settle()
	}
	c.now += uint64(end - c.tick)
	c.tick = end
}

func (c *cluster) propose(i uint8, request uint64) {
	c.tokens++
	c.members[i].tokens[c.tokens] = true
	c.step(i, vsr.Input{Kind: vsr.InputRequest, Body: c.tokens, BodyHash: bodyHash, Request: vsr.Request{
		Operation: wire.OpSendMessages, Client: wire.U128{Lo: request}, Request: request, Size: 512,
	}})
}

// stop ends a member's process; with power what it did not sync is gone.
func (c *cluster) stop(i uint8, power bool) {
	m := c.members[i]
	m.up, m.wake = false, 0
	if power {
		m.disk.power()
		m.disk.vote.Whole = m.disk.vote.Whole && c.group.Policy.Synced
	} else {
		m.disk.kill()
	}
	c.check.stopped(i, power)
}

// wipe gives a stopped member an empty disk.
func (c *cluster) wipe(i uint8) {
	c.members[i].disk = disk{}
	c.check.acked[i] = map[uint64]wire.U128{}
}

// isolate cuts a member off, or joins it again.
func (c *cluster) isolate(i uint8, cut bool) {
	for j := range c.group.Members {
		if j != i {
			c.cut[[2]uint8{i, j}], c.cut[[2]uint8{j, i}] = cut, cut
		}
	}
}

// install brings a member the state of another one, as a state transfer does.
func (c *cluster) install(to, from uint8) {
	source, m := c.members[from], c.members[to]
	op := source.replica.Commit()
	root := source.disk.root
	if op > source.disk.base {
		root = source.log[op-source.disk.base-1]
	}
	m.disk = disk{base: op, root: root, vote: m.disk.vote, adopt: m.disk.adopt, view: m.disk.view, pending: m.disk.pending}
	m.disk.pending = slices.DeleteFunc(m.disk.pending, func(w write) bool { return w.header != nil || w.truncate != 0 && w.view == 0 })
	for i := range m.disk.pending {
		m.disk.pending[i].truncate = 0
	}
	m.log, m.applied, m.transfer = nil, op, nil
	c.step(to, vsr.Input{Kind: vsr.InputInstalled, Prepare: root})
}

// forget drops the front of a member's log, as a checkpoint does.
func (c *cluster) forget(i uint8, op uint64) {
	m := c.members[i]
	if n := int(op - m.disk.base); op > m.disk.base && op <= min(m.replica.Commit(), m.disk.head()) {
		m.disk.root = m.disk.log[n-1]
		m.disk.log, m.log = slices.Clone(m.disk.log[n:]), slices.Clone(m.log[n:])
		m.disk.base = op
		m.disk.sync()
	}
}
