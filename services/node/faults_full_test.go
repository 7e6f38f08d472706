package node

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// full is a node on a small disk, with its model.
type full struct {
	*run
	t *testing.T
}

// fill sends to a topic until it is refused for lack of space, then checks that everything but sends
// still works.
func (f *full) fill(topic string) {
	f.t.Helper()
	refused := 0
	for i := 0; refused < 5; i++ {
		if i > 2000 {
			f.t.Fatal("the disk does not fill up")
		}
		size := []int{200_000, 60_000, 900, 1}[i%4]
		id, p := f.part(topic, 0)
		b, e := f.messages(size)
		switch a := f.send(id, b); {
		case a.ok():
			p.past = append(p.past, e)
			p.acked = len(p.past)
		case a.status == wire.CodeTransientNotAccepted:
			refused++
		case a.status == wire.CodeTransientNotCommitted:
			f.t.Fatalf("send on a full disk: the outcome is open: %v", a)
		default:
			f.t.Fatalf("send on a full disk: %v", a)
		}
	}
	f.works()
}

// works is what a full disk must not prevent.
func (f *full) works() {
	f.t.Helper()
	f.complete()
	for range 10 {
		f.commit("keep", 0, alice, 2)
		f.commit("fsync", 0, bob, 1)
	}
	f.forget("keep", 0, alice)
	f.commit("keep", 0, alice, 1)
	if a := f.register(); !a.ok() {
		f.t.Fatalf("login on a full disk: %v", a)
	}
	f.requests = f.rig.asked
	if f.broken != nil {
		f.t.Fatalf("on a full disk: %v", f.broken)
	}
	f.alive()
}

func (f *full) alive() {
	f.t.Helper()
	select {
	case err := <-f.fatal:
		f.t.Fatalf("the process would have ended: %v", err)
	default:
	}
}

// complete compares every partition with the model.
func (f *full) complete() {
	f.t.Helper()
	v := f.metadata.View()
	for _, s := range v.Streams() {
		for _, t := range s.Topics() {
			for _, p := range t.AllPartitions() {
				if _, err := f.checkPart(f.rig, t.GroupID(&p), t.Name, p.ID, p.PurgeGeneration, p.TrimTo, false); err != nil {
					f.t.Fatal(err)
				}
			}
		}
	}
}

