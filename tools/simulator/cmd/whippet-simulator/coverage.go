package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/simulator/coverage"
	"github.com/whippet-mq/whippet/tools/simulator/mutation"
)

func coverageCommand() *cobra.Command {
	seeds := 300
	cmd := &cobra.Command{
		Use: "coverage", Short: "Which branches of the core a campaign never takes; inside the repository only", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := mutation.Root()
			if err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "coverage")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(dir) }()
			missed, blocks, err := coverage.Run(root, dir, seeds)
			if err != nil {
				return err
			}
			for _, b := range missed {
				fmt.Fprintf(cmd.OutOrStdout(), "never taken: %s:%d  %s\n", b.File, b.Line, b.Text)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d blocks were not taken, %d of them without a reason\n", blocks, len(missed))
			if len(missed) > 0 {
				return errFailed
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "seeds of each profile")
	return cmd
}
