package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"
)

const (
	stopTime = 10 * time.Second
	pause    = 20 * time.Millisecond
	logTail  = 2048 // bytes of the log quoted when a process dies
)

// Process is a member as it runs now; Pid is 0 when it does not.
type Process struct {
	Role      Role   `json:"role"`
	ID        int    `json:"id"`
	Pid       int    `json:"pid"`
	Ready     bool   `json:"ready"`
	Ops       string `json:"ops"`
	Data      string `json:"data"`
	TCP       string `json:"tcp,omitempty"`
	HTTP      string `json:"http,omitempty"`
	QUIC      string `json:"quic,omitempty"`
	WebSocket string `json:"websocket,omitempty"`
	Replica   string `json:"replica,omitempty"`
	Service   string `json:"service,omitempty"`
	NATS      string `json:"nats,omitempty"`
}

// Dir is the directory of the cluster.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) home(m Member) string {
	return filepath.Join(c.dir, fmt.Sprintf("%s-%d", m.Role, m.ID))
}

// Data is the data directory of a member, Log the file with all it printed.
func (c *Cluster) Data(m Member) string { return filepath.Join(c.home(m), "data") }

// Log is the file with everything a member printed.
func (c *Cluster) Log(m Member) string { return filepath.Join(c.home(m), "log") }

// published is the file with the addresses a member bound. A partition replica lives in a slot of its
// data directory; here it is always the first.
func (c *Cluster) published(m Member) string {
	dir := c.Data(m)
	if m.Role == Partition {
		dir = filepath.Join(dir, "slots", "0")
	}
	return filepath.Join(dir, "runtime", "current_config.toml")
}

