package coverage_test

import (
	"flag"
	"testing"

	"github.com/whippet-mq/whippet/tools/simulator/coverage"
	"github.com/whippet-mq/whippet/tools/simulator/mutation"
)

var seeds = flag.Int("seeds", 0, "seeds of each profile")

// TestCampaign runs seeds until no branch of the core is left that was never taken.
func TestCampaign(t *testing.T) {
	if *seeds == 0 {
		t.Skip("needs -seeds")
	}
	root, err := mutation.Root()
	if err != nil {
		t.Fatal(err)
	}
	missed, blocks, err := coverage.Run(root, t.TempDir(), *seeds)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range missed {
		t.Errorf("never taken: %s:%d  %s", b.File, b.Line, b.Text)
	}
	t.Logf("%d blocks were not taken", blocks)
}
