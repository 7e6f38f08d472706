// Command whippet-bench puts load on a server and measures what comes back, or proves that nothing
// acknowledged was lost.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/flagfile"
)

var version = "dev" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use: "whippet-bench", Short: "Load generator and verifier", Version: version,
		SilenceUsage: true, SilenceErrors: true,
	}
	flagfile.Add(root)
	root.AddCommand(produceCommand(), consumeCommand(), bothCommand(), verifyCommand(), compareCommand(), footprintCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "whippet-bench:", err)
		if errors.Is(err, flagfile.ErrUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}
