// Command whippet is the command-line client and operator tool.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/whippet-mq/whippet/tools/cli"
)

var version = "dev" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.System(version), os.Args[1:])
	stop()
	os.Exit(code)
}
