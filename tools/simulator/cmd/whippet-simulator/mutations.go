package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/simulator/mutation"
)

func mutationsCommand() *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use: "mutations", Short: "Break the core on purpose and have the simulator find it; inside the repository only", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := mutation.Root()
			if err != nil {
				return err
			}
			passed, failed := 0, 0
			for i := range mutation.Table {
				m := &mutation.Table[i]
				if !strings.Contains(m.Name, only) {
					continue
				}
				line, err := findOne(root, m)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-62s %s\n", m.Name, line)
				if strings.HasPrefix(line, "NOT") {
					failed++
				} else {
					passed++
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d passed, %d failed\n", passed, failed)
			if failed > 0 {
				return errFailed
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&only, "only", "", "those whose name contains this")
	return cmd
}

// findOne returns how one mutation was found.
func findOne(root string, m *mutation.Mutation) (string, error) {
	cache := filepath.Join(root, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "mutation")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	found, err := m.Find(root, dir)
	switch {
	case err != nil:
		return "", err
	case m.Tests != "" && found.Rule != "":
		return fmt.Sprintf("%-8s %s", "tests", found.Rule), nil
	case m.Tests != "":
		return "NOT FOUND by " + m.Tests, nil
	case found.Seed > 0:
		return fmt.Sprintf("%-8s seed %-5d %s", m.Profile, found.Seed, found.Rule), nil
	}
	return fmt.Sprintf("NOT FOUND in %d seeds of %s", m.Seeds, m.Profile), nil
}
