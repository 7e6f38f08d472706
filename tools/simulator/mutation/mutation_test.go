package mutation_test

import (
	"flag"
	"testing"

	"github.com/whippet-mq/whippet/tools/simulator/mutation"
)

// TestTexts checks that every break still applies to the code as it is.
func TestTexts(t *testing.T) {
	root, err := mutation.Root()
	if err != nil {
		t.Fatal(err)
	}
	for i := range mutation.Table {
		if _, err := mutation.Table[i].Apply(root); err != nil {
			t.Error(err)
		}
	}
}

var all = flag.Bool("all", false, "find every break, however long it takes")

// TestFound has the simulator find the breaks that show soonest, or all.
func TestFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the simulator several times")
	}
	root, err := mutation.Root()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for i := range mutation.Table {
		m := &mutation.Table[i]
		if (m.Seeds > 50 || m.Tests != "") && !*all {
			continue
		}
		count++
		found, err := m.Find(root, t.TempDir())
		if err != nil || found.Rule == "" {
			t.Errorf("%s: %+v, %v", m.Name, found, err)
		}
	}
	if count == 0 {
		t.Fatal("no break was tried")
	}
}
