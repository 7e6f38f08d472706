package operations

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// On a full disk sends are refused with the retryable code, reads, offsets and deletes go on, the
// process lives through a restart, and service resumes when there is space, with nothing lost.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", data, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("no small file system to be had here: %v", err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(dir, "server.log")); err == nil && t.Failed() {
			t.Logf("%s", log[max(0, len(log)-4000):])
		}
	})
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	s := start(t, dir, map[string]string{
		"WHIPPET_JOURNAL_FILE_SIZE": "1 MiB", "WHIPPET_JOURNAL_BUDGET": "16 MiB", "WHIPPET_STORAGE_RESERVE": "2 MiB", "WHIPPET_STORAGE_LOW_WATER": "8 MiB",
		"WHIPPET_STORAGE_TRASH_DELAY": "0", "WHIPPET_LOOPS": "1",
	})
	c := s.connect("iggy", "iggy")
	fill(t, c, 100)
	if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: here, Offset: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("bulk"), PartitionsCount: 1}); err != nil {
		t.Fatal(err)
	}

	bulk := func(c *client.Client) error {
		var batch client.Batch
		batch.Reset(1)
		batch.Add(wire.U128{}, make([]byte, 1<<20), nil)
		_, err := c.Send(stream, wire.NamedID("bulk"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch.Seal())
		return err
	}
	acknowledged := 0
	// A full disk may have given something back since: it is filled up again in every life.
	fillUp := func() {
		t.Helper()
		impatient, err := client.Dial(t.Context(), client.Options{Address: s.Address(), Username: "iggy", Password: "iggy", RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer impatient.Close()
		for ; acknowledged < 200; acknowledged++ {
			if err = bulk(impatient); err != nil {
				break
			}
		}
		if code(err) != wire.CodeTransientNotAccepted || acknowledged < 20 {
			t.Fatalf("after %d MiB: %v, want a refusal that may be repeated", acknowledged, err)
		}
		t.Logf("%d MiB acknowledged", acknowledged)
	}
	full := func(c *client.Client) {
		t.Helper()
		fillUp()
		expect(t, c, 100)
		if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: here, Offset: 20}); err != nil {
			t.Errorf("storing an offset: %v", err)
		}
		eventually(t, "/readyz and the metric say so", func() bool {
			fillUp()
			status, body := s.ops("/readyz")
			_, metrics := s.ops("/metrics")
			return status == 200 && strings.Contains(body, "degraded") && strings.Contains(metrics, "\nwhippet_disk_low 1\n")
		})
	}
	full(c)
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	c = s.connect("iggy", "iggy")
	full(c)
	details, err := c.Topic(stream, wire.NamedID("bulk"))
	if err != nil || details.MessagesCount != uint64(acknowledged) {
		t.Errorf("%d messages after the kill, %v; %d were acknowledged", details.MessagesCount, err, acknowledged)
	}

	if err := c.DeleteTopic(stream, wire.NamedID("bulk")); err != nil {
		t.Fatalf("deleting a topic: %v", err)
	}
	eventually(t, "sends are taken again", func() bool {
		_, err := c.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition}, one())
		return err == nil
	})
	expectFrom(t, c, 100)
	eventually(t, "/readyz has nothing to say", func() bool {
		status, body := s.ops("/readyz")
		return status == 200 && !strings.Contains(body, "degraded")
	})
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func one() []byte {
	var batch client.Batch
	batch.Reset(1)
	batch.Add(wire.U128{}, []byte("more"), nil)
	return batch.Seal()
}

// expectFrom wants the first n messages of fill, whatever follows.
func expectFrom(t *testing.T, c *client.Client, n int) {
	t.Helper()
	polled, err := c.Poll(wire.PollMessagesRequest{
		Consumer: single, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyFirst}, Count: uint32(n),
	})
	if err != nil || polled.MessagesCount != uint32(n) {
		t.Errorf("%d messages, %v; want %d", polled.MessagesCount, err, n)
	}
}
