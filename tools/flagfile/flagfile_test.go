package flagfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

func TestFile(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		args []string
		want int
		ok   bool
	}{
		"file":         {"count = 7", nil, 7, true},
		"command line": {"count = 7", []string{"--count", "3"}, 3, true},
		"unknown key":  {"cuont = 7", nil, 0, false},
		"wrong type":   {"count = 'many'", nil, 0, false},
		"no TOML":      {"count", nil, 0, false},
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		root := &cobra.Command{SilenceUsage: true, SilenceErrors: true}
		sub := &cobra.Command{Use: "sub", RunE: func(*cobra.Command, []string) error { return nil }}
		count := sub.Flags().Int("count", 1, "")
		root.AddCommand(sub)
		Add(root)
		root.SetArgs(append([]string{"sub", "--config", path}, test.args...))
		err := root.Execute()
		if (err == nil) != test.ok || err != nil && !errors.Is(err, ErrUsage) || test.ok && *count != test.want {
			t.Errorf("%s: count %d, %v", name, *count, err)
		}
	}
}
