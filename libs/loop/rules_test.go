package loop

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// rounds completes what is being written to the node's log. Votes wait.
func (n *node) rounds() {
	for len(n.writer.rounds) > 0 {
		n.complete()
	}
}

func (c *cluster) underway(command wire.Command) (n int) {
	for _, q := range c.wires {
		for _, l := range q {
			if l.header.Command() == command {
				n++
			}
		}
	}
	return n
}

// Rule D1: before the first vote of a new group is saved nothing is acknowledged, by a backup or by the
// primary itself.
func TestFirstVoteBeforeTheFirstAck(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	primary := c.primary(1)
	for _, n := range c.nodes {
		n.beat()
	}
	p := primary.write(1)
	for _, pair := range c.pairs() {
		for len(c.wires[pair]) > 0 {
			c.deliver(pair)
		}
	}
	for _, n := range c.nodes {
		n.rounds()
		g := n.engine.Loop.Group(1)
		if g.Head() != 1 || g.peers.held != 1 {
			t.Fatalf("node %d has not written the op", n.id)
		}
	}
	if c.underway(wire.CommandPrepareOk) > 0 || p.check(c) {
		t.Fatal("acknowledged before the votes were saved")
	}
	c.settle()
	if !p.check(c) {
		t.Fatal("not acknowledged after the votes were saved")
	}
}

// What is written and not committed stays in the log, whatever is checkpointed.
func TestCheckpointKeepsTheTail(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	c.settle()
	primary := c.primary(1)
	primary.beat()
	before := primary.engine.Loop.reached
	primary.write(1)
	primary.rounds()
	if at := primary.engine.Loop.image(primary.engine.Loop.reached).at; at > before {
		t.Fatalf("a checkpoint at %d drops an op that was written behind %d", at, before)
	}
}

// Rules D5 and D9: a member that lost power is suspect until it is whole again, over restarts.
func TestSuspicionOutlivesARestart(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	c.run(500_000)
	c.mustWrite(1)
	n := c.nodes[0]
	others := []*node{c.nodes[1], c.nodes[2]}
	for _, o := range others {
		o.stop(false)
	}
	n.stop(true)
	for range 3 {
		n.start()
		if state := n.engine.judge(&Spec{ID: 1}, true); state != vsr.Suspect {
			t.Fatalf("state %d after a power cut", state)
		}
		c.run(3_000_000) // it may propose views, and votes for them
		n.stop(false)
	}
	n.start()
	if v, _ := n.votes.Get(1); v.View == 0 {
		t.Fatal("the member has not voted: nothing was tried")
	}
	for _, o := range others {
		o.start()
	}
	c.mustWrite(1)
	c.run(3_000_000)
	if state := n.engine.judge(&Spec{ID: 1}, true); state != vsr.Whole {
		t.Fatalf("state %d after the others made it whole", state)
	}
	c.converge()
}

// A member whose log was found damaged stays suspect although the damage itself is cut off.
func TestDamageOutlivesARestart(t *testing.T) {
	for seed := range seeds(10) {
		c := newCluster(t, seed, 3, 1, vsr.Policy{Synced: true})
		c.run(500_000)
		for range 20 {
			c.mustWrite(1)
		}
		n := c.nodes[0]
		for _, node := range c.nodes {
			node.stop(false)
		}
		n.rot()
		n.start()
		if !n.engine.Loop.Group(1).peers.fenced {
			continue
		}
		for range 2 {
			c.run(1_000_000)
			n.stop(false)
			n.start()
			if !n.engine.Loop.Group(1).peers.fenced {
				t.Fatalf("seed %d: a restart made the member forget that its log is damaged", seed)
			}
		}
		c.converge()
		n.stop(false)
		n.start()
		if n.engine.Loop.Group(1).peers.fenced {
			t.Fatalf("seed %d: a member that is whole again is still fenced", seed)
		}
	}
}

// An op that was cut while it was being written is not held once that write is done: the op that took its
// number is another one.
func TestCompletionOfACutOp(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	c.run(500_000)
	old := c.primary(1)
	old.stalled = true
	old.write(1)
	c.wires = map[[2]int][]*letter{}
	for _, other := range c.nodes {
		if other != old {
			c.cut[[2]int{int(old.id), int(other.id)}], c.cut[[2]int{int(other.id), int(old.id)}] = true, true
		}
	}
	c.run(1_500_000)
	c.mustWrite(1)
	clear(c.cut)
	c.run(200_000)
	c.reconnect()
	g := old.engine.Loop.Group(1)
	for range 100 {
		c.run(20_000)
		if g.Head() == 0 {
			break
		}
	}
	if g.Head() != 0 || len(old.writer.rounds) < 2 {
		t.Fatalf("head %d, %d rounds: the op was not cut while it was written", g.Head(), len(old.writer.rounds))
	}
	old.complete()
	if g.peers.held != 0 {
		t.Fatalf("op %d counts as held", g.peers.held)
	}
	old.stalled = false
	c.converge()
}

