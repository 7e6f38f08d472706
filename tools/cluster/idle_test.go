package cluster

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var (
	partitions = flag.Int("partitions", 200, "TestIdlePartitions: empty partitions on three partition replicas")
	profiles   = flag.String("profiles", "", "TestIdlePartitions: write profiles of the idle processes to this directory")
)

const (
	partitionsPerTopic = 100
	idleFor            = 10 * time.Second // for many partitions; else a second
	manyPartitions     = 10_000           // from so many on a partition replica is held to its limits

	// Limits of an idle partition replica, and of the time until what a dead one led is led elsewhere. Those hold on a
	// machine that has nothing else to do.
	idleCPU    = 0.02   // of a core
	idleMemory = 10_000 // bytes resident per partition
	moveTime   = 3 * time.Second
	moveLimit  = 20 * time.Second // with fewer partitions, on any machine
)

// TestIdlePartitions shows what partitions cost that nobody uses, and how long it takes until all those that a
// dead process led are led by others: before anybody used them, after one message each, with a member less, and when
// that one is back.
func TestIdlePartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of processes")
	}
	c := start(t, services)
	w := &idleWatch{t: t, cluster: c, empty: usages(t, c), wait: time.Second}
	if *partitions >= 1000 {
		w.wait = idleFor
	}
	makePartitions(t, c)
	w.idle("untouched")
	begun := time.Now()
	touch(t, c)
	w.awaitLed()
	t.Logf("each partition has taken a message after %v", time.Since(begun).Round(time.Millisecond))
	w.idle("touched")
	victim := holders(c)[0]
	w.kill(victim)
	w.idle("moved")
	again(t, c, victim)
	await(t, "it takes part", func() bool {
		return metric(c, victim, "whippet_partitions_hosted") == float64(*partitions) && metric(c, victim, "whippet_partitions_unsettled") == 0
	})
	w.idle("returned")
}

func makePartitions(t *testing.T, c *local.Cluster) {
	t.Helper()
	admin := connect(t, c.Process(doors(c)[0]).TCP)
	begun := time.Now()
	if _, err := admin.CreateStream("idle"); err != nil {
		t.Fatal(err)
	}
	for made := 0; made < *partitions; made += partitionsPerTopic {
		q := wire.CreateTopicRequest{Stream: wire.NamedID("idle"), PartitionsCount: uint32(min(partitionsPerTopic, *partitions-made)), Name: fmt.Appendf(nil, "t%d", made)}
		if _, err := admin.CreateTopic(q); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d partitions made after %v", *partitions, time.Since(begun).Round(time.Millisecond))
}

// idleWatch looks at the processes of an idle cluster.
type idleWatch struct {
	t       *testing.T
	cluster *local.Cluster
	empty   map[string]usage // before there were partitions
	wait    time.Duration
}

// idle shows what each process uses while nothing happens.
func (w *idleWatch) idle(what string) {
	w.t.Helper()
	elapse(w.wait) // what came before has left something to do
	from, began := usages(w.t, w.cluster), time.Now()
	elapse(w.wait)
	to, took := usages(w.t, w.cluster), time.Since(began)
	w.t.Logf("%-9s %-14s %10s %10s %14s", "idle", "", "CPU", "memory", "per partition")
	for _, m := range w.cluster.Members {
		name := fmt.Sprintf("%s %d", m.Role, m.ID)
		before, a := w.empty[name], from[name]
		b, runs := to[name]
		if !runs {
			continue
		}
		cpu := (b.cpu - a.cpu).Seconds() / took.Seconds()
		each := float64(b.memory-before.memory) * 1024 / float64(*partitions)
		w.t.Logf("%-9s %-14s %8.2f %% %6d MiB %8.0f bytes", what, name, 100*cpu, b.memory>>10, each)
		if *partitions >= manyPartitions && m.Role == local.Partition && (cpu > idleCPU || each > idleMemory) {
			w.t.Errorf("%s: %s uses %.2f %% of a core and %.0f bytes per partition", what, name, 100*cpu, each)
		}
	}
	profile(w.t, w.cluster, what)
}

// awaitLed waits until each partition has a primary, which has counted itself.
func (w *idleWatch) awaitLed() {
	w.t.Helper()
	await(w.t, "every partition is led", func() bool {
		var n float64
		for _, m := range holders(w.cluster) {
			n += metric(w.cluster, m, "whippet_partitions_led")
		}
		return n == float64(*partitions)
	})
}

// kill measures how long it takes until others lead what a process led.
func (w *idleWatch) kill(victim local.Member) {
	w.t.Helper()
	h := watchHiccups()
	led := metric(w.cluster, victim, "whippet_partitions_led")
	struck := time.Now()
	if err := w.cluster.Kill(victim); err != nil {
		w.t.Fatal(err)
	}
	w.awaitLed()
	moved := time.Since(struck)
	w.t.Logf("%v primaries of a dead process are led elsewhere after %v; this process was late by up to %v", led, moved.Round(time.Millisecond), h.longest())
	h.end()
	limit := moveLimit
	if *partitions >= manyPartitions {
		limit = moveTime
	}
	if moved > limit {
		w.t.Errorf("primaries moved only after %v", moved)
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

// profile writes what each process has on its heap, and what it does for a while.
func profile(t *testing.T, c *local.Cluster, what string) {
	t.Helper()
	if *profiles == "" {
		return
	}
	var all sync.WaitGroup
	for _, m := range c.Members {
		if c.Process(m).Pid == 0 {
			continue
		}
		all.Go(func() {
			for kind, query := range map[string]string{"heap": "?gc=1", "profile": fmt.Sprintf("?seconds=%.0f", idleFor.Seconds())} {
				name := filepath.Join(*profiles, fmt.Sprintf("%s-%s-%d.%s", what, m.Role, m.ID, kind))
				if err := download("http://"+c.Process(m).Ops+"/debug/pprof/"+kind+query, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func download(url, name string) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o600)
}
