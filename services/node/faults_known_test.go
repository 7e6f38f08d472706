package node

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestW3KilledNodeLosesNothing: a killed node has every message it acknowledged, however few or small,
// and never gives an offset away again; the next lives go on where it stopped.
func TestW3KilledNodeLosesNothing(t *testing.T) {
	for _, persisted := range []bool{false, true} {
		x := &run{world: newWorld(), mem: birth(t), persisted: persisted}
		x.requests = 1
		x.start()
		x.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
		x.createTopic("t", 1)
		for life := range 20 {
			for i := range 7 {
				x.produce("t", 0, 1+i*life)
			}
			x.commit("t", 0, alice, uint64(life))
			if life%3 == 2 {
				x.produce("t", 0, 150_000)
			}
			if x.broken != nil {
				t.Fatalf("life %d: %v", life, x.broken)
			}
			if life%4 == 3 {
				x.second()
			}
			x.mem.Kill()
			x.start()
			if x.broken != nil {
				t.Fatalf("life %d: %v", life, x.broken)
			}
			if _, err := x.check(x.rig, x.views, false); err != nil {
				t.Fatalf("life %d: %v", life, err)
			}
		}
		if x.acks < 160 {
			t.Fatalf("%d acknowledged", x.acks)
		}
	}
}

// TestW8FlippedBitInASegment: a poll gets what is before the damage, and at the damage a status, not an
// empty success; the partition is fenced, the others go on, log and metric say so, the file is kept.
func TestW8FlippedBitInASegment(t *testing.T) {
	base, x := matrixDisk(t, true)
	var file string
	for _, f := range base.Files() {
		if strings.HasSuffix(f, ".log") && len(base.Read(f)) > 1<<20 {
			file = f
			break
		}
	}
	size := len(base.Read(file))
	for at := 300; at < size; at += size / 40 {
		mem := base.Clone(1)
		mem.Corrupt(file, func(b []byte) []byte { b[at] ^= 16; return b })
		damaged := string(mem.Read(file))
		r := mustBoot(t, mem, nil)
		x.rig = r
		got, err := r.read("a", 0, nil)
		if err == nil || len(got.messages) >= 17 {
			t.Fatalf("bit at %d: %d messages, then %v", at, len(got.messages), err)
		}
		next := uint64(len(got.messages))
		for range 3 { // for ever, not once
			_, a := r.poll("a", 0, alice, wire.Strategy{Kind: wire.StrategyOffset, Value: next}, 10, false)
			if a.status != wire.CodeCannotReadMessage {
				t.Fatalf("bit at %d: a poll at the damage, offset %d: %v", at, next, a)
			}
		}
		if a := r.send(r.group("a", 0), batch([]byte("x"))); a.status != wire.CodeCannotSaveMessagesToSegment {
			t.Fatalf("bit at %d: a send: %v", at, a)
		}
		if !r.logged(path.Base(file)) || r.metric("whippet_partition_fenced_total") != 1 {
			t.Fatalf("bit at %d: not said: %s", at, r.said)
		}
		if a := r.send(r.group("a", 1), batch([]byte("x"))); !a.ok() {
			t.Fatalf("bit at %d: another partition: %v", at, a)
		}
		if string(mem.Read(file)) != damaged {
			t.Fatalf("bit at %d: the file was changed", at)
		}
	}
}

