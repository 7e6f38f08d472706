//go:build linux

package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/local"
)

const (
	smallDisk = 256 << 20 // bytes
	leftFree  = 1 << 20   // when it is filled
)

// TestFilled fills the disk of one member. The others take what comes, it says so, and when there is room again it is
// as good as any other. It needs root, to mount a small disk.
func TestFilled(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		p.Env = maps.Clone(shortLogs)
		p.Env["WHIPPET_STORAGE_RESERVE"] = "4 MiB"
		var victim, other local.Member
		c := started(t, p, func(c *local.Cluster) {
			victim, other = holders(c)[1], holders(c)[0]
			mountSmall(t, c.Data(victim))
		})
		l := load(t, c, verify.Options{TopicLimit: 4 << 20})
		l.write(t, 1_000)
		ballast := filepath.Join(c.Data(victim), "ballast")
		fillDisk(t, ballast)
		await(t, "the member says that its disk is full", func() bool { return metric(c, victim, "whippet_disk_low") == 1 })
		l.write(t, 3_000)
		l.check(t)
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		await(t, "the member says that there is room", func() bool { return metric(c, victim, "whippet_disk_low") == 0 })
		l.write(t, 1_000)
		l.whole(t, victim)
		l.alone(t, other)
	})
}

func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDisk)); err != nil {
		t.Skipf("no small disk: a mount needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// fillDisk leaves next to nothing free.
func fillDisk(t *testing.T, ballast string) {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(ballast), &s); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<20)
	for n := int64(s.Bavail)*s.Bsize - leftFree; n > 0; n -= int64(len(b)) {
		if _, err := f.Write(b[:min(n, int64(len(b)))]); err != nil {
			break // it was faster
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
