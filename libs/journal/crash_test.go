package journal

import (
	"fmt"
	"testing"
)

// TestCrashEverywhere kills the process, or cuts the power, at every mutating call of a workload,
// lets the next process go on, kills it too at a random call, and checks each recovery against the
// model: after a kill all completed rounds are there, after a power cut a prefix of the log that
// holds everything synced.
func TestCrashEverywhere(t *testing.T) {
	const steps = 40
	points := 0
	for _, power := range []bool{false, true} {
		for _, synced := range []bool{false, true} {
			t.Run(fmt.Sprintf("power=%v/synced=%v", power, synced), func(t *testing.T) {
				seeds := uint64(6)
				if testing.Short() {
					seeds = 2
				}
				for seed := range seeds {
					whole := newRig(t, seed, synced)
					if err := whole.run(steps); err != nil {
						t.Fatal(err)
					}
					for k := 1; k <= whole.disk.Calls(); k++ {
						points++
						crashAt(t, seed, k, steps, power, synced)
					}
				}
			})
		}
	}
	t.Logf("%d crash points", points)
}

func crashAt(t *testing.T, seed uint64, k, steps int, power, synced bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, call %d, power %v, synced %v", seed, k, power, synced)
		}
	}()
	r := newRig(t, seed, synced)
	r.reads = k%5 == 0
	r.disk.CrashAt(k, power)
	if err := r.run(steps); err != errCrash {
		t.Fatalf("call %d: %v", k, err)
	}
	r.crash(power)
	for range 3 {
		again := r.rng.IntN(2) == 0
		r.disk.CrashAt(1+r.rng.IntN(40), again)
		err := r.run(steps)
		if err != nil && err != errCrash {
			t.Fatalf("call %d, then: %v", k, err)
		}
		r.crash(again)
	}
	if err := r.run(1); err != nil {
		t.Fatalf("call %d, at last: %v", k, err)
	}
}
