package compare

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/bench"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/process"
)

// Footprint says what is measured without load: an idle server, and one that starts.
type Footprint struct {
	Server     string // program
	Dir        string // where data goes, "" for the temporary directory
	Idle       int    // empty partitions of the idle server
	Watch      time.Duration
	Messages   int64 // stored before the restarts
	Partitions int   // they are spread over
	Size       int   // bytes of each payload
}

// topicPartitions is how many partitions one topic of an idle server gets.
const topicPartitions = 100

// Run measures and prints.
func (f *Footprint) Run(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp(f.Dir, "whippet-footprint-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := f.idle(ctx, w, dir+"/idle"); err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	if err := f.boot(ctx, w, dir+"/boot"); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	return nil
}

func (f *Footprint) start(dir string) (*process.Server, error) {
	s := process.New(f.Server, dir, map[string]string{"WHIPPET_LOG_LEVEL": "warn"})
	return s, s.Start()
}

func login(ctx context.Context, s *process.Server) (*client.Client, error) {
	return client.Dial(ctx, credentials(s.Address()))
}

func credentials(address string) client.Options {
	return client.Options{Address: address, Username: "iggy", Password: "iggy"}
}

func (f *Footprint) idle(ctx context.Context, w io.Writer, dir string) error {
	s, err := f.start(dir)
	if err != nil {
		return err
	}
	defer func() { _ = s.Kill() }()
	c, err := login(ctx, s)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.CreateStream("idle"); err != nil {
		return err
	}
	for made := 0; made < f.Idle; made += topicPartitions {
		q := wire.CreateTopicRequest{
			Stream: wire.NamedID("idle"), Name: fmt.Append(nil, "topic-", made), PartitionsCount: uint32(min(topicPartitions, f.Idle-made)),
		}
		if _, err := c.CreateTopic(q); err != nil {
			return err
		}
	}
	time.Sleep(f.Watch / 2) // what the creates left to do ends
	before, err := cpuTime(s.Pid())
	if err != nil {
		return err
	}
	time.Sleep(f.Watch)
	after, err := cpuTime(s.Pid())
	if err != nil {
		return err
	}
	memory, err := residentMemory(s.Pid())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "idle, %d empty partitions: %.2f %% of a core, %.0f MB resident\n",
		f.Idle, 100*(after-before).Seconds()/f.Watch.Seconds(), float64(memory)/1e6)
	return err
}

func (f *Footprint) boot(ctx context.Context, w io.Writer, dir string) error {
	s, err := f.start(dir)
	if err != nil {
		return err
	}
	defer func() { _ = s.Kill() }()
	const batch = 1000
	_, err = bench.Run(ctx, bench.Workload{
		Connect: credentials(s.Address()), Keep: true, Producers: min(8, f.Partitions), Partitions: f.Partitions, Batch: batch, Size: f.Size,
		Count: batch, Preload: f.Messages,
	})
	if err != nil {
		return err
	}
	for _, end := range []struct {
		how string
		do  func() error
	}{{"an orderly stop", s.Stop}, {"SIGKILL", s.Kill}} {
		if err := end.do(); err != nil {
			return err
		}
		started := time.Now()
		if err := s.Start(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "boot after %s, %d messages in %d partitions: %.2f s until clients are served\n",
			end.how, f.Messages, f.Partitions, time.Since(started).Seconds()); err != nil {
			return err
		}
	}
	return nil
}

// residentMemory returns the bytes of RAM a process holds.
func residentMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm says %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
