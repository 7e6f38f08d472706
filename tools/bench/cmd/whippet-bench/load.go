package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/bench"
)

func produceCommand() *cobra.Command {
	return loadCommand("produce", "Send messages and measure the answers", 1, 0)
}

func consumeCommand() *cobra.Command {
	return loadCommand("consume", "Read stored messages, from the start again and again (see --preload)", 0, 1)
}

func bothCommand() *cobra.Command {
	return loadCommand("both", "Send and read at the same time, with plain consumers or groups", 1, 1)
}

// loadCommand builds a command with the flags of a workload.
func loadCommand(use, short string, producers, consumers int) *cobra.Command {
	var w bench.Workload
	var size, jsonFile, svgFile string
	var secure, insecure bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if w.Size, w.MaxSize, err = parseSizes(size); err != nil {
				return err
			}
			if w.Count == 0 && w.Duration == 0 {
				w.Duration = 10 * time.Second
			}
			if secure || insecure {
				w.Connect.TLS = &tls.Config{InsecureSkipVerify: insecure}
			}
			report, err := bench.Run(cmd.Context(), w)
			if report == nil {
				return err
			}
			return firstError(err, report.WriteText(cmd.OutOrStdout()), writeFile(jsonFile, report.WriteJSON), writeFile(svgFile, report.WriteSVG))
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.Connect.Address, "address", "127.0.0.1:8090", "host:port of the server")
	f.StringVar(&w.Connect.Username, "username", "iggy", "user to log in as")
	f.StringVar(&w.Connect.Password, "password", "iggy", "its password")
	f.StringVar(&w.Connect.Token, "token", "", "log in with a personal access token instead")
	f.BoolVar(&secure, "tls", false, "connect with TLS")
	f.BoolVar(&insecure, "tls-insecure", false, "connect with TLS, whoever answers")
	f.IntVar(&w.Producers, "producers", producers, "connections that send")
	f.IntVar(&w.Consumers, "consumers", consumers, "connections that read")
	f.IntVar(&w.Groups, "groups", 0, "consumer groups per topic; 0: every consumer reads a partition by itself")
	f.IntVar(&w.Streams, "streams", 1, "streams")
	f.IntVar(&w.Topics, "topics", 1, "topics per stream")
	f.IntVar(&w.Partitions, "partitions", 8, "partitions per topic")
	f.StringVar(&w.Prefix, "prefix", "bench", "names of the streams begin with this; they are deleted before and after")
	f.BoolVar(&w.Keep, "keep", false, "leave the streams behind")
	f.BoolVar(&w.Fsync, "fsync", false, "topics acknowledge synced messages only")
	f.Uint64Var(&w.Segment, "segment-size", 0, "bytes per segment; 0: the server's default")
	f.IntVar(&w.Batch, "batch", 1000, "messages per send")
	f.StringVar(&size, "size", "1000", "bytes of a message's payload, or a range such as 1-8MiB")
	f.IntVar(&w.PollCount, "poll", 0, "messages per poll; 0: as --batch")
	f.Float64Var(&w.Rate, "rate", 0, "messages per second over all producers; 0: as fast as answers come")
	f.DurationVar(&w.Duration, "duration", 0, "how long to measure (default 10s without --count)")
	f.Int64Var(&w.Count, "count", 0, "messages over all producers, instead of a duration")
	f.DurationVar(&w.Warmup, "warmup", 0, "run this long before measuring")
	f.Int64Var(&w.Preload, "preload", 0, "messages stored before measuring, over all partitions")
	f.StringVar(&jsonFile, "json", "", "write the whole report to this file")
	f.StringVar(&svgFile, "svg", "", "draw the report into this file")
	return cmd
}

// parseSizes reads a size or a range of sizes.
func parseSizes(text string) (low, high int, err error) {
	first, last, ranged := strings.Cut(text, "-")
	if low, err = parseSize(first); err != nil || !ranged {
		return low, low, err
	}
	high, err = parseSize(last)
	return low, high, err
}

var units = []struct {
	name string
	size int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"B", 1}}

func parseSize(text string) (int, error) {
	text, unit := strings.TrimSpace(text), 1
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(number), u.size
			break
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("size %q: want bytes, or a number with KiB, MiB, kB or MB", text)
	}
	return n * unit, nil
}

func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return firstError(write(f), f.Close())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
