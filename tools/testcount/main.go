package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: testcount record FILE | add FILE NAME STATUS | lines FILE NAME | total FILE")

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	command, file, rest := args[0], args[1], args[2:]
	switch {
	case command == "record" && len(rest) == 0:
		c, err := record(in, out)
		if err != nil {
			return err
		}
		return keep(file, c)
	case command == "add" && len(rest) == 2:
		c := counts{passed: 1}
		if rest[1] != "0" {
			c = counts{failed: 1}
			fmt.Fprintf(out, "FAIL %s (status %s)\n", rest[0], rest[1])
		}
		return keep(file, c)
	case command == "lines" && len(rest) == 1:
		return keep(file, lines(in, out, rest[0]))
	case command == "total" && len(rest) == 0:
		return total(file, out)
	}
	return errUsage
}

// counts are the results of one or more runs.
type counts struct{ passed, failed, skipped int }

// keep adds the counts to the file. A run with failures is an error, so that a pipe shows it.
func keep(file string, c counts) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, c.passed, c.failed, c.skipped)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if c.failed > 0 {
		return fmt.Errorf("%d failed", c.failed)
	}
	return nil
}

func total(file string, out io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var sum, c counts
	for {
		if _, err := fmt.Fscan(f, &c.passed, &c.failed, &c.skipped); err != nil {
			break
		}
		sum.passed, sum.failed, sum.skipped = sum.passed+c.passed, sum.failed+c.failed, sum.skipped+c.skipped
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped)
	switch {
	case sum.failed > 0:
		return fmt.Errorf("%d failed", sum.failed)
	case sum.passed == 0:
		return errors.New("nothing ran")
	}
	return nil
}

var closing = regexp.MustCompile(`(?m)^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$`)

// lines copies a foreign run's output, but for its closing line, whose counts it returns. A run
// without a closing line has failed.
func lines(in io.Reader, out io.Writer, name string) counts {
	text, err := io.ReadAll(in)
	found := closing.FindAllSubmatchIndex(text, -1)
	if err != nil || len(found) == 0 {
		fmt.Fprintf(out, "%sFAIL %s: no closing line\n", text, name)
		return counts{failed: 1}
	}
	last := found[len(found)-1]
	number := func(group int) int {
		if last[2*group] < 0 {
			return 0
		}
		n, _ := strconv.Atoi(string(text[last[2*group]:last[2*group+1]])) // the pattern has digits only
		return n
	}
	c := counts{number(1), number(2), number(3)}
	fmt.Fprintf(out, "%s%s: passed %d, failed %d, skipped %d\n", text[:last[0]], name, c.passed, c.failed, c.skipped)
	return c
}
