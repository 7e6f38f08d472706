package cluster

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var scale = flag.Bool("scale", false, "TestScale: grow and shrink a cluster under load")

// rateTime is how long throughput is measured.
const rateTime = 5 * time.Second

// TestScale grows a cluster under mixed load from three partition replicas to five, takes two of the first ones away
// again, and reads everything back. No client sees an error, and copies and leads are even after each step. It prints
// what three and five took: on one machine that says more of its load than of the replicas.
func TestScale(t *testing.T) {
	if !*scale {
		t.Skip("half a minute and gigabytes: -args -scale")
	}
	c := start(t, local.Plan{Metadata: 3, Partition: 3, FrontDoor: 2})
	admin := connect(t, doorAddresses(c)[0])
	l := load(t, c, verify.Options{MaxPayload: 64 << 10})
	rate := func() float64 {
		before, started := l.ledger.Model.Acknowledged(), time.Now()
		elapse(rateTime)
		return float64(l.ledger.Model.Acknowledged()-before) / time.Since(started).Seconds()
	}
	three := rate()
	for range 2 {
		m, err := c.Add(local.Partition)
		if err != nil {
			t.Fatal(err)
		}
		again(t, c, m)
	}
	operate(t, c, "add", "--nodes", "2")
	even(t, admin, 5)
	five := rate()
	first := where(t, admin).Nodes
	gone := []placement.Node{first[0], first[2]}
	operate(t, c, "drain", strconv.Itoa(gone[0].ID), strconv.Itoa(gone[1].ID))
	for _, p := range where(t, admin).Partitions {
		if slices.Contains(p.Members, gone[0].ID) || slices.Contains(p.Members, gone[1].ID) {
			t.Errorf("partition %d is still on a drained node: %v", p.ID, p.Members)
		}
	}
	operate(t, c, "rebalance")
	even(t, admin, 3)
	for _, m := range c.Members {
		if m.Role == local.Partition && slices.ContainsFunc(gone, func(n placement.Node) bool { return n.Address == c.Process(m).Service }) {
			if err := c.Stop(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range gone {
		await(t, "a stopped node is down", func() bool {
			at := where(t, admin)
			return !slices.ContainsFunc(at.Nodes, func(o placement.Node) bool { return o.ID == n.ID && o.Alive })
		})
		operate(t, c, "remove", strconv.Itoa(n.ID))
	}
	if n := len(where(t, admin).Nodes); n != 3 {
		t.Errorf("%d nodes are registered", n)
	}
	l.check(t)
	for _, d := range l.recorder.Disturbances() {
		t.Errorf("a client saw: %v", d.String())
	}
	t.Logf("%d messages acknowledged; %.0f a second with three, %.0f with five", l.ledger.Model.Acknowledged(), three, five)
}

// operate runs a command of an operator, which must succeed.
func operate(t *testing.T, c *local.Cluster, args ...string) {
	t.Helper()
	started := time.Now()
	out, errs, code := whippet(t, c, append([]string{"cluster", "-u", "iggy", "-p", "iggy", "--address", doorAddresses(c)[1]}, args...)...)
	if code != 0 {
		t.Fatalf("cluster %s: %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	t.Logf("cluster %s: %.1f s\n%s", strings.Join(args, " "), time.Since(started).Seconds(), out)
}

// even checks that so many nodes hold everything evenly.
func even(t *testing.T, admin *client.Client, nodes int) {
	t.Helper()
	at := where(t, admin)
	used := 0
	for id, load := range placement.Loads(at) {
		if load.Copies > 0 {
			used++
		}
		t.Logf("node %d: %d copies, %d leads", id, load.Copies, load.Leads)
	}
	if copies, leads := placement.Spread(at); copies > 1 || leads > 1 || used != nodes {
		t.Errorf("%d nodes hold something, want %d; copies are %d apart, leads %d", used, nodes, copies, leads)
	}
}
