package compare

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/whippet-mq/whippet/tools/floor"
	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

// target is a running server under measurement.
type target struct {
	address string
	pid     int
	ops     string // URL of the operator's endpoint, "" when it has none
	stop    func()
}

// usage is what a process used up between two readings.
type usage struct {
	cpu     time.Duration
	mallocs float64
}

func startServer(bin, dir string) (*target, error) {
	ops, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := process.New(bin, dir, map[string]string{"WHIPPET_OPS_ADDRESS": ops, "WHIPPET_LOG_LEVEL": "warn"})
	if err := s.Start(); err != nil {
		return nil, err
	}
	return &target{s.Address(), s.Pid(), "http://" + ops, func() { _ = s.Kill() }}, nil
}

// startNodes starts a cluster of three all-role nodes; the target is the one that leads everything at first.
func startNodes(ctx context.Context, bin, dir string) (*target, error) {
	c, err := local.Make(filepath.Join(dir, "cluster"), local.Plan{
		Bin: filepath.Dir(bin), AllRole: 3, Env: map[string]string{"WHIPPET_LOG_LEVEL": "warn"},
	})
	if err != nil {
		return nil, err
	}
	stop := func() {
		for _, m := range c.Members {
			_ = c.Kill(m)
		}
	}
	if err := c.Up(ctx); err != nil {
		stop()
		return nil, err
	}
	p := c.Process(c.Members[0])
	return &target{p.TCP, p.Pid, "http://" + p.Ops, stop}, nil
}

// startQuorum starts the floor as three processes that answer for each other.
func startQuorum(bin, dir string, sync floor.Sync) (*target, error) {
	var backups []*target
	stop := func() {
		for _, b := range backups {
			b.stop()
		}
	}
	args := []string{"--backups"}
	for i := range 2 {
		b, err := startFloor(bin, filepath.Join(dir, strconv.Itoa(i)), sync, "--backup")
		if err != nil {
			stop()
			return nil, err
		}
		backups = append(backups, b)
		args = append(args, b.address)
	}
	first, err := startFloor(bin, dir, sync, args[0], strings.Join(args[1:], ","))
	if err != nil {
		stop()
		return nil, err
	}
	alone := first.stop
	first.stop = func() { alone(); stop() }
	return first, nil
}

func startFloor(bin, dir string, sync floor.Sync, more ...string) (*target, error) {
	cmd := exec.Command(bin, append([]string{"--dir", filepath.Join(dir, "floor"), "--sync", string(sync)}, more...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("floor says %q", line)
	}
	return &target{address, cmd.Process.Pid, "", func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }}, nil
}

// freeAddress finds a port that is free now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// clockTick is the unit of processor time in /proc, fixed on Linux.
const clockTick = 10 * time.Millisecond

// read returns what the process has used since it started.
func (t *target) read() (u usage, err error) {
	if u.cpu, err = cpuTime(t.pid); err == nil && t.ops != "" {
		u.mallocs, err = counter(t.ops+"/metrics", "go_memstats_mallocs_total")
	}
	return u, err
}

// cpuTime is the processor time a process has used.
func cpuTime(pid int) (used time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	for _, i := range []int{11, 12} { // user and system time
		ticks, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(ticks) * clockTick
	}
	return used, nil
}

func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.mallocs - before.mallocs}
}

// profile records where the server spends its time and writes that to a file; go tool pprof shows
// it as a flame graph.
func (t *target) profile(path string, d time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		resp, err := http.Get(fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", t.ops, max(1, int(d.Seconds()))))
		if err != nil {
			done <- err
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, body, 0o644)
		}
		done <- err
	}()
	return done
}

// counter reads one metric without labels.
func counter(url, name string) (float64, error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", url, name)
}
