package vsr_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

var (
	chaosSeed  = flag.Uint64("chaos.seed", 0, "run this seed only, and say what happens")
	chaosSeeds = flag.Uint64("chaos.seeds", 100, "seeds to run")
	chaosSteps = flag.Int("chaos.steps", 400, "requests and faults of a run")
)

// TestChaos drives groups through random faults, checks every step, then heals everything and expects
// the group to come to rest with one log. tools/simulator does the same with whole nodes.
func TestChaos(t *testing.T) {
	if *chaosSeed != 0 {
		runChaos(t, *chaosSeed, true)
		return
	}
	for seed := uint64(1); seed <= *chaosSeeds; seed++ {
		runChaos(t, seed, false)
	}
}

func runChaos(t *testing.T, seed uint64, loud bool) {
	t.Helper()
	say := func(format string, args ...any) {
		if loud {
			fmt.Printf(format+"\n", args...)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			if loud {
				panic(p)
			}
			t.Errorf("seed %d: %v", seed, p)
		}
	}()
	x := newChaos(seed, say)
	x.run(*chaosSteps)
	if err := x.heal(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

type chaos struct {
	*cluster
	pulse   pulse
	request uint64
	power   bool
	damaged bool

	late, lossy, twice uint64 // one frame in so many comes late, is lost, comes twice
	busy               uint64 // frames and writes between two acts
}

func newChaos(seed uint64, say func(string, ...any)) *chaos {
	random := seed*0x9e3779b97f4a7c15 | 1
	x := &chaos{}
	n := []uint8{3, 3, 3, 3, 5, 5, 7}[seed%7]
	policy := vsr.Policy{Synced: seed%3 == 0}
	if seed%6 == 0 {
		policy.SealBody, policy.Incarnation = true, true
	}
	x.cluster = newCluster(vsr.Group{ID: wire.GroupID(1, 2, 3, 0), Cluster: wire.ClusterID("chaos"), Members: n, Policy: policy},
		vsr.Limits{Pipeline: []int{0, 3, 127}[seed%3]}, vsr.Born, say)
	x.random = random
	x.late, x.lossy, x.twice = 2+x.one(20), 5+x.one(100), 10+x.one(100)
	x.busy = []uint64{5, 15, 30, 60}[x.one(4)]
	x.power = seed%2 == 0
	x.pulse = newPulse(x.cluster)
	return x
}

func (x *chaos) one(n uint64) uint64 { return x.next() >> 11 % n }

func (x *chaos) any() uint8 { return uint8(x.one(uint64(x.group.Members))) }

// run takes steps at random.
func (x *chaos) run(steps int) {
	for range steps {
		x.act()
		for range x.one(x.busy) {
			x.jostle()
		}
		x.elapse(vsr.Tick(x.one(60_000)))
	}
}

// act is one fault or one request.
func (x *chaos) act() {
	i := x.any()
	m := x.members[i]
	switch p := x.one(100); {
	case p < 60:
		for j := range x.members {
			if x.members[j].up && x.members[j].replica.Primary() {
				x.request++
				x.propose(uint8(j), x.request)
			}
		}
	case p < 68 && m.up:
		x.tell("-- kill %d", i)
		x.stop(i, x.power && p < 64)
	case p < 80 && !m.up:
		x.revive(i)
	case p < 84:
		x.tell("-- cut %d", i)
		x.isolate(i, true)
	case p < 87:
		j := x.any()
		x.cut[[2]uint8{i, j}] = !x.cut[[2]uint8{i, j}]
	case p < 91:
		x.isolate(i, false)
	case p < 94:
		m.slow = !m.slow
	case p < 96 && m.up:
		x.failWrite(i)
	case p < 97 && m.up:
		x.forget(i, m.replica.Commit()-min(m.replica.Commit(), x.one(20)))
	case p < 98 && m.up:
		x.step(i, vsr.Input{Kind: vsr.InputHandOver})
	case p < 99 && !m.up && !x.damaged:
		x.loseDisk(i)
	case !m.up && !x.damaged && !x.power && !x.group.Policy.Incarnation:
		x.rot(i)
	}
}

// loseDisk wipes a metadata member while all others are whole: one disk may go at a time.
func (x *chaos) loseDisk(i uint8) {
	for j := range x.members {
		if uint8(j) != i && !x.members[j].disk.vote.Whole || !x.group.Policy.Incarnation {
			return
		}
	}
	x.tell("-- wipe %d", i)
	x.wipe(i)
}

// rot makes the newest entry of a member unreadable; what it acknowledged of it is known by its header.
func (x *chaos) rot(i uint8) {
	d := &x.members[i].disk
	head := d.head()
	if len(d.log) == 0 || d.view > d.vote.LogView {
		return
	}
	last := d.log[len(d.log)-1]
	copies := 0
	for j := range x.members {
		if slices.ContainsFunc(x.members[j].disk.log, func(h wire.PrepareHeader) bool { return h.Checksum == last.Checksum }) {
			copies++
		}
	}
	if last.Commit >= head || copies < 2 {
		return
	}
	x.damaged = true
	x.tell("-- %d cannot read %d", i, head)
	list := d.adopt
	if d.view != d.vote.LogView {
		list = nil
	}
	list = slices.DeleteFunc(slices.Clone(list), func(h wire.PrepareHeader) bool { return h.Op <= head })
	if n := len(list); n > 0 && list[n-1].Op != head+1 {
		return
	}
	d.adopt, d.view = append(list, d.log[len(d.log)-1]), d.vote.LogView
	d.log, d.lost = d.log[:len(d.log)-1], head
	d.sync()
}

// failWrite loses a write that is on its way and what follows it.
func (x *chaos) failWrite(i uint8) {
	m := x.members[i]
	for k, w := range m.disk.pending {
		if w.header == nil {
			continue
		}
		if m.disk.cutLater(w.header.Op) {
			return
		}
		if slices.ContainsFunc(m.disk.pending[k:], func(w write) bool { return w.header == nil }) {
			return
		}
		m.disk.pending = m.disk.pending[:k]
		x.tell("-- %d cannot write %d", i, w.header.Op)
		x.step(i, vsr.Input{Kind: vsr.InputWriteFailed, Op: w.header.Op})
		return
	}
}

func (x *chaos) revive(i uint8) {
	m := x.members[i]
	state := vsr.Whole
	switch {
	case m.disk.vote.Whole:
	case x.group.Policy.Incarnation:
		state = vsr.Empty
	default:
		state = vsr.Suspect
	}
	x.tell("-- start %d %v", i, state)
	x.start(i, state, x.tick)
}

// jostle moves one thing: in order mostly, sometimes late, lost or twice.
func (x *chaos) jostle() {
	if i := x.any(); x.one(3) == 0 {
		if m := x.members[i]; m.up && m.disk.busy() {
			if x.one(2) == 0 {
				x.save(i)
			} else {
				x.write(i)
			}
		} else if x.one(4) == 0 {
			m.disk.sync()
		}
		if m := x.members[i]; m.up && m.transfer != nil {
			x.moveState(i)
		}
		return
	}
	if len(x.net) == 0 {
		return
	}
	k := 0
	if x.one(x.late) == 0 {
		k = int(x.one(uint64(len(x.net))))
	}
	switch {
	case x.one(x.lossy) == 0:
		x.net = append(x.net[:k], x.net[k+1:]...)
	case x.one(x.twice) == 0:
		x.net = append(x.net, x.net[k])
		x.deliver(k)
	default:
		x.deliver(k)
	}
}

func (x *chaos) moveState(i uint8) {
	from := x.members[i].transfer.From
	if s := x.members[from]; s.up && s.replica.Commit() >= x.members[i].transfer.Above {
		x.tell("-- %d installs from %d", i, from)
		x.install(i, from)
		return
	}
	x.members[i].transfer = nil
	x.step(i, vsr.Input{Kind: vsr.InputTransferFailed})
}

// elapse lets time pass without settling.
func (x *chaos) elapse(us vsr.Tick) {
	x.tick += us
	x.now += uint64(us)
	for i, m := range x.members {
		if m.up && m.wake != 0 && m.wake <= x.tick {
			x.step(uint8(i), vsr.Input{Kind: vsr.InputTick})
		}
	}
	x.pulse.beat()
	if len(x.net) > 5000 {
		x.net = x.net[len(x.net)-2000:]
	}
}

// heal ends all faults and waits for rest.
func (x *chaos) heal() error {
	x.tell("-- heal")
	x.cut = map[[2]uint8]bool{}
	for i, m := range x.members {
		m.slow = false
		if !m.up {
			x.revive(uint8(i))
		}
	}
	var err error
	for round := range 200 {
		for range 5 {
			x.settle()
			for i, m := range x.members {
				if m.transfer != nil {
					x.moveState(uint8(i))
				}
			}
			x.settle()
			x.elapse(20_000)
		}
		if round > 60 && round%10 == 0 {
			for j := range x.members {
				if x.members[j].replica.Primary() {
					x.request++
					x.propose(uint8(j), x.request)
				}
			}
		}
		if err = x.check.converged(); err == nil && round > 80 {
			for i, m := range x.members {
				if m.wake != 0 {
					err = fmt.Errorf("member %d still wants to wake", i)
				}
			}
			if err == nil {
				return nil
			}
		}
	}
	return err
}

// pulse is the node-level failure detector, seen from outside.
type pulse struct {
	c      *cluster
	heard  [][]vsr.Tick
	echo   [][]vsr.Tick
	cutOff []bool
}

func newPulse(c *cluster) pulse {
	p := pulse{c: c, cutOff: make([]bool, c.group.Members)}
	for range c.group.Members {
		p.heard = append(p.heard, make([]vsr.Tick, c.group.Members))
		p.echo = append(p.echo, make([]vsr.Tick, c.group.Members))
	}
	return p
}

func (p *pulse) hears(x, y int) bool { return p.c.tick-p.heard[x][y] < 500_000 }

// beat is one exchange of pings.
func (p *pulse) beat() {
	n := int(p.c.group.Members)
	for x := range n {
		for y := range n {
			a, b := p.c.members[x], p.c.members[y]
			if x == y || !a.up || !b.up || p.c.cut[[2]uint8{uint8(y), uint8(x)}] {
				continue
			}
			p.heard[x][y] = p.c.tick
			if !p.c.cut[[2]uint8{uint8(x), uint8(y)}] {
				p.echo[x][y] = p.c.tick
			}
		}
	}
	for x := range n {
		if p.c.members[x].up {
			p.judge(x)
		}
	}
}

// judge tells member x what changed.
func (p *pulse) judge(x int) {
	m := p.c.members[x]
	n := int(p.c.group.Members)
	q := vsr.QuorumsOf(n)
	echoes := 0
	for y := range n {
		if y == x {
			continue
		}
		if p.c.tick-p.echo[x][y] < 400_000 {
			echoes++
		}
		bit := uint32(1) << y
		if p.hears(x, y) && !m.disk.vote.Whole {
			p.c.step(uint8(x), vsr.Input{Kind: vsr.InputPeerView, From: uint8(y), Op: uint64(p.c.members[y].replica.View())})
		}
		switch hears := p.hears(x, y); {
		case hears && m.deaf&bit != 0:
			m.deaf &^= bit
			p.c.step(uint8(x), vsr.Input{Kind: vsr.InputAlive, From: uint8(y)})
		case !hears && m.deaf&bit == 0 && p.agree(x, y) >= q.ViewChange-1:
			m.deaf |= bit
			p.c.step(uint8(x), vsr.Input{Kind: vsr.InputDead, From: uint8(y)})
		}
	}
	if off := echoes < q.Replication-1; off != p.cutOff[x] {
		p.cutOff[x] = off
		kind := vsr.InputReached
		if off {
			kind = vsr.InputIsolated
		}
		p.c.step(uint8(x), vsr.Input{Kind: kind})
	}
}

// agree counts the others that do not hear y either.
func (p *pulse) agree(x, y int) int {
	count := 0
	for z := range int(p.c.group.Members) {
		if z != x && z != y && p.c.members[z].up && !p.hears(z, y) {
			count++
		}
	}
	return count
}
