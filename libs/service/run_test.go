package service

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestMain makes the test binary a program of its own: signals need a process.
func TestMain(m *testing.M) {
	mode := os.Getenv("SERVICE_TEST_PROGRAM")
	if mode == "" {
		os.Exit(m.Run())
	}
	os.Exit(Run(context.Background(), program(mode), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

func program(mode string) Program {
	return Program{Name: "whippet-test", About: "a program for tests", OpsAddress: "127.0.0.1:9199", Serve: func(ctx context.Context, r *Runtime) error {
		switch mode {
		case "fails":
			return errors.New("some trouble")
		case "untrusted":
			return WithExit(ExitStorage, errors.New("sync failed"))
		}
		r.OnReload(func(*Config) { r.Log.Warn("reload seen") })
		if err := r.Ready(Bound{TCP: "127.0.0.1:1"}); err != nil {
			return err
		}
		<-ctx.Done()
		r.Log.Info("drained")
		return nil
	}}
}

func environ(t *testing.T, more ...string) []string {
	return append([]string{"IGGY_SYSTEM_PATH=" + t.TempDir(), "WHIPPET_OPS_ADDRESS=127.0.0.1:0"}, more...)
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		mode    string
		args    []string
		environ []string
		code    int
		words   []string
	}{
		{"fails", nil, nil, ExitFailed, []string{"some trouble"}},
		{"untrusted", nil, nil, ExitStorage, []string{"sync failed"}},
		{"serves", nil, []string{"IGGY_TCP_ADDRESS=x"}, ExitConfig, []string{"tcp.address", "host:port"}},
		{"serves", []string{"--nonsense"}, nil, ExitConfig, []string{"nonsense"}},
		{"serves", []string{"--version"}, nil, ExitDone, []string{"whippet-test development"}},
		{"serves", []string{"--help"}, nil, ExitDone, []string{"a program for tests", "--replica-id", "--fresh", "--config"}},
	} {
		var out bytes.Buffer
		code := Run(t.Context(), program(c.mode), c.args, environ(t, c.environ...), &out, &out)
		if code != c.code {
			t.Errorf("%s %v %v: exit %d, want %d\n%s", c.mode, c.args, c.environ, code, c.code, &out)
		}
		contains(t, out.String(), c.words...)
	}
}

func TestExitCodeOfErrors(t *testing.T) {
	wrapped := fmt.Errorf("boot: %w", WithExit(ExitStorage, io.ErrUnexpectedEOF))
	if ExitCode(wrapped) != ExitStorage || !errors.Is(wrapped, io.ErrUnexpectedEOF) || ExitCode(nil) != ExitDone || ExitCode(io.EOF) != ExitFailed ||
		ExitCode(errors.Join(io.EOF, &ConfigError{})) != ExitConfig {
		t.Error("wrong exit code")
	}
}

// A program that does not drain is ended with an error within the promised five seconds.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runtime{Log: hclog.NewNullLogger(), start: (&conditions{all: map[string]*Condition{}}).get("start")}
		began := time.Now()
		code, err := r.await(make(chan error))
		if took := time.Since(began); code != ExitFailed || took > 5*time.Second || took < 4*time.Second {
			t.Errorf("exit %d after %v", code, took)
		}
		contains(t, fmt.Sprint(err), "not drained")
	})
}

// process is a running copy of the test binary.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startProcess(t *testing.T, more ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = environ(t, append(more, "SERVICE_TEST_PROGRAM=serves")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{cmd, bufio.NewScanner(out)}
}

// until reads the log up to the first line that holds the words.
func (p *process) until(t *testing.T, words string) string {
	t.Helper()
	var seen []string
	for p.lines.Scan() {
		seen = append(seen, p.lines.Text())
		if strings.Contains(p.lines.Text(), words) {
			return p.lines.Text()
		}
	}
	t.Fatalf("%q was never logged, only:\n%s", words, strings.Join(seen, "\n"))
	return ""
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := startProcess(t)
		ops := regexp.MustCompile(`ops=(\S+)`).FindStringSubmatch(p.until(t, "server running"))[1]
		response, err := http.Get("http://" + ops + "/readyz")
		if err != nil || response.StatusCode != 200 {
			t.Errorf("/readyz: %v, %v", response, err)
		}
		_ = p.cmd.Process.Signal(syscall.SIGHUP)
		p.until(t, "reload seen")
		_ = p.cmd.Process.Signal(sig)
		p.until(t, "drained")
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v: %v, want exit 0", sig, err)
		}
	}
}

func TestProcessLogsJSON(t *testing.T) {
	p := startProcess(t, "WHIPPET_LOG_FORMAT=json")
	contains(t, p.until(t, "server running"), `"@message":"server running"`, `"tcp":"127.0.0.1:1"`)
}

// The service manager hears of the start and the stop; one that is gone is no trouble.
func TestNotify(t *testing.T) {
	path := t.TempDir() + "/notify"
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	notify("READY=1")
	got := make([]byte, 64)
	n, err := socket.Read(got)
	if err != nil || string(got[:n]) != "READY=1" {
		t.Errorf("got %q, %v", got[:n], err)
	}
	_ = socket.Close()
	notify("STOPPING=1")
}
