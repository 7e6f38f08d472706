//go:build linux

package cluster

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var badFor = flag.Duration("bad-network", 0, "repeat the tests on bad networks for so long; 0: once")

const (
	healthyTime = 3 * time.Second
	portOfFirst = 7000
	shown       = 5 // violations that are printed in full
)

// TestBadNetwork has clients work through all doors of a cluster while the network between its members is
// bad, and checks that what they saw is what they are promised.
func TestBadNetwork(t *testing.T) {
	needNetwork(t)
	began := time.Now()
	for round := 0; round == 0 || time.Since(began) < *badFor && !t.Failed(); round++ {
		s := *seed
		if s == 0 || round > 0 {
			s = rand.Uint64()
		}
		t.Run(fmt.Sprintf("round-%d", round), func(t *testing.T) {
			both(t, func(t *testing.T, p local.Plan) { badNetwork(t, p, s, thorough) })
		})
	}
}

func badNetwork(t *testing.T, p local.Plan, seed uint64, nemeses []nemesis) {
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 4))
	members := p.AllRole + p.Metadata + p.Partition + p.FrontDoor
	n := newNetwork(t, members, seed)
	p.BasePort = portOfFirst
	for i := range members {
		p.Hosts = append(p.Hosts, n.host(i))
	}
	c := started(t, p, func(c *local.Cluster) {
		c.Within = func(m local.Member, start func() error) error { return n.spaces[indexOf(c, m)].do(start) }
	})
	fill(t, c)
	h := newHistory()
	h.enter(calm)
	stop := crowd(t, c, h, random)
	elapse(healthyTime)
	d := disturbance{c, n, random, h.enter}
	d.run(t, nemeses)
	stop()
	h.table(t)
	if *keep != "" {
		if _, err := h.write(*keep); err != nil {
			t.Error(err)
		}
	}
	final, read := map[string][]uint64{}, 0
	for at := range logs {
		all := readAll(t, connect(t, c.Process(doors(c)[0]).TCP), at)
		final[logName(at)] = all
		read += len(all)
	}
	judged := time.Now()
	found := checkHistory(h.events, final, members, calm)
	t.Logf("%d requests, %d messages in the logs, checked in %v", len(h.events), read, time.Since(judged).Round(time.Millisecond))
	if len(found) > 0 {
		report(t, h, found, seed)
	}
	used := map[int]bool{}
	for _, e := range h.events {
		if e.Kind == sendKind && e.Result == done && e.Phase == calm {
			used[e.Node] = true
		}
	}
	if len(used) != len(doors(c)) {
		t.Errorf("sends were acknowledged through members %v while all was well: the test tests nothing", used)
	}
}

func indexOf(c *local.Cluster, m local.Member) int {
	return slices.IndexFunc(c.Members, func(o local.Member) bool { return o.Role == m.Role && o.ID == m.ID })
}

// fill makes what clients use.
func fill(t *testing.T, c *local.Cluster) {
	t.Helper()
	admin := connect(t, c.Process(doors(c)[0]).TCP)
	if _, err := admin.CreateStream("s"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: logs + 1, Name: []byte("t")}); err != nil {
		t.Fatal(err)
	}
	const batch = 10_000
	for from := 0; from < filled; from += batch {
		var b client.Batch
		b.Reset(1)
		for i := range batch {
			b.Add(wire.U128{Lo: uint64(from + i + 1)}, []byte("x"), nil)
		}
		to := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: logs}
		if _, err := admin.Send(wire.NamedID("s"), wire.NamedID("t"), to, b.Seal()); err != nil {
			t.Fatal(err)
		}
	}
}

// crowd has clients at every node until stop.
func crowd(t *testing.T, c *local.Cluster, h *history, random *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	together := &shared{history: h}
	id := 0
	for _, m := range doors(c) {
		node, address := indexOf(c, m), c.Process(m).TCP
		for _, work := range []func(*person){useLogs, readLogs, useOffsets, readOffsets, useStreams, readStreams} {
			p := &person{
				shared: together, id: id, node: node, address: address, work: work,
				random: rand.New(rand.NewPCG(random.Uint64(), 5)),
			}
			all.Go(func() { p.run(ctx) })
			id++
		}
	}
	return func() { cancel(); all.Wait() }
}

// readAll reads a partition from its begin to its end.
func readAll(t *testing.T, c *client.Client, at int) (all []uint64) {
	t.Helper()
	for {
		found, first, err := pollFrom(c, at, uint64(len(all)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return all
		}
		if first != uint64(len(all)) {
			t.Fatalf("%s: %d messages, then offset %d", logName(at), len(all), first)
		}
		all = append(all, found...)
	}
}

// report prints violations and leaves behind what shows them: the history, and a picture of each object.
func report(t *testing.T, h *history, found []*violation, seed uint64) {
	t.Helper()
	dir := *keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "whippet-history-"); err != nil {
			t.Fatal(err)
		}
	}
	path, err := h.write(dir)
	if err != nil {
		t.Error(err)
	}
	for i, v := range found {
		if i == shown {
			t.Errorf("and %d more", len(found)-shown)
			break
		}
		picture := ""
		if v.history != nil {
			picture = filepath.Join(dir, strings.ReplaceAll(fmt.Sprintf("%s-%d.html", v.object, v.node), " ", "-"))
			if err := draw(v, picture); err != nil {
				t.Error(err)
			}
		}
		t.Errorf("%s\n%s", v, picture)
	}
	t.Errorf("%d violations with seed %d (times of packets and processes are chance: repeat with -bad-network); history: %s", len(found), seed, path)
}

const drawTime = 10 * time.Second // a picture shows how far porcupine came until then

func draw(v *violation, path string) error {
	_, info := porcupine.CheckOperationsVerbose(v.model, v.history, drawTime)
	return porcupine.VisualizePath(v.model, info, path)
}
