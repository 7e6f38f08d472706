package conformance

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
)

// Summarize writes a table per area, the failures with their reasons, and the closing line
// "N passed, M failed". It returns M.
func Summarize(w io.Writer, results []Result) int {
	count := map[string]map[Verdict]int{}
	total := map[Verdict]int{}
	sort.Slice(results, func(i, j int) bool { return results[i].Scenario.Name < results[j].Scenario.Name })
	for _, r := range results {
		area := r.Scenario.Area
		if count[area] == nil {
			count[area] = map[Verdict]int{}
		}
		count[area][r.Verdict]++
		total[r.Verdict]++
	}
	areas := make([]string, 0, len(count))
	for a := range count {
		areas = append(areas, a)
	}
	sort.Strings(areas)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "area\tpassed\tfailed\tskipped\tlisted\t\n")
	for _, a := range areas {
		c := count[a]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", a, c[Passed], c[Failed], c[Skipped], c[Listed])
	}
	_ = t.Flush()
	for _, v := range []Verdict{Failed, Skipped, Listed} {
		for _, r := range results {
			if r.Verdict == v {
				fmt.Fprintln(w, Line(r))
			}
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", total[Passed], total[Failed])
	return total[Failed]
}

// Line is one scenario's outcome on one line.
func Line(r Result) string {
	why := r.Scenario.About
	if r.Err != nil {
		why = strings.ReplaceAll(r.Err.Error(), "\n", " ")
	}
	return fmt.Sprintf("%-8s %-36s %6.2fs  %s", r.Verdict, r.Scenario.Name, r.Took.Seconds(), why)
}
