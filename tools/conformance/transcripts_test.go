package conformance

import (
	"regexp"
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

// TestOtherCarriers plays conversations of every kind over the transports that carry the same frames.
func TestOtherCarriers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts server processes")
	}
	bin, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	some := regexp.MustCompile("^(conn|fatal|groups|login|malformed|poll|send|system|tokens|released)-")
	for _, carrier := range Carriers[1:] {
		results, err := Run(Options{Binary: bin, Filter: some, Patience: 5, Lanes: 2, Carrier: carrier})
		if err != nil {
			t.Error(err)
		}
		passed := 0
		for _, r := range results {
			switch {
			case r.Verdict == Passed:
				passed++
			case r.Verdict == Failed, r.Verdict == Skipped && r.Err != errPushes:
				t.Errorf("%s over %s: %v", r.Scenario.Name, carrier, r.Err)
			}
		}
		if passed < 60 {
			t.Errorf("only %d scenarios passed over %s", passed, carrier)
		}
	}
}
