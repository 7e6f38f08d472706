package conformance

import (
	"testing"

	"github.com/whippet-mq/whippet/tools/process"
)

// TestHTTPTranscripts plays every recorded HTTP conversation against the real server.
func TestHTTPTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts server processes")
	}
	bin, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	results, err := RunHTTP(Options{Binary: bin, Patience: 5})
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		if r.Verdict != Passed {
			t.Errorf("%s: %v", r.Scenario.Name, r.Err)
		}
	}
	if len(results) != 33 {
		t.Errorf("%d scenarios, want 33", len(results))
	}
}
