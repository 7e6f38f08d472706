package cluster

import (
	"bytes"
	"os"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

// TestDamagedWhileRunning flips bits in segments of a running member. Verification in the background finds them, the
// member fetches what is damaged from another one and goes on; nobody has to restart anything.
func TestDamagedWhileRunning(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		p.Env = map[string]string{"WHIPPET_STORAGE_SCRUB_RATE": "64 MiB", "WHIPPET_STORAGE_SCRUB_PAUSE": "1 s"}
		c := start(t, p)
		l := load(t, c, verify.Options{})
		fillKept(t, c)
		victim := holders(c)[0]
		flipped := 0
		await(t, "a closed segment is on its disk", func() bool {
			for name, content := range segmentFiles(t, c.Data(victim)) {
				if len(content) >= segmentSize && bytes.Contains(content, []byte(marker)) {
					flip(t, name, len(content)/2)
					flipped++
				}
			}
			return flipped > 0
		})
		await(t, "all damage was mended", func() bool { return metric(c, victim, "whippet_partition_mended_total") >= float64(flipped) })
		if metric(c, victim, "whippet_partition_fenced_total") < float64(flipped) {
			t.Error("not all damage is counted")
		}
		l.check(t)
		l.identical(t)
	})
}

// flip changes one bit of a file in place.
func flip(t *testing.T, name string, at int) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err = f.ReadAt(b, int64(at)); err == nil {
		b[0] ^= 1
		_, err = f.WriteAt(b, int64(at))
	}
	if closing := f.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
}

const (
	segmentSize = 1 << 20
	marker      = "nothing removes this"
)

// fillKept makes a topic with closed segments that stay.
func fillKept(t *testing.T, c *local.Cluster) {
	t.Helper()
	one := connect(t, c.Process(doors(c)[0]).TCP)
	if _, err := one.CreateStream("kept"); err != nil {
		t.Fatal(err)
	}
	options := wire.AppendOption(nil, wire.OptionSegmentSize, wire.KindString, []byte("1 MiB"))
	if _, err := one.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID("kept"), PartitionsCount: 1, Name: []byte("t"), Options: options}); err != nil {
		t.Fatal(err)
	}
	var b client.Batch
	for i := range uint64(4 * segmentSize / 10_000) {
		b.Reset(1)
		b.Add(wire.U128{Lo: i + 1}, bytes.Repeat([]byte(marker), 10_000/len(marker)), nil)
		if _, err := one.Send(wire.NamedID("kept"), wire.NamedID("t"), wire.Partitioning{Kind: wire.PartitioningPartition}, b.Seal()); err != nil {
			t.Fatal(err)
		}
	}
}
