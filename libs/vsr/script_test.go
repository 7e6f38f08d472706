package vsr_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the actual results into the scenario files")

// TestScenarios plays every testdata/*.txt. A scenario is a list of steps; a step is one command line,
// a line of four dashes and the expected lines, up to an empty line; a step that says nothing is the
// command line alone. Lines that start with # are kept.
//
//	go test ./vsr -run Scenarios -rewrite
//
// writes down what happens now, for a reader to judge.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(string(want))
			switch {
			case bytes.Equal(got, want):
			case *rewrite:
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s\n%s", file, firstDifference(got, want))
			}
		})
	}
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got  %s\n want %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// play runs a scenario and returns it with the actual results.
func play(script string) []byte {
	var out bytes.Buffer
	s := newStage()
	skip, said := false, false
	for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
		if said && !skip && line != "" && line != "----" {
			fmt.Fprintln(&out) // what a step says ends with an empty line
		}
		said = said && line == "----"
		switch {
		case skip && line != "":
		case line == "":
			skip = false
			fmt.Fprintln(&out)
		case strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
		case line == "----":
			skip = true
		default:
			fmt.Fprintln(&out, line)
			if text := s.run(line); text != "" {
				fmt.Fprintf(&out, "----\n%s", text)
				said = true
			}
		}
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n')
}

// arguments are the key=value words of a command line; a word without = has the value 1.
type arguments map[string]uint64

func parse(line string) (command string, a arguments) {
	words := strings.Fields(line)
	a = arguments{}
	for _, word := range words[1:] {
		key, text, found := strings.Cut(word, "=")
		value, err := strconv.ParseUint(text, 0, 64)
		if found && err != nil {
			panic(fmt.Sprintf("%q: %v", line, err))
		}
		if !found {
			value = 1
		}
		a[key] = value
	}
	return words[0], a
}

// or returns the argument or a default.
func (a arguments) or(key string, value uint64) uint64 {
	if v, ok := a[key]; ok {
		return v
	}
	return value
}
