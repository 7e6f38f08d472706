package mutation

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Mutation is one deliberate break.
type Mutation struct {
	Name    string // what is broken
	Dir     string // package it is in, from the root of the repository
	Changes []Change
	Profile string // in which it is to be found
	Seeds   int    // within so many seeds
	Tests   string // or by which tests, where the simulator does not have what is broken: a directory, a blank, a pattern
}

// Change is one text of a file and what replaces it.
type Change struct{ Old, New string }

// Found is how a mutation was caught.
type Found struct {
	Seed int    // 0: it was not, or by a test
	Rule string // or the test, "" if it was not
}

// Root is the directory of the repository that holds the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("mutation: not inside the repository")
		}
	}
	return "", err
}

// Apply finds the files with the texts and returns their content with the break in it, by path.
func (m *Mutation) Apply(root string) (broken map[string]string, err error) {
	files, err := filepath.Glob(filepath.Join(root, m.Dir, "*.go"))
	if err != nil {
		return nil, err
	}
	source := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(file, "_test.go") {
			source[file] = string(text)
		}
	}
	broken = map[string]string{}
	for _, c := range m.Changes {
		count := 0
		for file, text := range source {
			if n := strings.Count(text, c.Old); n > 0 {
				count += n
				source[file] = strings.Replace(text, c.Old, c.New, 1)
				broken[file] = source[file]
			}
		}
		if count != 1 {
			return nil, fmt.Errorf("mutation %q: its text is %d times in %s: %q", m.Name, count, m.Dir, c.Old)
		}
	}
	return broken, nil
}

var failure = regexp.MustCompile(`(?m)^seed (\d+) \w+: FAILED (\S+)`)

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// Find builds the simulator with the break in it, in dir, and runs seeds until one fails; or it runs the tests.
func (m *Mutation) Find(root, dir string) (Found, error) {
	if m.Tests != "" {
		return m.test(root, dir)
	}
	program, err := m.build(root, dir)
	if err != nil {
		return Found{}, err
	}
	out, err := exec.Command(program, "run", "--first", "--profile", m.Profile, "--seeds", fmt.Sprintf("1-%d", m.Seeds)).CombinedOutput()
	if match := failure.FindSubmatch(out); match != nil {
		seed, err := strconv.Atoi(string(match[1]))
		return Found{Seed: seed, Rule: string(match[2])}, err
	}
	if err != nil {
		return Found{}, fmt.Errorf("mutation %q: %w: %s", m.Name, err, out)
	}
	return Found{}, nil
}

// test runs the tests with the break in the code.
func (m *Mutation) test(root, dir string) (Found, error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return Found{}, err
	}
	where, which, _ := strings.Cut(m.Tests, " ")
	cmd := exec.Command("go", "test", "-overlay", overlay, "-count", "1", "-run", "^("+which+")$", ".")
	cmd.Dir = filepath.Join(root, where)
	out, err := cmd.CombinedOutput()
	if match := failedTest.FindSubmatch(out); match != nil {
		return Found{Rule: string(match[1])}, nil
	}
	if err != nil {
		return Found{}, fmt.Errorf("mutation %q: %w: %s", m.Name, err, out)
	}
	return Found{}, nil
}

func (m *Mutation) build(root, dir string) (program string, err error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "simulator")
	cmd := exec.Command("go", "build", "-overlay", overlay, "-o", program, "./simulator/cmd/whippet-simulator")
	cmd.Dir = filepath.Join(root, "tools")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutation %q: %w: %s", m.Name, err, out)
	}
	return program, nil
}

// overlay writes the broken files into dir, with what tells the compiler of them.
func (m *Mutation) overlay(root, dir string) (path string, err error) {
	broken, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range broken {
		replace[file] = filepath.Join(dir, filepath.Base(file))
		err = errors.Join(err, os.WriteFile(replace[file], []byte(text), 0o600))
	}
	list, jsonErr := json.Marshal(map[string]map[string]string{"Replace": replace})
	path = filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, jsonErr, os.WriteFile(path, list, 0o600))
}
