package observe

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/tools/local"
)

var (
	block   = regexp.MustCompile("(?ms)^ *```console( reader)?\n(.*?)^ *```$")
	command = regexp.MustCompile(`(?m)^ *\$ (.+)$`)
	ourTool = regexp.MustCompile(`\bwhippet((?: [a-z]+)+)`)
)

// TestPages runs the commands of the operators' pages, each page in a directory of its own with the binaries and
// deploy in it. Of commands that need machines of the reader those of our own have to exist.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	bin := built(t)
	for program, dir := range map[string]string{"whippet": "cli/cmd/whippet", "whippet-bench": "bench/cmd/whippet-bench"} {
		build := exec.Command("go", "build", "-o", filepath.Join(bin, program), "./"+dir)
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, page := range []string{"install.md", "size.md", "secure.md", "upgrade.md", "what-if.md"} {
		t.Run(page, func(t *testing.T) { runPage(t, bin, page) })
	}
	books, err := filepath.Glob(filepath.Join(pages, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, book := range append(books, "../../deploy/docs/install.md", "../../deploy/docs/upgrade.md") {
		exist(t, bin, book)
	}
}

func runPage(t *testing.T, bin, page string) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("../../deploy/docs", page))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		if b[1] != "" {
			continue
		}
		for _, line := range command.FindAllStringSubmatch(b[2], -1) {
			script += line[1] + "\n"
		}
	}
	dir := t.TempDir()
	deploy, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"bin": bin, "deploy": deploy} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if c, err := local.Open(filepath.Join(dir, "cluster")); err == nil {
			_ = c.Down()
		}
	})
	bash := exec.CommandContext(t.Context(), "bash", "-x", "-c", script)
	bash.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "WHIPPET_") && !strings.HasPrefix(kv, "IGGY_") {
			bash.Env = append(bash.Env, kv)
		}
	}
	if out, err := bash.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", page, err, out[max(0, len(out)-3000):])
	}
}

// exist wants the commands of our own tool that a page has its reader run.
func exist(t *testing.T, bin, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		if b[1] == "" {
			continue
		}
		for _, m := range ourTool.FindAllStringSubmatch(b[2], -1) {
			args := append(strings.Fields(m[1]), "--help")
			if out, err := exec.Command(filepath.Join(bin, "whippet"), args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "whippet "+strings.Join(args[:len(args)-1], " ")) {
				t.Errorf("%s: there is no whippet%s: %v", page, m[1], err)
			}
		}
	}
}
