package loop

import (
	"strings"
	"syscall"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
)

// A member whose disk is full for a while takes part again when it has room, and nothing is lost: a
// primary hands over, a backup asks again.
func TestFullDiskOfAMember(t *testing.T) {
	for seed := range seeds(12) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: seed%2 == 0})
		c.run(1_000_000)
		c.mustWrite(1)
		for range 6 {
			n := c.nodes[c.rng.IntN(3)]
			if n.up {
				n.fs.SetCapacity(n.fs.Allocated() + int64(c.rng.IntN(8<<10)))
			}
			c.churn(5, false)
			for _, n := range c.nodes {
				n.fs.SetCapacity(0)
			}
			c.churn(3, false)
		}
		c.converge()
	}
}

// A write that fails in the middle of a round leaves nothing of it behind.
func TestFailedWritesOfAMember(t *testing.T) {
	for seed := range seeds(12) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: seed%2 == 0})
		c.run(1_000_000)
		for range 6 {
			n := c.nodes[c.rng.IntN(3)]
			left := c.rng.IntN(30)
			n.fs.SetFault(func(call vfs.Call) vfs.Fault {
				if left--; left < 0 && left > -10 && call.Op == vfs.OpWrite && strings.HasPrefix(call.Name, "log/") {
					return vfs.Fault{Err: syscall.ENOSPC}
				}
				return vfs.Fault{}
			})
			c.churn(6, false)
			n.fs.SetFault(nil)
		}
		c.converge()
	}
}

// Bits that rot in one member's log cost it its word, not the cluster its data.
func TestDamagedLogOfAMember(t *testing.T) {
	suspects := 0
	for seed := range seeds(16) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: true})
		c.churn(15, false)
		c.converge()
		n := c.nodes[c.rng.IntN(3)]
		n.stop(false)
		n.rot()
		n.start()
		for _, id := range c.groups {
			if n.engine.Loop.Group(id).peers.fenced {
				suspects++
			}
		}
		c.churn(15, false)
		c.converge()
	}
	if suspects == 0 {
		t.Error("no damage was found")
	}
}

// rot flips bits in a file of the log.
func (n *node) rot() {
	var logs []string
	for _, name := range n.fs.Files() {
		if len(name) > 8 && name[:8] == "log/wal-" {
			logs = append(logs, name)
		}
	}
	name := logs[n.c.rng.IntN(len(logs))]
	n.fs.Corrupt(name, func(b []byte) []byte {
		for range 3 {
			b[n.c.rng.IntN(len(b))] ^= byte(1 + n.c.rng.IntN(255))
		}
		return b
	})
}

// After a failed sync nothing a member wrote is trusted: it ends, comes back suspect, and is made whole
// by the others.
func TestFailedSyncOfAMember(t *testing.T) {
	exits := 0
	for seed := range seeds(16) {
		c := newCluster(t, seed, 3, 2, vsr.Policy{Synced: seed%2 == 0})
		c.churn(10, false)
		c.converge()
		for range 3 {
			n := c.nodes[c.rng.IntN(3)]
			left := c.rng.IntN(20)
			n.fs.SetFault(func(call vfs.Call) vfs.Fault {
				if left--; left < 0 && call.Op == vfs.OpSync && strings.HasPrefix(call.Name, "log/") {
					return vfs.Fault{Err: syscall.EIO}
				}
				return vfs.Fault{}
			})
			for range 20 {
				c.write()
				c.run(20_000)
				n.background()
			}
			n.fs.SetFault(nil)
			if n.fatal {
				exits++
				n.stop(false)
				n.start()
			}
			c.converge()
		}
	}
	if exits == 0 {
		t.Error("no member ended")
	}
}

// write sends a request to whoever is there.
func (c *cluster) write() {
	n := c.nodes[c.rng.IntN(len(c.nodes))]
	if n.up && !n.fatal {
		n.write(c.groups[c.rng.IntN(len(c.groups))])
	}
}
