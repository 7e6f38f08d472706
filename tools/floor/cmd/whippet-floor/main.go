// Command whippet-floor is the least a broker can do: what a server's figures are divided by. Its
// client is whippet-bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/flagfile"
	"github.com/whippet-mq/whippet/tools/floor"
)

var version = "dev" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := command()
	flagfile.Add(cmd)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "whippet-floor:", err)
		if errors.Is(err, flagfile.ErrUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var address, dir, sync string
	var backup bool
	var backups []string
	cmd := &cobra.Command{
		Use: "whippet-floor", Short: "Read a frame, write it to a file, answer; read a range, answer", Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode := floor.Sync(sync)
			if mode != floor.SyncNone && mode != floor.SyncGroup && mode != floor.SyncEach && mode != floor.SyncWritten {
				return fmt.Errorf("--sync %q: want none, group, each or written", sync)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "listening on", l.Addr())
			context.AfterFunc(cmd.Context(), func() { l.Close() })
			if backup {
				err = floor.ServeBackup(l, dir, mode)
			} else {
				err = floor.Serve(l, dir, mode, backups...)
			}
			if cmd.Context().Err() == nil {
				return err
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "address", "127.0.0.1:0", "host:port to listen on")
	f.StringVar(&dir, "dir", "floor-data", "directory for the files; what is in it is overwritten")
	f.StringVar(&sync, "sync", "none", "none; group: one sync for all writes that wait; each: one sync per write; written: likewise, in blocks written before")
	f.BoolVar(&backup, "backup", false, "store what the first process of a quorum sends")
	f.StringSliceVar(&backups, "backups", nil, "host:port of the backups: answer when one of them has the batch too")
	return cmd
}
