package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/client"
)

func verifyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "verify", Short: "Prove that a server keeps what it acknowledged"}
	cmd.AddCommand(recordCommand(), checkCommand())
	return cmd
}

// serverFlags adds where to connect and as whom.
func serverFlags(cmd *cobra.Command, o *client.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Address, "address", "127.0.0.1:8090", "host:port of the server")
	f.StringVar(&o.Username, "username", "iggy", "user to log in as")
	f.StringVar(&o.Password, "password", "iggy", "its password")
	f.StringVar(&o.Token, "token", "", "log in with a personal access token instead")
}

func recordCommand() *cobra.Command {
	var o verify.Options
	var path string
	var duration time.Duration
	cmd := &cobra.Command{
		Use: "record", Short: "Produce mixed load and write down every acknowledgement, whatever happens to the server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Seed == 0 {
				o.Seed = rand.Uint64()
			}
			ledger, err := verify.Create(path, o.Seed)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, ledger.Close()) }()
			r, err := verify.NewRecorder(cmd.Context(), o, ledger)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if duration > 0 {
				var stop func()
				ctx, stop = context.WithTimeout(ctx, duration)
				defer stop()
			}
			r.Run(ctx)
			fmt.Fprintf(cmd.OutOrStdout(), "%d messages acknowledged, written to %s\n", ledger.Model.Acknowledged(), path)
			return errors.Join(r.Violations()...)
		},
	}
	serverFlags(cmd, &o.Connect)
	f := cmd.Flags()
	f.StringVar(&path, "ledger", "ledger.jsonl", "file of acknowledgements; must not exist")
	f.DurationVar(&duration, "duration", 0, "stop after this long; 0: when interrupted")
	f.Uint64Var(&o.Seed, "seed", 0, "of the random choices; 0 draws one")
	f.StringVar(&o.Stream, "stream", "verify", "stream to make for the load")
	f.IntVar(&o.Topics, "topics", 4, "topics")
	f.IntVar(&o.Partitions, "partitions", 3, "partitions per topic")
	f.IntVar(&o.Producers, "producers", 4, "connections that send")
	f.IntVar(&o.Members, "members", 2, "members of consumer groups")
	f.Int64Var(&o.TopicLimit, "topic-limit", 48<<20, "bytes a topic may hold before it is purged")
	f.IntVar(&o.MaxPayload, "max-payload", verify.MaxPayload, "bytes of the largest payload")
	f.BoolVar(&o.Fsync, "fsync", false, "topics acknowledge synced messages only")
	return cmd
}

func checkCommand() *cobra.Command {
	var o client.Options
	var path string
	cmd := &cobra.Command{
		Use: "check", Short: "Read everything back and compare it with a ledger", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			model, err := verify.Read(path)
			if err != nil {
				return err
			}
			c, err := client.Dial(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer c.Close()
			summary, wrong, err := verify.Check(c, model)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "checked", summary)
			for _, v := range wrong {
				fmt.Fprintln(cmd.OutOrStdout(), "WRONG:", v)
			}
			if len(wrong) > 0 {
				return fmt.Errorf("%d promises broken", len(wrong))
			}
			fmt.Fprintln(cmd.OutOrStdout(), "every acknowledged message is there, once, unchanged")
			return nil
		},
	}
	serverFlags(cmd, &o)
	cmd.Flags().StringVar(&path, "ledger", "ledger.jsonl", "file of acknowledgements")
	return cmd
}