// A metadata member that lost everything is not whole because it was restarted.
func TestEmptyMemberStaysEmpty(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{SealBody: true, Incarnation: true, Synced: true})
	n := c.nodes[0]
	for _, other := range c.nodes[1:] {
		other.stop(false)
	}
	for range 3 {
		c.run(3_000_000) // it may propose views
		n.stop(false)
		n.start()
		if !n.engine.Loop.Group(1).peers.fenced {
			t.Fatal("an empty member takes itself for whole")
		}
	}
	for _, other := range c.nodes[1:] {
		other.start()
	}
	c.run(3_000_000)
	c.converge()
}

// A member whose disk was lost is not new to its groups, nor whole because it restarts; the others make it
// whole.
func TestLostDisk(t *testing.T) {
	for seed := range seeds(10) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: seed%2 == 0})
		c.churn(15, true)
		c.converge()
		n := c.nodes[c.rng.IntN(3)]
		n.stop(false)
		n.fs, n.wiped = vfs.NewMem(seed+1000), true
		for range 2 {
			n.start()
			for range c.rng.IntN(40) {
				for _, act := range c.busy() {
					act()
				}
			}
			if g := n.engine.Loop.Group(1); !g.peers.fenced && g.core.LogView() == 0 && g.Head() == 0 {
				t.Fatalf("seed %d: a member without anything takes itself for whole", seed)
			}
			n.stop(false)
		}
		n.start()
		c.churn(15, true)
		c.converge()
	}
}

// A member whose state can not be read begins anew and gets it from the others.
func TestUnreadableState(t *testing.T) {
	for seed := range seeds(10) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: seed%2 == 0})
		c.churn(15, true)
		c.converge()
		n := c.nodes[c.rng.IntN(3)]
		for range 2 {
			n.stop(false)
			n.broken = true
			n.start()
			n.broken = false
			if g := n.engine.Loop.Group(1); !g.peers.fenced || g.Head() != 0 {
				t.Fatalf("seed %d: head %d with a state that was not read", seed, g.Head())
			}
			c.run(vsr.Tick(c.rng.IntN(300_000)))
		}
		n.stop(seed%3 == 0)
		n.start()
		c.churn(15, true)
		c.converge()
	}
}

// A state that is installed while a round of the group fails covers what failed.
func TestInstallDuringAFailure(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{})
	c.run(500_000)
	n := c.primary(1)
	n.stalled = true
	n.write(1)
	n.write(1)
	n.fs.SetFault(func(call vfs.Call) vfs.Fault {
		if call.Op == vfs.OpWrite && strings.HasPrefix(call.Name, "log/spare-") {
			return vfs.Fault{Err: syscall.ENOSPC}
		}
		return vfs.Fault{}
	})
	n.complete()
	g := n.engine.Loop.Group(1)
	if g.failed != 1 || len(n.writer.rounds) != 1 {
		t.Fatalf("op %d failed, %d rounds are open", g.failed, len(n.writer.rounds))
	}
	head := wire.PrepareHeader{Command: wire.CommandPrepare, Op: 5, Operation: wire.OpStoreOffset, Group: 1, Size: wire.HeaderSize}
	head.Checksum = head.Identity()
	n.engine.Do(func() {
		n.engine.Install(g, head, func() error {
			n.machines[1].applied, n.machines[1].base = make([]string, 5), 5
			return nil
		})
	})
	n.engine.Step()
	if g.peers.installing {
		t.Fatal("no checkpoint keeps the state")
	}
	n.complete()
	if g.Applied() != 5 || g.failed != 0 {
		t.Fatalf("applied %d, failed %d", g.Applied(), g.failed)
	}
}

// What a restart writes by itself is below the next checkpoint too: the log does not go back.
func TestCheckpointBehindARestart(t *testing.T) {
	c := newCluster(t, 1, 3, 1, vsr.Policy{Synced: true})
	c.run(500_000)
	c.mustWrite(1)
	n := c.nodes[0]
	n.stop(false)
	n.broken = true // a truncate record, and a checkpoint
	n.start()
	failed := errors.New("not written")
	n.engine.Do(func() { n.engine.afterCheckpoint(func(err error) { failed = err }) })
	for range 5 {
		n.engine.Step()
	}
	if failed != nil {
		t.Fatal(failed)
	}
}

// Completions of ops that were cut are never told, not even for the op that took their number.
func (c *cluster) checkHeld() {
	for _, n := range c.nodes {
		if !n.up {
			continue
		}
		l := n.engine.Loop
		for _, b := range append([]*batch{l.written, l.durable}, l.flight...) {
			if b == nil {
				continue
			}
			for _, m := range b.marks {
				if m.op >= m.first && m.group.peers.held >= m.first {
					c.fail("node %d group %d: op %d counts as held and is being written", n.id, m.group.ID, m.group.peers.held)
				}
			}
		}
	}
}
