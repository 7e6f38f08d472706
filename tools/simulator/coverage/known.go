package coverage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// exception is a block that no campaign has to reach.
type exception struct{ file, text, why string }

func known(b *Block) bool {
	for _, e := range exceptions {
		if e.file == b.File && e.text == b.Text {
			return true
		}
	}
	return false
}

// Stale says which exceptions speak of code that is not there any more.
func Stale(root string) (problems []string) {
	for _, e := range exceptions {
		text, err := os.ReadFile(filepath.Join(root, "libs/vsr", e.file))
		if err != nil || !strings.Contains(string(text), e.text) || e.why == "" {
			problems = append(problems, fmt.Sprintf("%s: %q (%s): %v", e.file, e.text, e.why, err))
		}
	}
	return problems
}

var exceptions = []exception{}
