package observe

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/process"
)

// server is a process that stands alone, on a small disk.
type server struct {
	*process.Server
	t      *testing.T
	p      *prometheus
	backup string // of the data directory
}

// startServer starts one of another version than the clusters of these tests.
func startServer(t *testing.T, p *prometheus) *server {
	t.Helper()
	bin, err := process.Build(t.TempDir(), "-ldflags", "-X github.com/whippet-mq/whippet/libs/service.Version=drill")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", data, "tmpfs", 0, "size=400m"); err != nil {
		t.Skipf("no small file system to be had here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	s := &server{Server: process.New(bin, dir, map[string]string{
		"WHIPPET_JOURNAL_FILE_SIZE": "1 MiB", "WHIPPET_JOURNAL_BUDGET": "64 MiB", "WHIPPET_STORAGE_RESERVE": "2 MiB", "WHIPPET_STORAGE_LOW_WATER": "8 MiB",
		"WHIPPET_STORAGE_TRASH_DELAY": "0", "WHIPPET_LIMITS_MEMORY": "128 MiB", "WHIPPET_LIMITS_LOGINS": "1",
	}), t: t, p: p}
	t.Cleanup(func() { _ = s.Kill() })
	s.up(t)
	one := s.connect(t)
	if _, err := one.CreateStream("first"); err != nil {
		t.Fatal(err)
	}
	if _, err := one.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID("first"), Name: []byte("events"), PartitionsCount: knocking}); err != nil {
		t.Fatal(err)
	}
	if err := s.send(one, 0, 100); err != nil {
		t.Fatal(err)
	}
	return s
}

// up starts the process and has it scraped, as the only one.
func (s *server) up(t *testing.T) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.watched(true)
}

// watched makes the server a target, or takes it away.
func (s *server) watched(yes bool) {
	targets := "[]"
	if yes {
		text, err := os.ReadFile(filepath.Join(s.Data(), "runtime", "current_config.toml"))
		if err != nil {
			s.t.Fatal(err)
		}
		var current struct{ Ops struct{ Address string } }
		if err := toml.Unmarshal(text, &current); err != nil {
			s.t.Fatal(err)
		}
		targets = fmt.Sprintf(`[{"targets": [%q]}]`, current.Ops.Address)
	}
	s.p.write("partition-replica.json", []byte(targets))
}

func (s *server) connect(t *testing.T) *client.Client {
	t.Helper()
	one, err := client.Dial(context.Background(), client.Options{Address: s.Address(), Username: "iggy", Password: "iggy", RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Close)
	return one
}

// send puts a message of so many bytes into a partition.
func (s *server) send(one *client.Client, partition uint32, size int) error {
	var b client.Batch
	b.Reset(1)
	b.Add(wire.U128{Lo: 1}, make([]byte, size), nil)
	_, err := one.Send(wire.NamedID("first"), wire.NamedID("events"), wire.Partitioning{Kind: wire.PartitioningPartition, Partition: partition}, b.Seal())
	return err
}

func (s *server) read(one *client.Client) error {
	polled, err := one.Poll(wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID("first"), Topic: wire.NamedID("events"),
		Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: 10,
	})
	if err != nil {
		return err
	}
	for _, err := range polled.Messages(true) {
		if err != nil {
			return err
		}
	}
	return nil
}

// damaged stops the server, keeps a copy of its data, does harm, and starts it again.
func (s *server) damaged(harm func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		s.backup = filepath.Join(t.TempDir(), "backup")
		if err := os.CopyFS(s.backup, os.DirFS(s.Data())); err != nil {
			t.Fatal(err)
		}
		harm(t)
		s.up(t)
	}
}

// restore puts the copy back.
func (s *server) restore(t *testing.T) {
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(s.Data())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(s.Data(), e.Name()))
	}
	if err := os.CopyFS(s.Data(), os.DirFS(s.backup)); err != nil {
		t.Fatal(err)
	}
	s.up(t)
}

// flip inverts a bit in the first message of the first segment that holds one.
func (s *server) flip(t *testing.T) {
	err := filepath.WalkDir(filepath.Join(s.Data(), "partitions"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".log") {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil || len(b) == 0 {
			return err
		}
		b[len(b)/2] ^= 4
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return err
		}
		return fs.SkipAll
	})
	if err != nil {
		t.Fatal(err)
	}
}

