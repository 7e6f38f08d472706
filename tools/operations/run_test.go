package operations

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What "make run" prints works as pasted: it starts the broker, and three lines talk to it.
func TestRunScript(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"bin", "deploy"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("../../deploy/run")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "deploy", "run"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(serverBinary, filepath.Join(root, "bin", "whippet-server")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(root, "bin", "whippet"), "../cli/cmd/whippet").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}

	cmd := exec.Command(filepath.Join(root, "deploy", "run"), "data")
	cmd.Env = append(clean(), "IGGY_TCP_ADDRESS=127.0.0.1:0", "IGGY_HTTP_ADDRESS=127.0.0.1:0", "IGGY_QUIC_ADDRESS=127.0.0.1:0", "IGGY_WEBSOCKET_ADDRESS=127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()

	var printed, try []string
	hints := false
	for lines := bufio.NewScanner(stdout); len(try) < 3 && lines.Scan(); {
		line := lines.Text()
		printed = append(printed, line)
		if hints {
			try = append(try, strings.TrimSpace(line))
		}
		hints = hints || strings.HasPrefix(line, "Try next")
	}
	if len(try) < 3 {
		t.Fatalf("no three lines to try in:\n%s", strings.Join(printed, "\n"))
	}
	contains(t, strings.Join(printed, "\n"), "server running", "tcp ", "ops ", "root-password")

	shell := exec.Command("bash", "-euo", "pipefail", "-c", strings.Join(try, "\n"))
	shell.Dir, shell.Env = root, clean()
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, strings.Join(try, "\n"), out)
	}
	contains(t, string(out), "hello")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(readme), try[1], try[2]) // what people copy is what ran

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the stop: %v", err)
	}
}

// clean is the environment without anything that configures Whippet.
func clean() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "IGGY_") && !strings.HasPrefix(kv, "WHIPPET_") {
			env = append(env, kv)
		}
	}
	return env
}
