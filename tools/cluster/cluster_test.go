package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/cluster/lanes"
	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

var (
	rounds = flag.Int("rounds", 1, "kill each role so often")
	seed   = flag.Uint64("seed", 0, "of the load and of the moments; 0 draws one")
	keep   = flag.String("keep", "", "work in this directory and leave it behind")
	bin    = flag.String("bin", "", "directory of the server binaries; without it they are built")
)

const readyTime = time.Minute // generous: machines of tests are busy

// services and allRole are the two forms of a cluster.
var (
	services = local.Plan{Metadata: 3, Partition: 3, FrontDoor: 2}
	allRole  = local.Plan{AllRole: 3}
)

// forms runs a test on both, one after the other: it looks at times.
func forms(t *testing.T, test func(t *testing.T, p local.Plan)) {
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	t.Run("services", func(t *testing.T) { test(t, services) })
	t.Run("all-role", func(t *testing.T) { test(t, allRole) })
}

// both runs a test on both at once: most of its time nothing happens.
func both(t *testing.T, test func(t *testing.T, p local.Plan)) {
	forms(t, func(t *testing.T, p local.Plan) {
		t.Parallel()
		test(t, p)
	})
}

var binaries struct {
	sync.Once
	dir string
	err error
}

// TestMain removes the binaries the tests share.
func TestMain(m *testing.M) {
	flag.Parse()
	if doors := os.Getenv(stormVariable); doors != "" {
		throng(strings.Split(doors, ","))
		return
	}
	if os.Getenv(floorVariable) != "" {
		bareReader()
	}
	code := m.Run()
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir)
	}
	os.Exit(code)
}

func built(t *testing.T) string {
	t.Helper()
	if *bin != "" {
		return *bin
	}
	binaries.Do(func() {
		if binaries.dir, binaries.err = os.MkdirTemp("", "whippet-cluster"); binaries.err == nil {
			binaries.err = process.BuildAll(binaries.dir)
		}
	})
	if binaries.err != nil {
		t.Fatal(binaries.err)
	}
	return binaries.dir
}

// start brings a cluster up; it is down again when the test ends.
func start(t *testing.T, p local.Plan) *local.Cluster {
	t.Helper()
	return started(t, p, func(*local.Cluster) {})
}

// started is start with something to do before anything runs.
func started(t *testing.T, p local.Plan, prepare func(*local.Cluster)) *local.Cluster {
	t.Helper()
	p.Bin = built(t)
	dir := filepath.Join(*keep, t.Name())
	if *keep == "" {
		dir = t.TempDir()
	}
	c, err := local.Make(filepath.Join(dir, "cluster"), p)
	if err != nil {
		t.Fatal(err)
	}
	prepare(c)
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, m := range c.Members {
				t.Logf("%s %d: %s", m.Role, m.ID, lastWords(c, m))
			}
		}
	})
	up(t, c)
	return c
}

func up(t *testing.T, c *local.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	if err := c.Up(ctx); err != nil {
		t.Fatal(err)
	}
}

func lastWords(c *local.Cluster, m local.Member) string {
	text, _ := os.ReadFile(c.Log(m))
	return string(text[max(0, len(text)-3000):])
}

// doors are the members clients connect to.
func doors(c *local.Cluster) (all []local.Member) {
	for _, m := range c.Members {
		if m.Role == local.FrontDoor || m.Role == local.AllRole {
			all = append(all, m)
		}
	}
	return all
}

// doorAddresses is where clients connect. It takes time: look before something happens.
func doorAddresses(c *local.Cluster) (all []string) {
	for _, d := range doors(c) {
		all = append(all, c.Process(d).TCP)
	}
	return all
}

// through are lanes through all doors.
func through(c *local.Cluster) *lanes.Lanes {
	return lanes.New(client.Options{Username: "iggy", Password: "iggy"}, doorAddresses(c)...)
}

func connect(t *testing.T, address string) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	for {
		c, err := client.Dial(ctx, client.Options{Address: address, Username: "iggy", Password: "iggy", RetryFor: 30 * time.Second})
		if err == nil {
			t.Cleanup(c.Close)
			return c
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: %v", address, err)
		}
	}
}

// TestServes sends through one door and reads through another.
func TestServes(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		d := doors(c)
		producer, consumer := connect(t, c.Process(d[0]).TCP), connect(t, c.Process(d[1]).TCP)
		if _, err := producer.CreateStream("s"); err != nil {
			t.Fatal(err)
		}
		stream, topic := wire.NamedID("s"), wire.NamedID("t")
		if _, err := producer.CreateTopic(wire.CreateTopicRequest{Stream: stream, PartitionsCount: 5, Name: []byte("t")}); err != nil {
			t.Fatal(err)
		}
		for partition := range uint32(5) {
			var b client.Batch
			for i := range 10 {
				b.Reset(1)
				b.Add(wire.U128{Lo: uint64(i + 1)}, fmt.Appendf(nil, "%d-%d", partition, i), nil)
				at, err := producer.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition, Partition: partition}, b.Seal())
				if err != nil || at.BaseOffset != uint64(i) {
					t.Fatalf("partition %d: message %d at %d, %v", partition, i, at.BaseOffset, err)
				}
			}
			poll, err := consumer.Poll(wire.PollMessagesRequest{
				Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: stream, Topic: topic,
				Partition: wire.SelectPartition(partition), Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: 100,
			})
			if err != nil || poll.MessagesCount != 10 {
				t.Fatalf("partition %d through another door: %d messages, %v", partition, poll.MessagesCount, err)
			}
		}
	})
}
