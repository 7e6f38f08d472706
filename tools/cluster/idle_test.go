package cluster

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var partitions = flag.Int("partitions", 200, "TestIdlePartitions: empty partitions on three partition replicas")

const (
	partitionsPerTopic = 100
	idleFor            = 10 * time.Second // for many partitions; else a second
	moveLimit          = 20 * time.Second // for all primaries of a dead process; wanted is less than 3 s for ten thousand
)

// TestIdlePartitions shows what partitions cost that nobody uses, and how long it takes until all those that a
// dead process led are led by others.
func TestIdlePartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of processes")
	}
	c := start(t, services)
	admin := connect(t, c.Process(doors(c)[0]).TCP)
	empty := usages(t, c)
	if _, err := admin.CreateStream("idle"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for made := 0; made < *partitions; made += partitionsPerTopic {
		q := wire.CreateTopicRequest{Stream: wire.NamedID("idle"), PartitionsCount: uint32(min(partitionsPerTopic, *partitions-made)), Name: fmt.Appendf(nil, "t%d", made)}
		if _, err := admin.CreateTopic(q); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d partitions made after %v", *partitions, time.Since(begun).Round(time.Millisecond))
	wait := time.Second
	if *partitions >= 1000 {
		wait = idleFor
	}
	h := watchHiccups()
	idle := func(what string) {
		elapse(wait) // what making and touching them left behind
		from, began := usages(t, c), time.Now()
		elapse(wait)
		to, took := usages(t, c), time.Since(began)
		t.Logf("%-9s %-14s %10s %10s %14s", "idle", "", "CPU", "memory", "per partition")
		for _, m := range c.Members {
			name := fmt.Sprintf("%s %d", m.Role, m.ID)
			before, a, b := empty[name], from[name], to[name]
			t.Logf("%-9s %-14s %8.2f %% %6d MiB %10.1f KiB", what, name, 100*(b.cpu-a.cpu).Seconds()/took.Seconds(), b.memory>>10,
				float64(b.memory-before.memory)/float64(*partitions))
		}
	}
	idle("untouched")
	begun = time.Now()
	touch(t, c)
	hosted := func() (n float64) {
		for _, m := range holders(c) {
			n += metric(c, m, "whippet_partitions_led")
		}
		return n
	}
	await(t, "every partition is led", func() bool { return hosted() == float64(*partitions) })
	t.Logf("each partition has taken a message after %v", time.Since(begun).Round(time.Millisecond))
	idle("touched")
	victim := holders(c)[0]
	led := metric(c, victim, "whippet_partitions_led")
	struck := time.Now()
	if err := c.Kill(victim); err != nil {
		t.Fatal(err)
	}
	await(t, "others lead what it led", func() bool { return hosted() == float64(*partitions) })
	moved := time.Since(struck)
	t.Logf("%v primaries of a dead process are led elsewhere after %v; this process was late by up to %v", led, moved.Round(time.Millisecond), h.longest())
	h.end()
	if moved > moveLimit {
		t.Errorf("primaries moved only after %v", moved)
	}
}

// touch sends a message to every partition: nobody opens one before it is used.
func touch(t *testing.T, c *local.Cluster) {
	t.Helper()
	const clients = 8
	var all sync.WaitGroup
	for i := range clients {
		one := connect(t, c.Process(doors(c)[i%2]).TCP)
		all.Go(func() {
			var b client.Batch
			b.Add(wire.U128{Lo: 1}, []byte("one"), nil)
			batch := b.Seal()
			for n := i; n < *partitions; n += clients {
				topic := fmt.Sprintf("t%d", n-n%partitionsPerTopic)
				to := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: uint32(n % partitionsPerTopic)}
				if _, err := one.Send(wire.NamedID("idle"), wire.NamedID(topic), to, batch); err != nil {
					t.Errorf("partition %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// usage is what a process has used so far.
type usage struct {
	cpu    time.Duration
	memory int // KiB resident
}

func usages(t *testing.T, c *local.Cluster) map[string]usage {
	t.Helper()
	all := map[string]usage{}
	for _, p := range c.Status() {
		if p.Pid == 0 {
			continue // it does not run
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		var u usage
		for _, text := range fields[11:13] { // utime, stime in hundredths of a second
			n := 0
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err)
			}
			u.cpu += time.Duration(n) * 10 * time.Millisecond
		}
		pages := 0
		if _, err := fmt.Sscan(fields[21], &pages); err != nil {
			t.Fatal(err)
		}
		u.memory = pages * os.Getpagesize() >> 10
		all[fmt.Sprintf("%s %d", p.Role, p.ID)] = u
	}
	return all
}
