package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is one line of "go test -json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64
}

// record shows a run and counts its tests, subtests included. A package that fails without a failed
// test of its own (it does not build, it panics, it runs out of time) counts as one failure.
func record(in io.Reader, out io.Writer) (counts, error) {
	var sum counts
	output := map[string]*strings.Builder{} // package, or package and test
	packages := map[string]*counts{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // the go command's own words
			continue
		}
		name := e.Package + e.ImportPath + " " + e.Test
		text := output[name]
		if text == nil {
			text = &strings.Builder{}
			output[name] = text
		}
		c := packages[e.Package]
		if c == nil {
			c = &counts{}
			packages[e.Package] = c
		}
		switch e.Action {
		case "output", "build-output":
			text.WriteString(e.Output)
			continue
		case "build-fail":
			fmt.Fprint(out, text.String())
		case "pass", "fail", "skip":
			finish(out, e, c, text.String())
			if e.Test == "" {
				sum = counts{sum.passed + c.passed, sum.failed + c.failed, sum.skipped + c.skipped}
			}
		default:
			continue
		}
		delete(output, name)
	}
	return sum, lines.Err()
}

// finish counts one ended test or package and shows what there is to see of it.
func finish(out io.Writer, e event, c *counts, text string) {
	switch {
	case e.Test != "" && e.Action == "pass":
		c.passed++
	case e.Test != "" && e.Action == "skip":
		c.skipped++
		fmt.Fprintf(out, "skip %s %s: %s\n", e.Package, e.Test, reason(text))
	case e.Test != "":
		c.failed++
		fmt.Fprint(out, text)
	case e.Action == "fail":
		if c.failed == 0 {
			c.failed = 1
			fmt.Fprint(out, text)
		}
		fmt.Fprintf(out, "FAIL %s: %d failed, %d passed, %.1f s\n", e.Package, c.failed, c.passed, e.Elapsed)
	case e.Action == "pass" && c.passed > 0:
		fmt.Fprintf(out, "ok   %s: %d passed, %.1f s\n", e.Package, c.passed, e.Elapsed)
	}
}

// reason finds what a skipped test said.
func reason(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
