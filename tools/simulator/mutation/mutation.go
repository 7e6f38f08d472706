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
	File    string // from the root of the repository
	Changes []Change
	Profile string // in which it is to be found
	Seeds   int    // within so many seeds
}

// Change is one text of a file and what replaces it.
type Change struct{ Old, New string }

// Found is how a mutation was caught.
type Found struct {
	Seed int // 0: it was not
	Rule string
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

// Apply returns the file's content with the break in it.
func (m *Mutation) Apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	s := string(text)
	for _, c := range m.Changes {
		if n := strings.Count(s, c.Old); n != 1 {
			return nil, fmt.Errorf("mutation %q: its text is %d times in %s: %q", m.Name, n, m.File, c.Old)
		}
		s = strings.Replace(s, c.Old, c.New, 1)
	}
	return []byte(s), nil
}

var failure = regexp.MustCompile(`(?m)^seed (\d+) \w+: FAILED (\S+)`)

// Find builds the simulator with the break in it, in dir, and runs seeds until one fails.
func (m *Mutation) Find(root, dir string) (Found, error) {
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

func (m *Mutation) build(root, dir string) (program string, err error) {
	broken, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	source, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	program = filepath.Join(dir, "simulator")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): source}})
	if err = errors.Join(err, os.WriteFile(source, broken, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-overlay", overlay, "-o", program, "./simulator/cmd/whippet-simulator")
	cmd.Dir = filepath.Join(root, "tools")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutation %q: %w: %s", m.Name, err, out)
	}
	return program, nil
}
