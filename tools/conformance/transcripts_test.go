package conformance

import (
	"testing"

	"github.com/whippet-mq/whippet/tools/process"
)

// TestTranscripts plays every recorded conversation against the real server.
func TestTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts server processes")
	}
	bin, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	results, err := Run(Options{Binary: bin, Patience: 5, Lanes: 2})
	if err != nil {
		t.Error(err)
	}
	passed := 0
	for _, r := range results {
		switch r.Verdict {
		case Passed:
			passed++
		case Failed, Skipped:
			t.Errorf("%s: %v", r.Scenario.Name, r.Err)
		}
	}
	if len(results) != 146 {
		t.Errorf("%d scenarios, want 146", len(results))
	}
	t.Logf("%d scenarios passed, of %d", passed, len(results))
}
