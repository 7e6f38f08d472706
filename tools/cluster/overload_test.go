package cluster

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var overload = flag.Int("overload", 200, "TestOverload: connections that send a batch of 1 MiB at once")

const (
	overloadSize  = 1 << 20
	overloadLimit = 30 * time.Second // how long an answer may take in a test: on a quiet machine it is a second
)

// TestOverload sends one large batch on each of many connections to one partition at once. Each is taken or
// refused with word to try again; what was taken is stored and nothing else is; no process grows beyond its
// budget, and nobody is deposed.
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
	floor := bareRead(t, *overload)
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
	before, used := memory(t, c), usages(t, c)
	all := sendAtOnce(clients)
	cost := roleCPU(used, usages(t, c))
	taken := all.check(t)
	t.Logf("%d batches of 1 MiB at once: %d taken, %d refused; late by up to %v", len(clients), taken, len(clients)-taken, h.longest())
	t.Logf("from the begin of its write half were answered after %s", spread(all.answered))
	t.Logf("from the last byte of it                      after %s", spread(all.waited))
	t.Logf("bare reading of as much took %v: the last answer after %.1f times that; CPU: %s", floor.Round(time.Millisecond),
		slices.Max(all.answered).Seconds()/floor.Seconds(), cost)
	if taken == 0 {
		t.Error("nothing was taken")
	}
	if last := slices.Max(all.answered); last > overloadLimit {
		t.Errorf("the last answer took %v", last)
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
	if stored := countLarge(t, admin); stored != taken {
		t.Errorf("%d batches are stored, %d were taken", stored, taken)
	}
}

// burst is what became of batches that were sent at once.
type burst struct {
	at       []uint64 // offset of what was taken
	errs     []error
	answered []time.Duration // since the begin of the write
	waited   []time.Duration // since its end
}

// sendAtOnce has every client send one batch; they share its bytes.
func sendAtOnce(clients []*client.Client) *burst {
	var b client.Batch
	b.Reset(1)
	b.Add(wire.U128{Lo: 1}, make([]byte, overloadSize), nil)
	batch := b.Seal()
	n := len(clients)
	r := &burst{make([]uint64, n), make([]error, n), make([]time.Duration, n), make([]time.Duration, n)}
	var all sync.WaitGroup
	for i, one := range clients {
		all.Go(func() {
			begun := time.Now()
			at, err := one.Send(wire.NamedID("s"), wire.NamedID("t"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch)
			end := time.Now()
			r.at[i], r.errs[i], r.answered[i], r.waited[i] = at.BaseOffset, err, end.Sub(begun), end.Sub(one.Written())
		})
	}
	all.Wait()
	return r
}

// check wants an answer to each, and offsets that follow each other, and returns how many were taken.
func (r *burst) check(t *testing.T) int {
	var offsets []uint64
	for i, err := range r.errs {
		var code wire.Code
		switch {
		case err == nil:
			offsets = append(offsets, r.at[i])
		case !errors.As(err, &code) || code != wire.CodeTransientNotAccepted:
			t.Errorf("connection %d: %v after %v", i, err, r.answered[i])
		}
	}
	slices.Sort(offsets)
	for i, at := range offsets {
		if at != uint64(i) {
			t.Fatalf("the %d batches taken are at the offsets %v", len(offsets), offsets)
		}
	}
	return len(offsets)
}

func spread(took []time.Duration) string {
	slices.Sort(took)
	n := len(took)
	ms := func(i int) time.Duration { return took[i].Round(time.Millisecond) }
	return fmt.Sprintf("%v, 99 %% after %v, the last after %v", ms(n/2), ms(min(n-1, n*99/100)), ms(n-1))
}

// countLarge reads the partition and returns how many messages it holds. Every byte is verified.
func countLarge(t *testing.T, c *client.Client) (n int) {
	t.Helper()
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"),
		Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: 8,
	}
	for {
		q.Strategy.Value = uint64(n)
		polled, err := c.Poll(q)
		if err != nil {
			t.Fatal(err)
		}
		if polled.MessagesCount == 0 {
			return n
		}
		for m, err := range polled.Messages(true) {
			if err != nil || m.Offset != uint64(n) || len(m.Payload) != overloadSize {
				t.Fatalf("message %d: offset %d, %d bytes, %v", n, m.Offset, len(m.Payload), err)
			}
			n++
		}
	}
}

// floorVariable makes this program a process that reads what comes and answers each 1 MiB with a byte.
const floorVariable = "CLUSTER_TEST_FLOOR"

// bareRead is the time in which that process answers as many connections at once: what the machine takes to
// bring the bytes across.
func bareRead(t *testing.T, conns int) time.Duration {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), floorVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	all := make([]net.Conn, conns)
	for i := range all {
		if all[i], err = net.Dial("tcp", lines.Text()); err != nil {
			t.Fatal(err)
		}
		defer all[i].Close()
	}
	batch := make([]byte, overloadSize)
	var done sync.WaitGroup
	begun := time.Now()
	for _, conn := range all {
		done.Go(func() {
			if _, err := conn.Write(batch); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	return time.Since(begun)
}

// bareReader is that other process.
func bareReader() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			b := make([]byte, 64<<10)
			for left := overloadSize; left > 0; {
				n, err := conn.Read(b)
				if err != nil {
					return
				}
				left -= n
			}
			_, _ = conn.Write(b[:1]) // its client says what is wrong
		}()
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
