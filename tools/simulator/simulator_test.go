package simulator

import (
	"flag"
	"testing"
)

var seeds = flag.Uint64("seeds", 150, "seeds of each profile")

// TestProfiles runs the first seeds of every profile.
func TestProfiles(t *testing.T) {
	for _, profile := range Profiles {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			c := Campaign{Options: Options{Seed: 1, Profile: profile}, Last: *seeds, Report: func(r *Result) { t.Error(r) }}
			c.Run()
			t.Logf("%d passed, %d failed; slowest primary %.2f s, slowest rest %.2f s", c.Passed, c.Failed, c.SlowestLeader(), c.SlowestRest())
		})
	}
}

// TestDeterminism runs seeds twice: one seed is one run, told or untold.
func TestDeterminism(t *testing.T) {
	for _, profile := range Profiles {
		for seed := uint64(1); seed <= 10; seed++ {
			o := Options{Seed: seed, Profile: profile}
			var words counter
			first, second := Run(o, nil), Run(o, &words)
			if first.Hash != second.Hash || first.Steps != second.Steps || words == 0 {
				t.Fatalf("%v: %v, then %v", o, &first, &second)
			}
			if other := Run(Options{Seed: seed + 1000, Profile: profile}, nil); other.Hash == first.Hash {
				t.Fatalf("seeds %d and %d are one run", seed, seed+1000)
			}
		}
	}
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