// resumes waits until sends are taken again, a good deal of them.
func (f *full) resumes(topic string) {
	f.t.Helper()
	start := time.Now()
	for taken := 0; ; {
		id, p := f.part(topic, 0)
		b, e := f.messages(100_000)
		a := f.send(id, b)
		if a.ok() {
			p.past = append(p.past, e)
			p.acked = len(p.past)
			if taken++; taken < 15 {
				continue
			}
			f.t.Logf("sends are taken again after %v", time.Since(start).Round(10*time.Millisecond))
			return
		}
		if a.status != wire.CodeTransientNotAccepted || time.Since(start) > 20*time.Second {
			f.t.Fatalf("service does not resume: %v\n%s", a, f.said)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func smallNode(c *service.Config) {
	c.Journal.FileSize, c.Journal.Budget = 1<<20, 16<<20
	c.Storage.Reserve, c.Storage.LowWater = 1<<20, 1<<30
	c.Limits.Memory = 128 << 20
	c.Node.Loops = 1
}

// fullDisk runs a node on a small disk into the wall again and again. restart ends the node and
// returns the file system for the next life.
func fullDisk(t *testing.T, fs vfs.FS, restart func(r *rig) vfs.FS) {
	f := &full{&run{world: newWorld(), mem: vfs.NewMem(1)}, t}
	start := func(fs vfs.FS) {
		r, err := bootOn(fs, smallNode, false)
		if err != nil {
			t.Fatalf("boot: %v", err)
		}
		r.asked = f.requests + 1
		f.rig = r
		a := r.register()
		f.metadataDone("register", a)
		if !a.ok() {
			t.Fatalf("login: %v\n%s", a, r.said)
		}
	}
	start(fs)
	f.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	f.createTopic("keep", 1)
	f.createTopic("t", 1)
	f.createTopic("u", 1)
	f.persisted = true
	f.createTopic("fsync", 1)
	f.produce("keep", 0, 10, 20, 30)
	f.produce("fsync", 0, 10, 70_000)
	f.fill("t")
	f.trim("t", 0, 8)
	f.resumes("t")
	f.fill("fsync")
	f.do("purge", wire.OpPurgeTopic, topicTarget("t"))
	f.resumes("keep")
	f.fill("u")
	fs = restart(f.rig)
	start(fs)
	f.works()
	f.do("delete topic", wire.OpDeleteTopic, topicTarget("u"))
	f.resumes("keep")
	f.fill("t")
	f.do("purge stream", wire.OpPurgeStream, wire.StreamTarget{Stream: wire.NamedID("s")}.Append(nil))
	f.resumes("keep")
	f.alive()
	if f.broken != nil {
		t.Fatal(f.broken)
	}
	if err := f.halt(); err != nil {
		t.Fatalf("stop: %v", err)
	}
}

// TestFullDisk: a full disk refuses sends with the retryable status and nothing else; what frees
// space works, and frees it; a kill in that state loses nothing.
func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem(1)
	mem.SetCapacity(40 << 20)
	fullDisk(t, mem.Mount(), func(*rig) vfs.FS {
		mem.Kill()
		return mem.Mount()
	})
}

// TestFullSmallFileSystem is TestFullDisk on a real file system.
func TestFullSmallFileSystem(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	path := dir + "/data"
	if err := os.Mkdir(path, 0o750); err != nil {
		t.Fatal(err)
	}
	fullDisk(t, vfs.NewOS(path), func(r *rig) vfs.FS {
		if err := r.halt(); err != nil {
			t.Fatalf("stop on a full disk: %v", err)
		}
		return vfs.NewOS(path)
	})
}

// TestBootWithoutSpace: a start on a disk without a single free block loses nothing.
func TestBootWithoutSpace(t *testing.T) {
	for _, clean := range []bool{true, false} {
		base, x := matrixDisk(t, clean)
		for _, spare := range []int64{0, 1, 3, 20, 200} {
			mem := base.Clone(1)
			mem.SetCapacity(mem.Allocated() + spare*4096)
			what := fmt.Sprintf("clean %v, %d free blocks", clean, spare)
			r, err := boot(mem, nil)
			if err == nil {
				if _, err := x.check(r, x.views, false); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			} else {
				t.Logf("%s: %v", what, err)
			}
			mem.Kill()
			mem.SetCapacity(0)
			r = mustBoot(t, mem, nil)
			if _, err := x.check(r, x.views, false); err != nil {
				t.Errorf("%s, then space: %v", what, err)
			}
		}
	}
}

// TestCheckpointOnAFullDisk: with no free block left a purge still frees its space, because the
// checkpoint it waits for may use the reserve.
func TestCheckpointOnAFullDisk(t *testing.T) {
	x := &run{world: newWorld(), mem: birth(t)}
	x.requests = 1
	x.start()
	x.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	x.createTopic("t", 1)
	for range 10 {
		x.produce("t", 0, 200_000)
	}
	x.produce("t", 0, 20_000)
	x.mem.SetCapacity(x.mem.Allocated())
	x.do("purge", wire.OpPurgeTopic, topicTarget("t"))
	x.checkpoint()
	x.steps(20)
	if x.broken != nil {
		t.Fatalf("%v\n%s", x.broken, x.said)
	}
	for _, f := range x.mem.Files() {
		if kindOf(f) == "segment" && !strings.HasPrefix(f, "trash/") {
			t.Fatalf("%s still waits for a checkpoint\n%s", f, x.said)
		}
	}
}