// TestW9TornBatchOrCutIndex: a torn last batch and an index cut anywhere keep no node from starting.
func TestW9TornBatchOrCutIndex(t *testing.T) {
	base, x := matrixDisk(t, false)
	boots := 0
	for _, f := range base.Files() {
		if kindOf(f) != "segment" && kindOf(f) != "index hint" {
			continue
		}
		whole := base.Read(f)
		for _, cut := range []int{1, 10, 24, 100, 255, len(whole) / 2, len(whole)} {
			if cut > len(whole) {
				continue
			}
			mem := base.Clone(1)
			mem.Corrupt(f, func(b []byte) []byte { return b[:len(b)-cut] })
			for life := range 2 { // the second start must be as good as the first
				r := mustBoot(t, mem, nil)
				boots++
				for _, where := range []string{"a", "b", "c"} {
					got, err := r.read(where, 0, nil)
					if err == nil && len(got.messages) != map[string]int{"a": 17, "b": 1, "c": 1}[where] {
						t.Fatalf("%s cut by %d, life %d: silent gap in %s: %d messages", f, cut, life, where, len(got.messages))
					}
					if err != nil && kindOf(f) == "index hint" {
						t.Fatalf("%s cut by %d, life %d: %v", f, cut, life, err)
					}
				}
				mem.Kill()
			}
		}
	}
	// A torn write of the last record is not an error at all.
	x.mem = base
	x.start()
	x.mem.CrashAt(1, false)
	x.produce("c", 0, 60_000)
	x.mem.Restart()
	x.broken = nil
	r := mustBoot(t, x.mem, nil)
	if _, err := x.check(r, x.views, false); err != nil || r.said.Len() > 0 {
		t.Fatalf("torn record: %v\n%s", err, r.said)
	}
	t.Logf("%d starts", boots)
}

// TestCrashDuringFirstStart: a node that never came up starts anew, at every point, by kill and by
// power cut.
func TestCrashDuringFirstStart(t *testing.T) {
	whole := vfs.NewMem(1)
	whole.CrashAt(0, false)
	r := mustBoot(t, whole, nil)
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	points := whole.Calls()
	for _, power := range []bool{false, true} {
		for k := 1; k <= points; k++ {
			mem := vfs.NewMem(uint64(k))
			mem.CrashAt(k, power)
			if r, err := boot(mem, nil); err == nil {
				_ = r.halt()
			}
			mem.Restart()
			x := &run{world: newWorld(), mem: mem}
			x.requests = 1
			x.start()
			x.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
			x.createTopic("t", 1)
			x.produce("t", 0, 10)
			if x.broken != nil || x.rig.metadata.Damaged() != nil {
				t.Fatalf("crash at call %d of %d, power %v: %v\n%s", k, points, power, x.broken, x.rig.said)
			}
			if _, err := x.check(x.rig, x.views, false); err != nil {
				t.Fatalf("crash at call %d of %d, power %v: %v", k, points, power, err)
			}
		}
	}
	t.Logf("%d crash points × kill and power cut", points)
}

// TestFailedSyncEndsTheProcess: after a failed sync nothing is acknowledged, the process asks to end,
// and the next life does not take the log for whole.
func TestFailedSyncEndsTheProcess(t *testing.T) {
	x := &run{world: newWorld(), mem: birth(t), persisted: true}
	x.requests = 1
	x.start()
	x.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	x.createTopic("t", 1)
	x.produce("t", 0, 10)
	if x.broken != nil {
		t.Fatal(x.broken)
	}
	x.mem.SetFault(func(c vfs.Call) vfs.Fault {
		if c.Op == vfs.OpSync && strings.HasPrefix(c.Name, "loops/") {
			return vfs.Fault{Err: syscall.EIO}
		}
		return vfs.Fault{}
	})
	id, _ := x.part("t", 0)
	if a := x.send(id, batch([]byte("lost"))); a.ok() {
		t.Fatal("acknowledged although the sync failed")
	}
	select {
	case err := <-x.fatal:
		if !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	default:
		t.Fatal("the process goes on")
	}
	x.mem.SetFault(nil)
	x.mem.Kill()
	r := mustBoot(t, x.mem, nil)
	if r.evidence.Session.HardEpoch == 0 {
		t.Fatal(fmt.Errorf("the session does not know of the failed sync"))
	}
	f, err := r.read("t", 0, nil)
	if err != nil || len(f.messages) == 0 || string(f.messages[0].payload) != string(payload(1, 10)) {
		t.Fatalf("%v, %d messages", err, len(f.messages))
	}
}
