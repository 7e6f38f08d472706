package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var overload = flag.Int("overload", 60, "TestOverload: connections that send a batch of 1 MiB at once")

// overloadLimit is how long an answer may take in a test.
const overloadLimit = 30 * time.Second

// TestOverload sends one large batch on each of many connections to one partition at once. Each is taken or
// refused with word to try again, no process grows beyond its budget, and nobody is deposed.
func TestOverload(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of processes")
	}
	c := start(t, services)
	admin := connect(t, c.Process(doors(c)[0]).TCP)
	if _, err := admin.CreateStream("s"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t")}); err != nil {
		t.Fatal(err)
	}
	h := watchHiccups()
	defer h.end()
	view := metric(c, metadataPrimary(t, c), "whippet_metadata_view")
	clients := make([]*client.Client, *overload)
	d := doors(c)
	for i := range clients {
		one, err := client.Dial(t.Context(), client.Options{
			Address: c.Process(d[i%len(d)]).TCP, Username: "iggy", Password: "iggy", RetryFor: -1, Timeout: 2 * overloadLimit,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		clients[i] = one
	}
	before := memory(t, c)
	var b client.Batch
	b.Reset(1)
	b.Add(wire.U128{Lo: 1}, make([]byte, 1<<20), nil)
	batch := b.Seal()
	var all sync.WaitGroup
	took, answers := make([]time.Duration, len(clients)), make([]error, len(clients))
	begun := time.Now()
	for i, one := range clients {
		all.Go(func() {
			_, answers[i] = one.Send(wire.NamedID("s"), wire.NamedID("t"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch)
			took[i] = time.Since(begun)
		})
	}
	all.Wait()
	taken, refused := 0, 0
	for i, err := range answers {
		var code wire.Code
		switch {
		case err == nil:
			taken++
		case errors.As(err, &code) && code.IsTransient():
			refused++
		default:
			t.Errorf("connection %d: %v after %v", i, err, took[i])
		}
	}
	slices.Sort(took)
	n := len(took)
	t.Logf("%d batches of 1 MiB at once: %d taken, %d refused; half answered after %v, 99 %% after %v, the last after %v; late by up to %v",
		n, taken, refused, took[n/2].Round(time.Millisecond), took[min(n-1, n*99/100)].Round(time.Millisecond), took[n-1].Round(time.Millisecond), h.longest())
	if taken == 0 {
		t.Error("nothing was taken")
	}
	if took[n-1] > overloadLimit {
		t.Errorf("the last answer took %v", took[n-1])
	}
	for m, mib := range memory(t, c) {
		t.Logf("%s: %d MiB at most, %d MiB before", m, mib, before[m])
		if mib > memoryLimit {
			t.Errorf("%s used %d MiB", m, mib)
		}
	}
	changes := 0.0
	for _, m := range holders(c) {
		changes += metric(c, m, "whippet_partition_view_changes_total")
	}
	now := metric(c, metadataPrimary(t, c), "whippet_metadata_view")
	if t.Logf("metadata in view %v, %v partitions taken over", now, changes); (now != view || changes > 0) && h.longest() < tolerable {
		t.Error("load deposed a primary")
	}
}

// memoryLimit in MiB is the default budget for frames and what a process needs besides.
const memoryLimit = 1024

// memory is the most that each process ever had in memory, in MiB.
func memory(t *testing.T, c *local.Cluster) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, p := range c.Status() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		kib := 0
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%s %d", p.Role, p.ID)] = kib >> 10
	}
	return all
}
