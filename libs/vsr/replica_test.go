package vsr_test

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestQuorums pins the table of vsr-behaviour.md §1.2 and the two inequalities safety rests on.
func TestQuorums(t *testing.T) {
	want := map[int]vsr.Quorums{
		1: {1, 1, 1}, 2: {2, 2, 1}, 3: {2, 2, 2}, 4: {2, 3, 3}, 5: {3, 3, 3}, 6: {3, 4, 4}, 7: {3, 5, 5}, 8: {3, 6, 6}, 9: {3, 7, 7},
	}
	for n := 1; n <= vsr.MaxMembers; n++ {
		q := vsr.QuorumsOf(n)
		if w, ok := want[n]; ok && q != w {
			t.Errorf("n=%d: %+v, want %+v", n, q, w)
		}
		if q.Replication+q.ViewChange <= n || q.Replication+q.Nack <= n {
			t.Errorf("n=%d: %+v do not intersect", n, q)
		}
	}
}

// TestNewRefusesContradictions: a caller that hands over an impossible boot record has a bug.
func TestNewRefusesContradictions(t *testing.T) {
	solo := vsr.Group{Members: 1}
	for name, boot := range map[string]struct {
		g vsr.Group
		b vsr.Boot
	}{
		"commit above head":   {solo, vsr.Boot{Commit: 2, Head: 1}},
		"log view above view": {solo, vsr.Boot{LogView: 1}},
		"no members":          {vsr.Group{}, vsr.Boot{}},
		"not a member":        {vsr.Group{Members: 3, Self: 3}, vsr.Boot{}},
		"too many members":    {vsr.Group{Members: 33}, vsr.Boot{}},
		"gap in the headers":  {solo, vsr.Boot{Head: 2, Tail: []wire.PrepareHeader{{Op: 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			vsr.New(boot.g, vsr.Limits{}, boot.b)
		})
	}
}

func TestRollbackOfCommittedPanics(t *testing.T) {
	s := newStage()
	s.run("group")
	s.run("propose")
	s.run("write")
	defer func() {
		if recover() == nil {
			t.Error("a committed op was taken back")
		}
	}()
	s.replica.Rollback(1)
}

func TestLimitIsCapped(t *testing.T) {
	s := newStage()
	s.run("group pipeline=1000")
	s.run("propose times=200")
	if len(s.log) != vsr.MaxPipeline {
		t.Errorf("%d prepares in flight, ceiling %d", len(s.log), vsr.MaxPipeline)
	}
}

// TestSizeOfFrame: no prepare can be minted that its own plane would not carry.
func TestSizeOfFrame(t *testing.T) {
	s := newStage()
	s.run("group")
	for _, size := range []string{"255", "0", "67108865"} {
		s.run("propose size=" + size)
		if len(s.log) != 0 || len(s.out.Refused) != 1 || s.out.Refused[0].Why != vsr.WhySize {
			t.Errorf("size %s: %+v", size, s.out)
		}
	}
	if s.run("propose size=67108864"); len(s.log) != 1 {
		t.Error("largest frame refused")
	}
}

func TestUnknownInput(t *testing.T) {
	s := newStage()
	s.run("group")
	s.in = vsr.Input{Kind: 99}
	s.step()
	if s.out.Fault != vsr.FaultKind {
		t.Error(s.out.Fault)
	}
}

// TestTrimKeepsTheHead: an idle group holds the header its chain goes on from, nothing more.
func TestTrimKeepsTheHead(t *testing.T) {
	s := newStage()
	s.run("group")
	s.run("propose times=30")
	s.run("write")
	before := s.replica.Head()
	s.replica.Trim()
	if s.replica.Head() != before {
		t.Error("head lost")
	}
	s.run("propose times=30")
	if s.log[30].Parent != before.Checksum {
		t.Error("chain broken")
	}
}

// TestRollbackToCommitPoint takes back pipelines of every length: the chain goes on from the commit point.
func TestRollbackToCommitPoint(t *testing.T) {
	s := newStage()
	s.run("group pipeline=127")
	s.run("propose")
	s.run("write")
	for n := 1; n <= vsr.MaxPipeline; n++ {
		for range n {
			s.run("propose")
		}
		s.run("rollback op=2")
		s.run("propose")
		if s.log[1].Parent != s.log[0].Checksum {
			t.Fatalf("%d ops taken back: the chain is broken", n)
		}
		s.run("rollback op=2")
	}
}