// Start runs a member without waiting until it is ready.
func (c *Cluster) Start(m Member) error {
	if pid := c.pid(m); pid != 0 {
		return fmt.Errorf("%s %d runs already, pid %d", m.Role, m.ID, pid)
	}
	if err := os.MkdirAll(c.Data(m), 0o750); err != nil {
		return err
	}
	if err := os.Remove(c.published(m)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(c.Log(m), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(c.Bin, m.Role.binary()), m.arguments()...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = c.environ(m), log, log, c.home(m)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := cmd.Start
	if c.Within != nil {
		start = func() error { return c.Within(m, cmd.Start) }
	}
	if err := start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // no zombie while this process lives
	return os.WriteFile(filepath.Join(c.home(m), "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o640)
}

// pid is the process id of a member that runs, else 0. A number that went to another program since does
// not count.
func (c *Cluster) pid(m Member) int {
	text, err := os.ReadFile(filepath.Join(c.home(m), "pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || ended(string(stat)) {
		return 0
	}
	// A process on its way out has no directory any more and may still hold its locks.
	if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && at != c.home(m) {
		return 0
	}
	return pid
}

// ended reports whether a line of /proc/PID/stat is that of a process that nobody has asked about yet: the
// state comes behind the name in brackets, the number of threads is 17 fields further on. While threads
// are left, files may still be open.
func ended(stat string) bool {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	return len(fields) > 17 && fields[0] == "Z" && (fields[17] == "1" || fields[17] == "0")
}

// Status tells what every member is doing.
func (c *Cluster) Status() []Process {
	all := make([]Process, 0, len(c.Members))
	for _, m := range c.Members {
		all = append(all, c.Process(m))
	}
	return all
}

// Process tells what one member is doing.
func (c *Cluster) Process(m Member) Process {
	p := Process{Role: m.Role, ID: m.ID, Pid: c.pid(m), Data: c.Data(m)}
	if m.Role == NATS {
		p.NATS, p.Ops = c.NATS(), m.Ports[natsMonitor]
		p.Ready = p.Pid != 0 && answers(p.Ops, "/healthz")
		return p
	}
	text, err := os.ReadFile(c.published(m))
	if err != nil || p.Pid == 0 {
		return p
	}
	var config struct {
		TCP, HTTP, QUIC, WebSocket, Replica, Service, Ops struct {
			Address string
			Enabled *bool
		}
	}
	if toml.Unmarshal(text, &config) != nil {
		return p
	}
	p.Ops, p.Replica, p.Service = config.Ops.Address, config.Replica.Address, config.Service.Address
	if m.Role == FrontDoor || m.Role == AllRole {
		p.TCP, p.HTTP, p.QUIC, p.WebSocket = config.TCP.Address, config.HTTP.Address, config.QUIC.Address, config.WebSocket.Address
	}
	if m.Role == FrontDoor {
		p.Replica, p.Service = "", ""
	}
	p.Ready = answers(p.Ops, "/readyz")
	return p
}

// answers reports whether an endpoint is content.
func answers(ops, path string) bool {
	client := http.Client{Timeout: time.Second}
	r, err := client.Get("http://" + ops + path)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// Await returns when all given members are ready, or the first has died, or ctx ends.
func (c *Cluster) Await(ctx context.Context, members ...Member) error {
	for _, m := range members {
		for !c.Process(m).Ready {
			if c.pid(m) == 0 {
				return fmt.Errorf("%s %d ended while starting\n%s", m.Role, m.ID, c.tail(m))
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s %d is not ready\n%s", m.Role, m.ID, c.tail(m))
			case <-time.After(pause):
			}
		}
	}
	return nil
}

func (c *Cluster) tail(m Member) string {
	text, _ := os.ReadFile(c.Log(m))
	return string(text[max(0, len(text)-logTail):])
}

// Up starts what does not run and waits until everything is ready.
func (c *Cluster) Up(ctx context.Context) error {
	for _, m := range c.Members {
		if c.pid(m) != 0 {
			continue
		}
		if err := c.Start(m); err != nil {
			return err
		}
	}
	return c.Await(ctx, c.Members...)
}

// Signal sends a signal to a member; it is an error when the member does not run.
func (c *Cluster) Signal(m Member, s syscall.Signal) error {
	pid := c.pid(m)
	if pid == 0 {
		return fmt.Errorf("%s %d does not run", m.Role, m.ID)
	}
	return syscall.Kill(pid, s)
}

// Kill ends a member with SIGKILL and waits until it is gone.
func (c *Cluster) Kill(m Member) error {
	if err := c.Signal(m, syscall.SIGKILL); err != nil {
		return err
	}
	return c.gone(m)
}

func (c *Cluster) gone(m Member) error {
	for deadline := time.Now().Add(stopTime); time.Now().Before(deadline); time.Sleep(pause / 4) {
		if c.pid(m) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s %d does not end", m.Role, m.ID)
}

// terminate asks a member to end. One that has ended by then needs no asking.
func (c *Cluster) terminate(m Member) error {
	if c.pid(m) == 0 {
		return nil
	}
	if err := c.Signal(m, syscall.SIGTERM); err != nil && c.pid(m) != 0 {
		return err
	}
	return nil
}

// Stop ends a member with SIGTERM, and with SIGKILL if it does not obey.
func (c *Cluster) Stop(m Member) error {
	if c.pid(m) == 0 {
		return nil
	}
	if err := c.terminate(m); err != nil {
		return err
	}
	if err := c.gone(m); err != nil {
		return errors.Join(err, c.Kill(m))
	}
	return nil
}

// Down stops every member: front-doors first, so that nothing is asked of a replica that is gone.
func (c *Cluster) Down() error {
	var errs []error
	for _, role := range []Role{FrontDoor, AllRole, Partition, Metadata, NATS} {
		for _, m := range c.Members {
			if m.Role == role {
				errs = append(errs, c.terminate(m))
			}
		}
		for _, m := range c.Members {
			if m.Role == role {
				errs = append(errs, c.Stop(m))
			}
		}
	}
	return errors.Join(errs...)
}
