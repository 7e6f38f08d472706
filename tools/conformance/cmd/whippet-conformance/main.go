// Command whippet-conformance replays recorded conversations against a server and judges every
// answer. It ends with the line "N passed, M failed" and exits 0 when nothing failed, 1 when
// something did, 2 when it was called wrongly.
package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/conformance"
	"github.com/whippet-mq/whippet/tools/flagfile"
)

var version = "dev" // set by the linker

func main() {
	root := &cobra.Command{
		Use: "whippet-conformance", Short: "Replay recorded conversations against a server", Version: version,
		SilenceUsage: true, SilenceErrors: true,
	}
	failed := 0
	flagfile.Add(root)
	root.AddCommand(runCommand(&failed), listCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "whippet-conformance:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func runCommand(failed *int) *cobra.Command {
	var o conformance.Options
	var filter string
	var verbose bool
	cmd := &cobra.Command{
		Use: "run", Short: "Play scenarios and judge the answers", Args: cobra.NoArgs,
		Long: "Plays the recorded scenarios against the server at --address, which is EMPTIED first, or against\n" +
			"servers started from the program --server, which also makes restarts and private servers possible.\n" +
			"With --cluster those are whole clusters of local processes, and a restart is one of all of them.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if (o.Address != "" || o.HTTP != "") == (o.Binary != "") {
				return fmt.Errorf("give either --server, or --address and --http")
			}
			if !slices.Contains(conformance.Carriers, o.Carrier) || o.Carrier != "tcp" && o.Binary == "" {
				return fmt.Errorf("--transport is tcp, or websocket or quic with --server")
			}
			if o.Form != "" && (!slices.Contains(conformance.Forms, o.Form) || o.Binary == "") {
				return fmt.Errorf("--cluster is services or all-role, with --server the directory of all programs")
			}
			if filter != "" {
				if o.Filter, err = regexp.Compile(filter); err != nil {
					return err
				}
			}
			out := cmd.OutOrStdout()
			if verbose {
				o.Report = func(r conformance.Result) { fmt.Fprintln(out, conformance.Line(r)) }
			}
			var results []conformance.Result
			if o.HTTP == "" || o.Address != "" {
				if results, err = conformance.Run(o); err != nil {
					return err
				}
			}
			if (o.HTTP != "" || o.Binary != "") && o.Carrier == "tcp" {
				var more []conformance.Result
				more, err = conformance.RunHTTP(o)
				results = append(results, more...)
			}
			*failed = conformance.Summarize(out, results)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Address, "address", "", "host:port of a running server; everything on it is deleted")
	f.StringVar(&o.HTTP, "http", "", "URL of the HTTP interface of a running server; everything on it is deleted")
	f.StringVar(&o.Binary, "server", "", "server program to start as often as needed")
	f.StringVar(&o.Form, "cluster", "", "services or all-role: start clusters of three instead; --server is the directory of the programs")
	f.IntVar(&o.Node, "node", 1, "with --cluster, the front-door or node to speak to; node 0 leads at first")
	f.StringVar(&filter, "filter", "", "regular expression on scenario names")
	f.StringVar(&o.User, "username", "iggy", "administrator of the running server")
	f.StringVar(&o.Password, "password", "iggy", "its password")
	f.IntVar(&o.Patience, "patience", 1, "multiply the time allowed for answers")
	f.StringVar(&o.Carrier, "transport", "tcp", "tcp, websocket or quic; the latter two with --server")
	f.IntVar(&o.Lanes, "lanes", 2, "servers driven at the same time, with --server")
	f.BoolVarP(&verbose, "verbose", "v", false, "print every scenario as it ends")
	return cmd
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the scenarios", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := conformance.Load()
			for _, s := range all {
				fmt.Fprintf(cmd.OutOrStdout(), "%-36s %3d steps  %s\n", s.Name, len(s.Steps), s.About)
			}
			return err
		},
	}
}
