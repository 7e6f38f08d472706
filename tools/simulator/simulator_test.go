package simulator

import (
	"flag"
	"testing"
)

var seeds = flag.Uint64("seeds", 300, "seeds of each profile")

// TestProfiles runs the first seeds of every profile. Every fault strikes and every path is taken: a check
// that nothing reaches checks nothing.
func TestProfiles(t *testing.T) {
	counts := map[string]uint64{}
	for _, profile := range Profiles {
		t.Run(string(profile), func(t *testing.T) {
			c := Campaign{Options: Options{Seed: 1, Profile: profile}, Last: *seeds, Report: func(r *Result) { t.Error(r) }}
			c.Run()
			for what, n := range c.Counts {
				counts[what] += n
			}
			t.Logf("%d passed, %d failed; slowest primary %.2f s, slowest rest %.2f s", c.Passed, c.Failed, c.SlowestLeader(), c.SlowestRest())
		})
	}
	paths := []string{
		"adoption", "adoption of headers", "truncate", "view started", "vote", "dvc whole", "dvc flagged", "isolated", "member dead",
		"boot whole", "boot born", "boot suspect", "boot empty", "boot with a damaged entry", "wiped", "sync failed", "trimmed",
		"prepares refused by the disk", "hand over asked", "repair served", "range evicted", "transfer wanted", "transfer installed",
		"transfer failed", "committed ops lost by power cuts", "loss accepted", "log salvaged", "answered", "answered from the client table",
		"refused: pipeline full", "refused: client in flight", "refused: write failed", "refused: view change",
		"fault frame", "fault group", "suffix refused", "ping refused", "frame without a meaning", "node left dead",
	}
	for f := range faultCount {
		if f != ClockSkew { // it is a state, not an event
			paths = append(paths, f.String())
		}
	}
	for _, what := range paths {
		if counts[what] == 0 {
			t.Errorf("never: %s", what)
		}
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
