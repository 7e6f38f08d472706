package main

import (
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/bench/compare"
)

func compareCommand() *cobra.Command {
	var o compare.Options
	var filter, svg string
	var strict bool
	cmd := &cobra.Command{
		Use: "compare", Short: "Measure a server against the floor program and print ratios", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if filter != "" {
				if o.Filter, err = regexp.Compile(filter); err != nil {
					return err
				}
			}
			out := cmd.OutOrStdout()
			o.Progress = cmd.ErrOrStderr()
			rows, err := compare.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := compare.WriteText(out, rows); err != nil {
				return err
			}
			if err := writeFile(svg, func(w io.Writer) error { return compare.WriteSVG(w, rows) }); err != nil {
				return err
			}
			for _, r := range rows {
				if strict && r.Ratio < r.Asked {
					return fmt.Errorf("%s: ratio %.2f, asked for %.2f", r.Job, r.Ratio, r.Asked)
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Server, "server", "bin/whippet-server", "server program")
	f.StringVar(&o.Floor, "floor", "bin/whippet-floor", "floor program")
	f.StringVar(&o.Dir, "dir", "", "where data goes (default: the temporary directory)")
	f.IntVar(&o.Rounds, "rounds", 3, "alternated measurements per job; medians count")
	f.DurationVar(&o.Duration, "duration", 3*time.Second, "of one measurement")
	f.StringVar(&filter, "filter", "", "regular expression on the names of jobs")
	f.StringVar(&svg, "svg", "", "draw the ratios into this file")
	f.StringVar(&o.Profiles, "profiles", "", "write a CPU profile of the server per job into this directory (go tool pprof -http=: FILE draws flame graphs)")
	f.BoolVar(&strict, "strict", false, "fail when a ratio is below what is asked")
	return cmd
}

func footprintCommand() *cobra.Command {
	var f compare.Footprint
	cmd := &cobra.Command{
		Use: "footprint", Short: "Measure an idle server, and how long one with data takes to start", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.Run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o := cmd.Flags()
	o.StringVar(&f.Server, "server", "bin/whippet-server", "server program")
	o.StringVar(&f.Dir, "dir", "", "where data goes (default: the temporary directory)")
	o.IntVar(&f.Idle, "idle-partitions", 1000, "empty partitions of the idle server")
	o.DurationVar(&f.Watch, "watch", 10*time.Second, "how long to watch it")
	o.Int64Var(&f.Messages, "messages", 10_000_000, "messages stored before the restarts")
	o.IntVar(&f.Partitions, "partitions", 100, "partitions they are spread over")
	o.IntVar(&f.Size, "size", 100, "bytes of each payload")
	return cmd
}
