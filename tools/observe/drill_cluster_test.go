package observe

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

// knocking is how many partitions the clients of the drills use, each its own.
const knocking = 6

// knock sends to each partition, and reads it, again and again, whatever the answers are.
func knock(t *testing.T, address string) {
	t.Helper()
	options := client.Options{Address: address, Username: "iggy", Password: "iggy", RetryFor: -1}
	admin, err := client.Dial(t.Context(), client.Options{Address: address, Username: "iggy", Password: "iggy"})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	stream, topic := wire.NamedID("drill"), wire.NamedID("knocks")
	if _, err := admin.CreateStream("drill"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(wire.CreateTopicRequest{Stream: stream, PartitionsCount: knocking, Name: []byte("knocks")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for partition := range uint32(knocking) {
		all.Go(func() {
			var b client.Batch
			b.Reset(1)
			b.Add(wire.U128{Lo: 1}, []byte("knock"), nil)
			batch := b.Seal()
			again := time.NewTicker(lookAgain / 4)
			defer again.Stop()
			var one *client.Client
			for ctx.Err() == nil {
				if one == nil || one.Broken() {
					one, _ = client.Dial(ctx, options)
				}
				if one != nil {
					_, _ = one.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition, Partition: partition}, batch)
				}
				select {
				case <-again.C:
				case <-ctx.Done():
				}
			}
			if one != nil {
				one.Close()
			}
		})
	}
}

// drillCluster is what happens to processes of a cluster.
func drillCluster(t *testing.T) []outcome {
	p := watch(t, shorten)
	nats := startNATS(t)
	plan := services
	plan.Env = maps.Clone(services.Env)
	plan.Env["WHIPPET_NATS_URL"] = "nats://" + nats.address
	c := start(t, plan)
	p.scrape(c, nil)
	of := func(role local.Role) (all []local.Member) {
		for _, m := range c.Members {
			if m.Role == role {
				all = append(all, m)
			}
		}
		return all
	}
	kill := func(all ...local.Member) func(*testing.T) {
		return func(t *testing.T) {
			for _, m := range all {
				if err := c.Kill(m); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	revive := func(t *testing.T) {
		if err := c.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.scrape(c, nil)
	}
	partition, metadata, door := of(local.Partition), of(local.Metadata), of(local.FrontDoor)
	knock(t, c.Process(door[0]).TCP)
	backups := metadata[:0:0]
	p.await("a metadata primary", func() bool {
		backups = backups[:0]
		for _, m := range metadata {
			if !strings.Contains(metricsOf(t, c.Process(m).Ops), "\nwhippet_metadata_primary 1\n") {
				backups = append(backups, m)
			}
		}
		return len(backups) == 2
	})
	var leave func()
	return p.exercise(t, []drill{
		{"a partition replica is killed", []string{"WhippetTargetDown", "WhippetNodesDown", "WhippetPartitionsUnderReplicated"}, kill(partition[0]), revive},
		{"two of three partition replicas are killed", []string{"WhippetPartitionsUnavailable", "WhippetRequestsRefused", "WhippetSlowRequests"}, kill(partition[1:]...), revive},
		{"a partition replica starts alone", []string{"WhippetPartitionsUnsettled"}, func(t *testing.T) {
			kill(partition...)(t)
			alone := partition[0]
			if err := c.Start(alone); err != nil {
				t.Fatal(err)
			}
			if err := c.Await(t.Context(), alone); err != nil {
				t.Fatal(err)
			}
			p.write("partition-replica.json", fmt.Appendf(nil, `[{"targets": [%q]}]`, c.Process(alone).Ops))
		}, revive},
		{"a metadata backup is killed", []string{"WhippetMetadataMemberDown"}, kill(backups[0]), revive},
		{"two of three metadata replicas are killed", []string{"WhippetMetadataNoPrimary"}, kill(backups[0], other(metadata, backups)), revive},
		{"all front-doors are killed", []string{"WhippetNoFrontDoor"}, kill(door...), revive},
		{"a process has another secret", []string{"WhippetLinkRefused", "WhippetNotReady"}, func(t *testing.T) {
			var ops string
			ops, leave = stranger(t, c)
			p.scrape(c, map[string][]string{"front-door": {ops}})
		}, func(*testing.T) {
			leave()
			p.scrape(c, nil)
		}},
		{"NATS is killed", []string{"WhippetControlPlaneDown"}, func(t *testing.T) { nats.kill() }, nats.start},
	})
}

// other is the metadata replica that is no backup.
func other(all, backups []local.Member) local.Member {
	for _, m := range all {
		if m.ID != backups[0].ID && m.ID != backups[1].ID {
			return m
		}
	}
	return all[0]
}

func metricsOf(t *testing.T, ops string) string {
	t.Helper()
	r, err := http.Get("http://" + ops + "/metrics")
	if err != nil {
		return ""
	}
	defer func() { _ = r.Body.Close() }()
	var text strings.Builder
	text.WriteByte('\n')
	_, _ = io.Copy(&text, r.Body)
	return text.String()
}

// stranger starts a front-door that knows the way and not the secret. It returns its ops address and what ends it.
func stranger(t *testing.T, c *local.Cluster) (ops string, end func()) {
	t.Helper()
	ops = freeAddress(t)
	var roster []string
	for _, m := range c.Members {
		if m.Role == local.Metadata {
			roster = append(roster, fmt.Sprintf("%d=%s", m.ID, m.Replica))
		}
	}
	cmd := exec.Command(filepath.Join(c.Bin, "whippet-front-door"))
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"WHIPPET_METADATA=" + strings.Join(roster, ","), "WHIPPET_CLUSTER_SECRET=" + strings.Repeat("another secret ", 3), "WHIPPET_DATA=" + cmd.Dir,
		"WHIPPET_OPS_ADDRESS=" + ops, "IGGY_TCP_ADDRESS=127.0.0.1:0", "IGGY_HTTP_ADDRESS=127.0.0.1:0", "IGGY_QUIC_ENABLED=false", "IGGY_WEBSOCKET_ENABLED=false",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return ops, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
}

// nats is a NATS server without accounts.
type nats struct {
	program, address string
	cmd              *exec.Cmd
}

func startNATS(t *testing.T) *nats {
	t.Helper()
	program, err := process.BuildNATS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &nats{program: program, address: freeAddress(t)}
	n.start(t)
	t.Cleanup(n.kill)
	return n
}

func (n *nats) start(t *testing.T) {
	host, port, _ := strings.Cut(n.address, ":")
	n.cmd = exec.Command(n.program, "--addr", host, "--port", port)
	n.cmd.Dir = os.TempDir()
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (n *nats) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}
