// Command whippet-simulator runs consensus groups from seeds, repeats a seed, shortens a failing one,
// and checks the simulator itself by breaking the core on purpose.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/simulator"
)

var version = "dev" // set by the linker

// errFailed ends the process with status 1; what failed is already said.
var errFailed = errors.New("a rule was broken")

func main() {
	debug.SetGCPercent(800) // many small worlds, one after the other
	root := &cobra.Command{
		Use: "whippet-simulator", Short: "Consensus groups in one thread from one seed", Version: version,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(runCommand(), replayCommand(), mutationsCommand(), coverageCommand())
	if err := root.Execute(); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "whippet-simulator:", err)
		}
		os.Exit(1)
	}
}

// choice is the flags that say which run is wanted.
type choice struct {
	profile, without string
	length           uint64
	nodes            int
}

func (c *choice) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.profile, "profile", string(simulator.Safety), "safety, liveness or power")
	cmd.Flags().StringVar(&c.without, "without", "", "faults to switch off, with commas")
	cmd.Flags().Uint64Var(&c.length, "length", 0, "µs of the time with faults, 0 = as drawn from the seed")
	cmd.Flags().IntVar(&c.nodes, "nodes", 0, "nodes of the cluster, 0 = as drawn from the seed")
}

func (c *choice) options(seed uint64) (simulator.Options, error) {
	o := simulator.Options{Seed: seed, Profile: simulator.Profile(c.profile), Length: c.length, Nodes: c.nodes}
	known := false
	for _, p := range simulator.Profiles {
		known = known || p == o.Profile
	}
	if !known {
		return o, fmt.Errorf("no profile is named %q", c.profile)
	}
	var err error
	o.Without, err = simulator.ParseFaults(c.without)
	return o, err
}

func runCommand() *cobra.Command {
	var c choice
	var seeds, profileFile, keep string
	var first, counts, all bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run a range of seeds; the last line counts them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			low, high, err := seedRange(seeds)
			if err != nil {
				return err
			}
			o, err := c.options(low)
			if err != nil {
				return err
			}
			if profileFile != "" {
				f, err := os.Create(profileFile)
				if err != nil {
					return err
				}
				defer f.Close()
				if err := pprof.StartCPUProfile(f); err != nil {
					return err
				}
				defer pprof.StopCPUProfile()
			}
			campaign := &simulator.Campaign{Options: o, Last: high, StopAtFirst: first}
			if all {
				campaign.Each = func(r *simulator.Result) { fmt.Fprintln(cmd.OutOrStdout(), r) }
			}
			return runSeeds(cmd.OutOrStdout(), campaign, keep, counts)
		},
	}
	c.add(cmd)
	cmd.Flags().StringVar(&seeds, "seeds", "1-100", "first and last seed")
	cmd.Flags().BoolVar(&first, "first", false, "stop at the first failure")
	cmd.Flags().BoolVar(&all, "all", false, "print runs that pass too")
	cmd.Flags().BoolVar(&counts, "counts", false, "print what happened how often")
	cmd.Flags().StringVar(&keep, "keep", "", "shorten failed runs and write them to files in this directory")
	cmd.Flags().StringVar(&profileFile, "cpuprofile", "", "write a CPU profile to this file")
	return cmd
}

func seedRange(text string) (low, high uint64, err error) {
	a, b, two := strings.Cut(text, "-")
	if !two {
		b = a
	}
	if low, err = strconv.ParseUint(a, 10, 64); err == nil {
		high, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil || high < low {
		return 0, 0, fmt.Errorf("--seeds %q: want A-B", text)
	}
	return low, high, nil
}

func runSeeds(out io.Writer, campaign *simulator.Campaign, keep string, counts bool) error {
	start := time.Now()
	var broken error
	campaign.Report = func(r *simulator.Result) {
		if campaign.Each == nil {
			fmt.Fprintln(out, r)
		}
		if keep != "" {
			short := simulator.Run(simulator.Shorten(r.Options), nil)
			broken = errors.Join(broken, simulator.Keep(keep, &short))
		}
	}
	campaign.Run()
	elapsed := time.Since(start).Seconds()
	if counts {
		campaign.PrintCounts(out)
	}
	fmt.Fprintf(out, "%s: %.1f seeds/s, %.0f s of cluster time per second, slowest primary %.2f s, slowest rest %.2f s\n", campaign.Options.Profile,
		float64(campaign.Passed+campaign.Failed)/elapsed, campaign.Seconds()/elapsed, campaign.SlowestLeader(), campaign.SlowestRest())
	fmt.Fprintf(out, "%d passed, %d failed\n", campaign.Passed, campaign.Failed)
	if campaign.Failed > 0 && broken == nil {
		return errFailed
	}
	return broken
}

func replayCommand() *cobra.Command {
	var c choice
	var verbose, shorten bool
	cmd := &cobra.Command{
		Use: "replay SEED", Short: "Run one seed again, twice, and compare", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seed, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return err
			}
			o, err := c.options(seed)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if shorten {
				o = simulator.Shorten(o)
			}
			var words io.Writer
			if verbose {
				words = out
			}
			result := simulator.Run(o, words)
			fmt.Fprintln(out, &result)
			if again := simulator.Run(o, nil); again.Hash != result.Hash {
				fmt.Fprintf(out, "the second run was another one: hash %016x\n", again.Hash)
				return errFailed
			}
			if !result.Passed() {
				return errFailed
			}
			return nil
		},
	}
	c.add(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "tell every step")
	cmd.Flags().BoolVar(&shorten, "shorten", false, "first drop faults and time that the failure does not need")
	return cmd
}