// swap gives the session file another inode, as a copied disk has: whatever was not synced may be lost.
func (s *server) swap(t *testing.T) {
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.Data(), "session")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	s.up(t)
}

// slow is a way to the server on which a mebibyte of each connection passes, and then nothing until cut.
func (s *server) slow(t *testing.T) (address string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", s.Address())
			if err != nil {
				_ = from.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })
			go func() { _, _ = io.Copy(from, to) }()
			go func() { _, _ = io.CopyN(to, from, 1<<20) }()
		}
	}()
	return l.Addr().String(), func() { _ = l.Close(); cancel() }
}

// during does something over and over in several goroutines until stop.
func during(n int, do func(i int)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				do(i)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// drillServer is what happens to disks, data and memory.
func drillServer(t *testing.T) []outcome {
	p := watch(t, shorten)
	for _, job := range []string{"front-door", "metadata-replica"} {
		p.write(job+".json", []byte("[]"))
	}
	s := startServer(t, p)
	stop := func() {}
	end := func(*testing.T) { stop() }
	filler := filepath.Join(s.Data(), "somebody-elses")
	fill := func(share float64) func(*testing.T) {
		return func(t *testing.T) {
			var at syscall.Statfs_t
			if err := syscall.Statfs(s.Data(), &at); err != nil {
				t.Fatal(err)
			}
			free := float64(at.Bavail) * float64(at.Bsize)
			if err := os.WriteFile(filler, make([]byte, int(free-share*float64(at.Blocks)*float64(at.Bsize))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	empty := func(t *testing.T) {
		if err := os.Remove(filler); err != nil {
			t.Error(err)
		}
	}
	return p.exercise(t, []drill{
		{"a disk has a tenth left", []string{"WhippetDiskFilling"}, fill(0.1), empty},
		{"a disk is full", []string{"WhippetDiskLow"}, fill(0.01), empty},
		{"a bit of a segment flips", []string{"WhippetPartitionFenced"}, func(t *testing.T) {
			s.damaged(s.flip)(t)
			if err := s.read(s.connect(t)); err == nil {
				t.Error("the damage was read")
			}
		}, s.restore},
		{"the metadata is gone", []string{"WhippetMetadataDamaged"}, s.damaged(func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(s.Data(), "metadata")); err != nil {
				t.Fatal(err)
			}
		}), s.restore},
		{"power is cut", []string{"WhippetAcceptedLoss"}, s.swap, func(*testing.T) {}},
		{"memory is used up by slow clients", []string{"WhippetOverBudget"}, func(t *testing.T) {
			address, cut := s.slow(t)
			over := during(4, func(int) {
				one, err := client.Dial(t.Context(), client.Options{Address: address, Username: "iggy", Password: "iggy", RetryFor: -1, Timeout: time.Second})
				if err == nil {
					_ = s.send(one, knocking, 50<<20) // no such partition: nothing gets onto the disk
					one.Close()
				}
			})
			stop = func() { cut(); over() }
		}, end},
		{"two thousand log in at once", []string{"WhippetLoginsBusy"}, func(*testing.T) {
			stop = during(2000, func(i int) {
				one, err := client.Dial(context.Background(), client.Options{Address: s.Address(), Username: "iggy", Password: fmt.Sprint("wrong-", i, time.Now().UnixNano()), RetryFor: -1})
				if err == nil {
					one.Close()
				}
			})
		}, end},
		{"a server of another cluster and version is scraped", []string{"WhippetMetadataTwoPrimaries", "WhippetVersionsMixed"}, func(t *testing.T) {
			bin, err := process.Build(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			second := &server{Server: process.New(bin, t.TempDir(), nil), t: t, p: p}
			second.up(t)
			targets, err := os.ReadFile(filepath.Join(p.dir, "partition-replica.json"))
			if err != nil {
				t.Fatal(err)
			}
			p.write("metadata-replica.json", targets)
			s.watched(true)
			stop = func() {
				p.write("metadata-replica.json", []byte("[]"))
				_ = second.Kill()
			}
		}, end},
	})
}
