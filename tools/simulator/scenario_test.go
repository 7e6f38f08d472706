package simulator

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// scenario is a cluster without faults of its own; the test brings them.
type scenario struct {
	*World
	t *testing.T
}

const (
	metadata  = 0 // group index
	partition = 1
)

// stage starts a cluster whose partition is led by node 0 and runs it for a second.
func stage(t *testing.T, nodes int) *scenario {
	t.Helper()
	members := make([]int, nodes)
	for i := range members {
		members[i] = i
	}
	s := &scenario{t: t}
	defer s.report()
	s.World = newWorld(Config{
		Options: Options{Seed: 1, Profile: Liveness, Nodes: nodes},
		Groups: []GroupConfig{
			{ID: wire.MetadataGroup, Members: members, Policy: vsr.Policy{SealBody: true, Incarnation: true, Synced: true}},
			{ID: wire.GroupID(1, 1, 1, 0), Members: members},
		},
		Clients: 4, Think: 5 * millisecond, Reads: 0.2, Delay: 300, Write: 100, Sync: 1000, Restart: 100 * millisecond,
	}, nil)
	s.run(second)
	if s.answered < 100 {
		t.Fatalf("%d answers in the first second", s.answered)
	}
	return s
}

// report turns a broken rule into a failed test.
func (s *scenario) report() {
	if v, ok := recover().(*Violation); ok {
		s.t.Helper()
		s.t.Fatal(v)
	}
}

// run lets time pass; no rule may break.
func (s *scenario) run(duration uint64) {
	s.t.Helper()
	defer s.report()
	s.runUntil(s.now+duration, nil)
}

// within waits for a condition and returns how long it took.
func (s *scenario) within(limit uint64, what string, condition func() bool) uint64 {
	s.t.Helper()
	defer s.report()
	start := s.now
	if !s.runUntil(start+limit, condition) {
		s.t.Fatalf("not within %d ms: %s", limit/millisecond, what)
	}
	return s.now - start
}

// settle ends the work of the clients and waits until all members are equal and at rest.
func (s *scenario) settle() {
	s.t.Helper()
	defer s.report()
	s.converge()
}

func (s *scenario) view(group int) uint32 { return s.views()[group] }

func (s *scenario) leader(group int) *node {
	if m := s.history[group].primary(); m != nil {
		return m.n
	}
	return nil
}

func (s *scenario) bothLed() bool { return s.leader(metadata) != nil && s.leader(partition) != nil }

// A dead primary is replaced in about half a second (L1, design 1.4).
func TestPrimaryDies(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		s := stage(t, nodes)
		s.nodes[0].end(killed)
		took := s.within(1200*millisecond, "a new primary in both groups", s.bothLed)
		answered := s.answered
		s.within(200*millisecond, "answers from it", func() bool { return s.answered > answered+10 })
		t.Logf("%d nodes: %d ms without a primary", nodes, took/millisecond)
		s.run(2 * second)
		s.nodes[0].boot()
		s.settle()
	}
}

// A backup that dies and comes back, after a moment or late, deposes nobody and delays nothing (L7, L12).
func TestBackupRestarts(t *testing.T) {
	for _, away := range []uint64{30 * millisecond, 3 * second} {
		s := stage(t, 3)
		s.nodes[2].end(killed)
		before := s.answered
		s.run(away)
		if rate := (s.answered - before) * second / away; rate < 200 {
			t.Errorf("%d answers a second with a dead backup", rate)
		}
		s.nodes[2].boot()
		s.run(2 * second)
		if s.view(metadata) != 0 || s.view(partition) != 0 {
			t.Fatalf("views %v after the restart of a backup", s.views())
		}
		s.settle()
	}
}

// A primary that restarts at once has lost its view; the others do not wait for its death (L7, rule D12).
func TestPrimaryRestarts(t *testing.T) {
	s := stage(t, 3)
	s.nodes[0].end(killed)
	s.run(20 * millisecond)
	s.nodes[0].boot()
	s.within(1200*millisecond, "another view in both groups", func() bool { return s.view(metadata) > 0 && s.view(partition) > 0 && s.bothLed() })
	s.settle()
}

// A primary that is cut off stops serving before the others can replace it, and joins them afterwards
// without another view change, whatever it had minted alone (L6, L13, scenario 63a).
func TestPrimaryIsCutOff(t *testing.T) {
	s := stage(t, 3)
	old := s.nodes[0].members[partition]
	s.network.part(1, false, 3*second)
	s.within(460*millisecond, "the old primary stops", func() bool { return !old.mayServe(false) && !s.nodes[0].members[metadata].mayServe(true) })
	if s.view(partition) != 0 {
		t.Fatal("a new view before the old primary stopped")
	}
	s.within(1200*millisecond, "a primary among the others", func() bool { return s.bothLed() && s.leader(partition) != s.nodes[0] })
	s.run(3 * second)
	views := s.views()
	s.settle()
	if after := s.views(); after[0] != views[0] || after[1] != views[1] {
		t.Fatalf("views %v became %v when the old primary returned", views, after)
	}
}

