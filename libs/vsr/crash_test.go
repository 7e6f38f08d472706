package vsr_test

import (
	"fmt"
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestCrashAtEveryWrite plays one story again and again: requests, a hand-over, a deposed primary that
// comes back with an op of its own. In run k a member is killed in front of its k-th write, or behind it
// before it learns, and started again. Every run ends with one log in which all that was committed stands.
func TestCrashAtEveryWrite(t *testing.T) {
	for mode := range 4 {
		for victim := range uint8(3) {
			k := 0
			for crashStory(t, victim, k, mode%2 == 1, mode >= 2) {
				k++
			}
			if k < 5 {
				t.Fatalf("member %d makes %d writes", victim, k)
			}
		}
	}
}

// crashStory reports whether the member made so many writes.
func crashStory(t *testing.T, victim uint8, k int, power, behind bool) (reached bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("member %d crashes at write %d, power %v, behind it %v: %v", victim, k, power, behind, p)
		}
	}()
	g := vsr.Group{ID: wire.GroupID(1, 2, 3, 0), Cluster: wire.ClusterID("crash"), Members: 3, Policy: vsr.Policy{Synced: power}}
	x := &chaos{cluster: newCluster(g, vsr.Limits{}, vsr.Born, func(string, ...any) {})}
	x.pulse = newPulse(x.cluster)
	writes := 0
	x.onWrite = func(i uint8) bool {
		if i != victim || reached {
			return true
		}
		if writes++; writes <= k {
			return true
		}
		reached = true
		if d := &x.members[victim].disk; behind && len(d.pending) > 0 {
			d.write(power)
		} else if behind {
			d.save()
		}
		x.stop(victim, power)
		return false
	}
	x.story()
	x.onWrite = nil
	if err := x.heal(); err != nil {
		t.Fatalf("member %d crashes at write %d, power %v, behind it %v: %v", victim, k, power, behind, err)
	}
	return reached
}

// story lets a second go by between its steps, so that elections happen.
func (x *chaos) story() {
	for step := range 12 {
		for i, m := range x.members {
			if m.up && m.replica.Primary() {
				x.request++
				x.propose(uint8(i), x.request)
				if step == 4 {
					x.step(uint8(i), vsr.Input{Kind: vsr.InputHandOver})
				}
				if step == 6 {
					x.isolate(uint8(i), true)
					x.propose(uint8(i), 1000)
				}
			}
		}
		if step == 9 {
			x.cut = map[[2]uint8]bool{}
		}
		for range 50 {
			x.settle()
			x.elapse(20_000)
		}
		for i, m := range x.members {
			if step%3 == 2 && !m.up {
				x.revive(uint8(i))
			}
		}
	}
}

// TestSameSeedSameRun: the core is a function of its inputs (vsr-behaviour.md §10.6, H4).
func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(12) {
		var runs [2]uint64
		for i := range runs {
			h := uint64(14695981039346656037)
			x := newChaos(seed+1, func(format string, args ...any) {
				for _, b := range fmt.Sprintf(format, args...) {
					h = (h ^ uint64(b)) * 1099511628211
				}
			})
			x.run(200)
			runs[i] = h
		}
		if runs[0] != runs[1] {
			t.Errorf("seed %d ran in two ways", seed+1)
		}
	}
}
