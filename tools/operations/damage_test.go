package operations

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// files returns the regular files below dir that end so, by path, and fails where there are none.
func files(t *testing.T, dir, suffix string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("no file *%s below %s: %v", suffix, dir, err)
	}
	return found
}

// flip inverts one bit in the middle of what a file really holds: zeros at its end do not count.
func flip(t *testing.T, name string, part float64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	end := len(strings.TrimRight(string(b), "\x00"))
	if end == 0 {
		t.Skipf("%s is empty", name)
	}
	b[int(float64(end-1)*part)] ^= 4
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// two makes topics "events" and "other" with 200 messages each.
func two(t *testing.T, c *client.Client) {
	t.Helper()
	fill(t, c, 200)
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("other"), PartitionsCount: 1}); err != nil {
		t.Fatal(err)
	}
	var batch client.Batch
	batch.Reset(1)
	for range 200 {
		batch.Add(wire.U128{}, []byte("other"), nil)
	}
	if _, err := c.Send(stream, wire.NamedID("other"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch.Seal()); err != nil {
		t.Fatal(err)
	}
}

// walk consumes a topic of 200 messages from the start. It returns how many came, in order and
// intact, before an error; an empty answer before the end is the gap that nobody may see.
func walk(t *testing.T, c *client.Client, name string) (int, error) {
	t.Helper()
	seen := 0
	for seen < 200 {
		polled, err := c.Poll(wire.PollMessagesRequest{
			Consumer: single, Stream: stream, Topic: wire.NamedID(name), Partition: wire.SelectPartition(0),
			Strategy: wire.Strategy{Kind: wire.StrategyOffset, Value: uint64(seen)}, Count: 30,
		})
		if err != nil {
			return seen, err
		}
		before := seen
		for m, err := range polled.Messages(true) {
			if err != nil || m.Offset != uint64(seen) || name == "events" && string(m.Payload) != fmt.Sprint(seen) {
				t.Fatalf("%s: offset %d payload %q error %v, want offset %d", name, m.Offset, m.Payload, err, seen)
			}
			seen++
		}
		if seen == before {
			t.Fatalf("%s: an empty answer at offset %d, with success", name, seen)
		}
	}
	return seen, nil
}

// One flipped bit in a segment: the server starts, serves everything else, and says at the damaged
// place that it is damaged.
func TestFlippedBitInSegment(t *testing.T) {
	for _, part := range []float64{0, 0.1, 0.5, 0.9, 1} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			s := start(t, t.TempDir(), nil)
			c := s.connect("iggy", "iggy")
			two(t, c)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			damaged := files(t, filepath.Join(s.Data(), "partitions"), ".log")[0]
			flip(t, damaged, part)
			bytes, err := os.ReadFile(damaged)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			c = s.connect("iggy", "iggy")
			if n, err := walk(t, c, "events"); err == nil {
				t.Errorf("%d messages and no word of the damage", n)
			}
			if n, err := walk(t, c, "other"); err != nil {
				t.Errorf("the other topic stops at %d: %v", n, err)
			}
			var batch client.Batch
			batch.Reset(1)
			batch.Add(wire.U128{}, []byte("more"), nil)
			if _, err := c.Send(stream, wire.NamedID("other"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch.Seal()); err != nil {
				t.Errorf("sending to the other topic: %v", err)
			}
			_, metrics := s.ops("/metrics")
			contains(t, metrics, "\nwhippet_partition_fenced_total 1\n")
			log, _ := os.ReadFile(s.Log())
			contains(t, string(log), "[ERROR]", "damaged")
			kept := false
			for _, name := range files(t, s.Data(), "") {
				now, err := os.ReadFile(name)
				kept = kept || err == nil && string(now) == string(bytes)
			}
			if !kept {
				t.Error("the damaged file is not kept")
			}
		})
	}
}

// Indexes that are cut, wrong or gone cost nothing.
func TestDamagedIndexes(t *testing.T) {
	for what, harm := range map[string]func(name string) error{
		"cut":     func(name string) error { return os.Truncate(name, 10) },
		"emptied": func(name string) error { return os.Truncate(name, 0) },
		"gone":    os.Remove,
		"other":   func(name string) error { return os.WriteFile(name, []byte(strings.Repeat("index", 100)), 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			s := start(t, t.TempDir(), nil)
			two(t, s.connect("iggy", "iggy"))
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			harmed := 0
			err := filepath.WalkDir(filepath.Join(s.Data(), "partitions"), func(name string, entry fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(name, ".index") {
					return err
				}
				harmed++
				return harm(name)
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d indexes harmed", harmed)
			for range 2 { // the second start must not trip over what the first left
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
				c := s.connect("iggy", "iggy")
				for _, name := range []string{"events", "other"} {
					if n, err := walk(t, c, name); err != nil {
						t.Errorf("%s stops at %d: %v", name, n, err)
					}
				}
				if err := s.Stop(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// One flipped bit in any file of the journals: the server starts, and either nothing is missing or
// it says so; what it serves is right.
func TestFlippedBitInJournals(t *testing.T) {
	for _, kill := range []bool{false, true} {
		for _, part := range []float64{0.3, 0.8} {
			for index := range 4 {
				t.Run(fmt.Sprintf("kill=%v part=%v file=%d", kill, part, index), func(t *testing.T) {
					s := start(t, t.TempDir(), nil)
					two(t, s.connect("iggy", "iggy"))
					end := s.Stop
					if kill {
						end = s.Kill
					}
					if err := end(); err != nil {
						t.Fatal(err)
					}
					names := journalFiles(t, s)
					if index >= len(names) {
						t.Skipf("%d files", len(names))
					}
					flip(t, names[index], part)
					if err := s.Start(); err != nil {
						t.Fatal(err)
					}
					c := s.connect("iggy", "iggy")
					log, err := os.ReadFile(s.Log())
					if err != nil {
						t.Fatal(err)
					}
					said := strings.Contains(string(log), "[ERROR]")
					for _, topic := range []string{"events", "other"} {
						if n, err := walk(t, c, topic); err != nil && !said {
							t.Errorf("%s: %s stops at %d, %v, and the log has no word of it:\n%s", names[index], topic, n, err, log)
						}
					}
				})
			}
		}
	}
}

// journalFiles are the files that hold metadata and messages outside of segments.
func journalFiles(t *testing.T, s server) []string {
	t.Helper()
	var names []string
	for _, dir := range []string{"metadata", "loops"} {
		for _, name := range files(t, filepath.Join(s.Data(), dir), "") {
			if !strings.HasPrefix(filepath.Base(name), "spare-") {
				names = append(names, name)
			}
		}
	}
	return names
}
