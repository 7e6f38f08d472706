package coverage

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// core is the package in which every block is to be reached.
const core = "github.com/whippet-mq/whippet/libs/vsr"

// aside are files of it that are not about decisions: names, queries, the limits of a boot record.
var aside = []string{"names.go", "report.go", "group.go", "input.go", "output.go", "replica.go", "pipeline.go"}

// Block is a piece of code that always runs as a whole.
type Block struct {
	File      string
	Line, End int
	Text      string // the line that opens it and the first in it
}

// Profiles are the campaigns that are run.
var profiles = []string{"safety", "liveness", "power"}

// Run builds the instrumented simulator in dir, runs the seeds 1 to seeds of every profile, and returns
// the blocks that were never reached, without those in Known.
func Run(root, dir string, seeds int) (missed []Block, blocks int, err error) {
	program, data := filepath.Join(dir, "simulator"), filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, 0, err
	}
	const command = "./simulator/cmd/whippet-simulator" // instrumented too, for it writes the counts
	build := exec.Command("go", "build", "-cover", "-coverpkg", core+","+command, "-o", program, command)
	build.Dir = filepath.Join(root, "tools")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, 0, fmt.Errorf("coverage: %w: %s", err, out)
	}
	for _, profile := range profiles {
		cmd := exec.Command(program, "run", "--profile", profile, "--seeds", fmt.Sprintf("1-%d", seeds))
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+data)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, 0, fmt.Errorf("coverage: %w: %s", err, out)
		}
	}
	text := filepath.Join(dir, "coverage.txt")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", data, "-o", text).CombinedOutput(); err != nil {
		return nil, 0, fmt.Errorf("coverage: %w: %s", err, out)
	}
	all, err := read(root, text)
	for _, b := range all {
		if !known(&b) {
			missed = append(missed, b)
		}
	}
	return missed, len(all), err
}

// read returns the blocks of Files that have no count.
func read(root, file string) (missed []Block, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		position, counts, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasSuffix(counts, " 0") {
			continue
		}
		name, span, _ := strings.Cut(position, ":")
		if path.Dir(name) != core || slices.Contains(aside, path.Base(name)) {
			continue
		}
		from, to, _ := strings.Cut(span, ",")
		b := Block{File: path.Base(name), Line: line(from), End: line(to)}
		if b.Text, err = b.source(root); err != nil {
			return nil, err
		}
		missed = append(missed, b)
	}
	return missed, nil
}

func line(at string) int {
	text, _, _ := strings.Cut(at, ".")
	n, _ := strconv.Atoi(text) // the Go tool wrote it
	return n
}

// source is the line that opens the block, and the first one in it.
func (b *Block) source(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "libs/vsr", b.File))
	if err != nil {
		return "", err
	}
	lines := bytes.Split(text, []byte("\n"))
	opens := strings.TrimSpace(string(lines[b.Line-1]))
	for n := b.Line + 1; n <= b.End && n <= len(lines); n++ {
		s := strings.TrimSpace(string(lines[n-1]))
		if s != "" && s != "}" && !strings.HasPrefix(s, "//") {
			return opens + " " + s, nil
		}
	}
	return opens, nil
}
