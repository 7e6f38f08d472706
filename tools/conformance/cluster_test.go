package conformance

import (
	"testing"

	"github.com/whippet-mq/whippet/tools/process"
)

// TestTranscriptsOnClusters plays every recorded conversation, HTTP ones too, against a front-door of a
// cluster of services and against a node of an all-role cluster that leads nothing at first.
func TestTranscriptsOnClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("starts server processes")
	}
	bin := t.TempDir()
	if err := process.BuildAll(bin); err != nil {
		t.Fatal(err)
	}
	for _, form := range Forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			onCluster(t, Options{Binary: bin, Form: form, Node: 1, Patience: 5, Lanes: 1})
		})
	}
}

func onCluster(t *testing.T, o Options) {
	results, err := Run(o)
	if err != nil {
		t.Error(err)
	}
	more, err := RunHTTP(o)
	if err != nil {
		t.Error(err)
	}
	passed := 0
	for _, r := range append(results, more...) {
		switch r.Verdict {
		case Passed:
			passed++
		case Failed, Skipped:
			t.Errorf("%s: %v", r.Scenario.Name, r.Err)
		}
	}
	if passed < 175 {
		t.Errorf("%d scenarios passed, want 175 at least", passed)
	}
}

// TestRosterOfACluster gives the judge rosters that would mislead clients.
func TestRosterOfACluster(t *testing.T) {
	node := func(port uint16, leads bool) rosterNode {
		return rosterNode{[4]uint16{port, port + 1, port + 2, port + 3}, "127.0.0.1", leads, true}
	}
	good := []rosterNode{node(10, false), node(20, true), node(30, false)}
	if err := judgeNodes(good, 3); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string][]rosterNode{
		"a node is missing": good[:2],
		"no leader":         {node(10, false), node(20, false), node(30, false)},
		"two leaders":       {node(10, true), node(20, true), node(30, false)},
		"one address twice": {node(10, false), node(20, true), node(11, false)},
		"no port":           {node(10, false), node(20, true), {[4]uint16{0, 2, 3, 4}, "127.0.0.1", false, true}},
		"not healthy":       {node(10, false), node(20, true), {[4]uint16{1, 2, 3, 4}, "127.0.0.1", false, false}},
	} {
		if judgeNodes(bad, 3) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