// A backup that missed the last ops catches up without new traffic and without a view change (L4).
func TestBackupMissesTheEnd(t *testing.T) {
	s := stage(t, 3)
	s.network.cut(0, 2, 200*millisecond)
	s.run(100 * millisecond)
	for _, c := range s.clients {
		c.stopped = true
	}
	behind := s.nodes[2].members[partition]
	if head := s.nodes[0].members[partition].log.head(); behind.log.head() >= head {
		t.Fatal("the backup missed nothing")
	}
	s.within(2*second, "the backup has everything", func() bool {
		return behind.state.op == s.nodes[0].members[partition].log.head() && s.settled()
	})
	if s.view(partition) != 0 {
		t.Fatal("the view changed")
	}
	s.settle()
}

// Everything is killed at once: nothing is lost, and service is back in two seconds (L10).
func TestAllAreKilled(t *testing.T) {
	for _, power := range []bool{false, true} {
		s := stage(t, 3)
		committed := len(s.history[partition].ops)
		for _, n := range s.nodes {
			if how := killed; power {
				n.end(unpowered)
			} else {
				n.end(how)
			}
		}
		for _, n := range s.nodes {
			n.boot()
		}
		took := s.within(2*second, "a primary in both groups", s.bothLed)
		t.Logf("power cut %v: %d ms, %v", power, took/millisecond, s.counts["loss accepted"])
		if !power && len(s.history[partition].ops) < committed {
			t.Error("kills lost something")
		}
		s.settle()
	}
}

// All lose power with everything since the last sync: service is back all the same, and what is on no disk
// any more is given up (rule D8, design-arguments 1.1 a).
func TestAllLoseTheTail(t *testing.T) {
	s := stage(t, 3)
	s.within(second, "an acknowledged op that no disk has synced", func() bool {
		for _, n := range s.nodes {
			if n.disk.logs[partition].head() >= s.history[partition].acknowledgedTo {
				return false
			}
		}
		return true
	})
	acknowledged := s.history[partition].acknowledgedTo
	for _, n := range s.nodes {
		n.disk.written = 0
		n.end(unpowered)
	}
	for _, n := range s.nodes {
		n.boot()
	}
	s.within(2*second, "a primary in both groups", s.bothLed)
	if s.counts["loss accepted"] != 1 || uint64(len(s.history[partition].ops)) >= acknowledged {
		t.Fatalf("%d losses, %d ops are left of %d", s.counts["loss accepted"], len(s.history[partition].ops), acknowledged)
	}
	s.settle()
}

// One of two holders of an acknowledged op loses power and with it the op, then the other dies: the rest
// waits instead of forgetting (design-arguments 1.1 b).
func TestSuspectDoesNotDeny(t *testing.T) {
	s := stage(t, 3)
	s.network.cut(0, 2, second) // node 2 gets nothing more
	s.run(50 * millisecond)
	s.within(second, "an acknowledged op that node 1 has not synced", func() bool {
		return s.nodes[1].disk.logs[partition].head() < s.history[partition].acknowledgedTo
	})
	acknowledged := s.history[partition].acknowledgedTo
	s.nodes[1].disk.written = 0 // nothing since the last sync survives
	s.nodes[1].end(unpowered)
	s.nodes[0].end(killed)
	s.nodes[1].boot()
	s.run(4 * second)
	if s.leader(partition) != nil {
		t.Fatal("a log in doubt and one that is behind began a view")
	}
	s.nodes[0].boot()
	s.within(3*second, "a primary", s.bothLed)
	s.within(second, "what was acknowledged is committed again", func() bool {
		return s.history[partition].primary().core.Commit() >= acknowledged
	})
	s.settle()
}

// A wiped member comes back empty and becomes whole. Where a new disk is a new node, the partition members
// of the old one never return (design-arguments 10).
func TestWipedMember(t *testing.T) {
	for _, roster := range []bool{false, true} {
		s := stage(t, 3)
		s.loseDisk(s.nodes[1], roster)
		s.nodes[1].boot()
		m := s.nodes[1].members
		if (m[partition] != nil) != roster {
			t.Fatalf("roster %v, partition member %v", roster, m[partition])
		}
		s.within(3*second, "the members are whole", func() bool {
			return !m[metadata].inDoubt() && m[metadata].log.head() > 0 && (!roster || !m[partition].inDoubt() && m[partition].log.head() > 0)
		})
		s.settle()
	}
}
