package compare

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/whippet-mq/whippet/tools/bench"
	"github.com/whippet-mq/whippet/tools/bench/plot"
)

// Options say what is compared.
type Options struct {
	Server, Floor string // programs
	Dir           string // where data goes, "" for the temporary directory
	Rounds        int
	Duration      time.Duration  // of one measurement
	Filter        *regexp.Regexp // names of jobs; nil runs all
	Progress      io.Writer      // a line per measurement; nil for none
	Profiles      string         // directory for CPU profiles of the server, "" for none
}

// Row is the outcome of one job.
type Row struct {
	Job           string
	Unit          string
	Floor, Server float64 // medians
	Ratio         float64 // Server / Floor
	Asked         float64 // ratio asked for, 0 for none
	FloorP99      float64 // ms
	ServerP99     float64
	FloorCPU      float64 // ms of processor time per GB or per 1000 requests
	ServerCPU     float64
	Allocations   float64 // of the server per message, negative when unknown
}

// Run measures every job.
func Run(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, j := range jobs(o.Duration) {
		if o.Filter != nil && !o.Filter.MatchString(j.name) {
			continue
		}
		row, err := o.row(ctx, j)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", j.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (o *Options) row(ctx context.Context, j job) (Row, error) {
	var floors, servers []figure
	for range max(1, o.Rounds) {
		f, err := o.measure(ctx, j, "floor", func(dir string) (*target, error) {
			if j.three {
				return startQuorum(o.Floor, dir, j.floor)
			}
			return startFloor(o.Floor, dir, j.floor)
		})
		if err != nil {
			return Row{}, err
		}
		s, err := o.measure(ctx, j, "server", func(dir string) (*target, error) {
			if j.three {
				return startNodes(ctx, o.Server, dir)
			}
			return startServer(o.Server, dir)
		})
		if err != nil {
			return Row{}, err
		}
		floors, servers = append(floors, f), append(servers, s)
	}
	rate := func(f figure) float64 { return f.rate }
	p99 := func(f figure) float64 { return f.p99 }
	cpu := func(f figure) float64 { return f.perUnit }
	row := Row{
		Job: j.name, Unit: j.unit(), Asked: j.atBest,
		Floor: median(floors, rate), Server: median(servers, rate),
		FloorP99: median(floors, p99), ServerP99: median(servers, p99),
		FloorCPU: median(floors, cpu), ServerCPU: median(servers, cpu),
		Allocations: median(servers, func(f figure) float64 { return f.allocated }),
	}
	row.Ratio = row.Server / row.Floor
	return row, nil
}

func (o *Options) measure(ctx context.Context, j job, what string, start func(dir string) (*target, error)) (figure, error) {
	dir, err := os.MkdirTemp(o.Dir, "whippet-compare-")
	if err != nil {
		return figure{}, err
	}
	defer remove(dir)
	t, err := start(dir)
	if err != nil {
		return figure{}, err
	}
	defer t.stop()
	w := j.load
	w.Connect = credentials(t.address)
	w.Keep = true
	var before, after usage
	var profiled <-chan error
	w.OnOpen = func() {
		before, err = t.read()
		if o.Profiles != "" && t.ops != "" {
			profiled = t.profile(filepath.Join(o.Profiles, fileName(j.name)+".pb.gz"), w.Duration)
		}
	}
	w.OnClose = func() { after, _ = t.read() }
	report, runErr := bench.Run(ctx, w)
	if runErr != nil || err != nil {
		return figure{}, fmt.Errorf("%s: %w", what, firstError(runErr, err))
	}
	if profiled != nil {
		if err := <-profiled; err != nil {
			return figure{}, fmt.Errorf("profile: %w", err)
		}
	}
	f := j.figure(report, after.since(before))
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, "%-50s %-6s %9.0f %s  p50 %.2f ms  p99 %.2f ms  %.2f cores\n", j.name, what, f.rate, j.unit(), f.p50, f.p99, f.cpu)
	}
	return f, nil
}

// remove takes a measurement's files away and waits for the disk: what the file system owes for it would
// fall into the syncs of the next one.
func remove(dir string) {
	_ = os.RemoveAll(dir)
	syscall.Sync()
}

// fileName makes a name of a job fit for a file.
func fileName(job string) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(job), "-"), "-")
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func median(figures []figure, pick func(figure) float64) float64 {
	var v []float64
	for _, f := range figures {
		v = append(v, pick(f))
	}
	sort.Float64s(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// WriteText prints the table of ratios.
func WriteText(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "job\tfloor\tserver\t\tratio\tasked\tp99 floor\tserver\tCPU floor\tserver\tallocs/msg\t\n")
	for _, r := range rows {
		asked, allocated := "", ""
		if r.Asked > 0 {
			asked = fmt.Sprintf(">= %.1f", r.Asked)
		}
		if r.Allocations >= 0 {
			allocated = fmt.Sprintf("%.3f", r.Allocations)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t%.2f\t%s\t%.2f ms\t%.2f ms\t%.0f\t%.0f\t%s\t\n", r.Job, r.Floor, r.Server, r.Unit, r.Ratio,
			asked, r.FloorP99, r.ServerP99, r.FloorCPU, r.ServerCPU, allocated)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "CPU: ms per GB where the unit is MB/s, else per 1000 requests")
	return err
}

// WriteSVG draws the ratios.
func WriteSVG(w io.Writer, rows []Row) error {
	var bars []plot.Bar
	for _, r := range rows {
		bars = append(bars, plot.Bar{Name: r.Job, Value: r.Ratio, Text: fmt.Sprintf("%.2f", r.Ratio)})
	}
	return plot.WriteBars(w, "Throughput as a share of the floor program's", bars)
}
