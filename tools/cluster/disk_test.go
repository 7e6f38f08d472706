package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/local"
)

// shortLogs makes the logs forget soon, so that who was away needs the states of others.
var shortLogs = map[string]string{"WHIPPET_JOURNAL_BUDGET": "24 MiB", "WHIPPET_JOURNAL_FILE_SIZE": "4 MiB"}

// TestAbsent keeps a replica of messages away until the logs of the others no longer reach back to what it
// lacks. It comes back, fetches what it needs, and is as good as any other.
func TestAbsent(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		p.Env = shortLogs
		c := start(t, p)
		l := load(t, c, verify.Options{})
		hosts := holders(c)
		away, other := hosts[2], hosts[0]
		if err := c.Kill(away); err != nil {
			t.Fatal(err)
		}
		l.write(t, 20_000)
		again(t, c, away)
		await(t, "a state was fetched", func() bool { return metric(c, away, "whippet_transfers_total") > 0 })
		l.whole(t, away)
		l.alone(t, other)
	})
}

// TestWiped empties the disk of a member of the metadata group, with its votes and its identity. It never
// speaks for what it does not have, and becomes whole by itself.
func TestWiped(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		p.Env = shortLogs
		c := start(t, p)
		l := load(t, c, verify.Options{})
		l.write(t, 2_000)
		keepers := keepers(c)
		wiped, other := keepers[1], keepers[0]
		if err := c.Kill(wiped); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(c.Data(wiped)); err != nil {
			t.Fatal(err)
		}
		again(t, c, wiped)
		l.write(t, 2_000)
		l.whole(t, wiped)
		l.alone(t, other)
	})
}

// whole waits until a member votes in every group it has. Groups come and go with the load's short-lived
// streams, so it looks for a moment in which none is left out.
func (l *loaded) whole(t *testing.T, m local.Member) {
	t.Helper()
	if m.Role == local.Metadata {
		return
	}
	await(t, "all partitions take part", func() bool {
		return metric(l.cluster, m, "whippet_partitions_hosted") > 0 && metric(l.cluster, m, "whippet_partitions_unsettled") == 0
	})
}

// TestOlderCopy puts an earlier copy of its disk under a member: it must not speak for what it has
// forgotten.
func TestOlderCopy(t *testing.T) {
	forms(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		l := load(t, c, verify.Options{})
		l.write(t, 1_000)
		hosts := holders(c)
		old, other := hosts[1], hosts[0]
		if err := c.Kill(old); err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(c.Data(old))); err != nil {
			t.Fatal(err)
		}
		again(t, c, old)
		l.write(t, 2_000)
		if err := c.Kill(old); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(c.Data(old)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(copied, c.Data(old)); err != nil {
			t.Fatal(err)
		}
		again(t, c, old)
		l.whole(t, old)
		l.alone(t, other)
	})
}

// identical stops the cluster and compares what its members have of each partition, byte by byte. One that
// had not heard of the last commits when it was stopped has a shorter file: it gets another chance to.
func (l *loaded) identical(t *testing.T) {
	t.Helper()
	defer l.recorder.Still()()
	for chances := 3; ; chances-- {
		for _, m := range holders(l.cluster) {
			await(t, "every partition takes part", func() bool { return metric(l.cluster, m, "whippet_partitions_unsettled") == 0 })
		}
		if err := l.cluster.Down(); err != nil {
			t.Fatal(err)
		}
		compared, behind, wrong := l.differences(t)
		switch {
		case len(wrong) > 0:
			t.Errorf("%d of %d segment files differ, such as %s", len(wrong), compared, wrong[0])
		case compared == 0:
			t.Error("no segment is there twice: the test tests nothing")
		case len(behind) > 0 && chances > 0:
			up(t, l.cluster)
			continue
		case len(behind) > 0:
			t.Errorf("%d of %d segment files stay behind, such as %s", len(behind), compared, behind[0])
		}
		t.Logf("%d segment files compared", compared)
		return
	}
}

// differences compares the files of all members: behind are those of which one is the beginning of the
// other.
func (l *loaded) differences(t *testing.T) (compared int, behind, wrong []string) {
	t.Helper()
	seen, first := map[string][]byte{}, map[string]local.Member{}
	for _, m := range holders(l.cluster) {
		for name, content := range segments(t, l.cluster.Data(m)) {
			before, ok := seen[name]
			if !ok {
				seen[name], first[name] = content, m
				continue
			}
			compared++
			n := min(len(before), len(content))
			what := fmt.Sprintf("%s: %d bytes at %s %d, %d bytes at %s %d", name,
				len(before), first[name].Role, first[name].ID, len(content), m.Role, m.ID)
			switch {
			case !bytes.Equal(before[:n], content[:n]):
				wrong = append(wrong, what)
			case len(before) != len(content):
				behind = append(behind, what)
			}
		}
	}
	return compared, behind, wrong
}

// segments are the segment files below a data directory, by partition, generation and base offset. The number of a
// partition's directory says only how often its state was installed.
func segments(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for path, content := range segmentFiles(t, dir) {
		generation := filepath.Dir(path)
		partition, _, _ := strings.Cut(filepath.Base(filepath.Dir(generation)), ".")
		all[filepath.Join(partition, filepath.Base(generation), filepath.Base(path))] = content
	}
	return all
}

// segmentFiles reads the segment files below a data directory, by path. Files may go meanwhile.
func segmentFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || d.IsDir() || filepath.Ext(path) != ".log" || strings.Contains(path, "/trash/"):
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all[path] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// alone takes another member away: the one that came back is needed for every quorum now. Whatever is
// written then, and all from before, is there.
func (l *loaded) alone(t *testing.T, other local.Member) {
	t.Helper()
	if err := l.cluster.Kill(other); err != nil {
		t.Fatal(err)
	}
	l.write(t, 1_000)
	again(t, l.cluster, other)
	l.check(t)
	l.identical(t)
}

// write lets the load run until so many more messages were acknowledged.
func (l *loaded) write(t *testing.T, messages int64) {
	t.Helper()
	target := l.ledger.Model.Acknowledged() + messages
	await(t, fmt.Sprintf("%d messages were acknowledged", messages), func() bool { return l.ledger.Model.Acknowledged() >= target })
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*readyTime)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("not seen: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// holders host messages, keepers the metadata.
func holders(c *local.Cluster) []local.Member { return having(c, local.Partition) }
func keepers(c *local.Cluster) []local.Member { return having(c, local.Metadata) }

func having(c *local.Cluster, role local.Role) (all []local.Member) {
	for _, m := range c.Members {
		if m.Role == role || m.Role == local.AllRole {
			all = append(all, m)
		}
	}
	return all
}

// metric is the value of a series without labels at a member, 0 when it is not there.
func metric(c *local.Cluster, m local.Member, name string) float64 {
	client := http.Client{Timeout: time.Second}
	r, err := client.Get("http://" + c.Process(m).Ops + "/metrics")
	if err != nil {
		return 0
	}
	defer func() { _ = r.Body.Close() }()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, _ := strconv.ParseFloat(text, 64)
			return v
		}
	}
	return 0
}
