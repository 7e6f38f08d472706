package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyTime  = 60 * time.Second      // from start to ready, generous for a busy machine
	stopTime   = 15 * time.Second      // from SIGTERM to exit
	readyPause = 10 * time.Millisecond // between two looks for the published addresses
	logTail    = 2048                  // bytes of the log quoted when a server dies
)

// Server is one server process and its data directory.
type Server struct {
	bin, dir string
	env      []string

	mu      sync.Mutex
	cmd     *exec.Cmd
	exited  chan struct{}
	address string
}

// dataDir is absolute too, for the same reason as the program's path.
func dataDir(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		dir = path
	}
	return filepath.Join(dir, "data")
}

// New prepares a server of the binary bin with its data under dir. Root is iggy / iggy unless env
// says otherwise; env adds to or replaces the settings every server here starts with.
func New(bin, dir string, env map[string]string) *Server {
	settings := map[string]string{
		"IGGY_SYSTEM_PATH":       dataDir(dir),
		"IGGY_ROOT_USERNAME":     "iggy",
		"IGGY_ROOT_PASSWORD":     "iggy",
		"IGGY_TCP_ADDRESS":       "127.0.0.1:0",
		"IGGY_HTTP_ADDRESS":      "127.0.0.1:0",
		"IGGY_QUIC_ADDRESS":      "127.0.0.1:0",
		"IGGY_WEBSOCKET_ADDRESS": "127.0.0.1:0",
		"WHIPPET_OPS_ADDRESS":    "127.0.0.1:0",
	}
	for k, v := range env {
		settings[k] = v
	}
	if path, err := filepath.Abs(bin); err == nil {
		bin = path // the process runs in a directory of its own
	}
	s := &Server{bin: bin, dir: dir}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "IGGY_") && !strings.HasPrefix(kv, "WHIPPET_") {
			s.env = append(s.env, kv)
		}
	}
	for k, v := range settings {
		s.env = append(s.env, k+"="+v)
	}
	return s
}

// Start runs the process and returns once it accepts clients.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.Data(), 0o755); err != nil {
		return err
	}
	if err := os.Remove(s.published()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.bin)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = s.env, log, log, s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	s.cmd, s.exited = cmd, exited
	s.address, err = s.awaitReady()
	if err != nil {
		_ = cmd.Process.Kill()
		<-exited
	}
	return err
}

func (s *Server) awaitReady() (string, error) {
	for started := time.Now(); time.Since(started) < readyTime; {
		select {
		case <-s.exited:
			return "", fmt.Errorf("server ended while starting: %v\n%s", s.cmd.ProcessState, s.tail())
		case <-time.After(readyPause):
		}
		text, err := os.ReadFile(s.published())
		if err != nil {
			continue
		}
		address := boundAddress(text, "tcp")
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			return address, nil
		}
	}
	return "", fmt.Errorf("server not ready after %v\n%s", readyTime, s.tail())
}

// boundAddress finds the address of a section.
func boundAddress(toml []byte, of string) string {
	section := ""
	for lines := bufio.NewScanner(bytes.NewReader(toml)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ")
		}
		key, value, _ := strings.Cut(line, "=")
		if section == of && strings.TrimSpace(key) == "address" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// Bound is where a listener of the running server stands, by its section of the configuration: tcp,
// http, quic or websocket. It is "" when the server does not have it.
func (s *Server) Bound(section string) string {
	text, err := os.ReadFile(s.published())
	if err != nil {
		return ""
	}
	return boundAddress(text, section)
}

// Address is where clients connect now.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Data is the data directory, Log the file with everything the server printed.
func (s *Server) Data() string { return dataDir(s.dir) }
func (s *Server) Log() string  { return filepath.Join(s.dir, "server.log") }

func (s *Server) published() string { return filepath.Join(s.Data(), "runtime", "current_config.toml") }

// Pid is the process id of the running server.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// Kill ends the process with SIGKILL.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	<-s.exited
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop asks the process to end with SIGTERM and waits; an exit code other than 0, or none within
// stopTime, is an error.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.exited
		return fmt.Errorf("server did not stop within %v\n%s", stopTime, s.tail())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("server ended with %v\n%s", s.cmd.ProcessState, s.tail())
	}
	return nil
}

// Restart stops or kills the process and starts it on the same data.
func (s *Server) Restart(kill bool) error {
	end := s.Stop
	if kill {
		end = s.Kill
	}
	if err := end(); err != nil {
		return err
	}
	return s.Start()
}

// Alive reports whether the process runs.
func (s *Server) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// LastWords is the beginning of the last panic in the log, else the end of the log.
func (s *Server) LastWords() string {
	b, _ := os.ReadFile(s.Log())
	at := max(bytes.LastIndex(b, []byte("\npanic: ")), bytes.LastIndex(b, []byte("\nfatal error: ")))
	if at < 0 {
		return s.tail()
	}
	return string(b[at:min(len(b), at+logTail)])
}

// tail is the end of the log.
func (s *Server) tail() string {
	b, _ := os.ReadFile(s.Log())
	return string(b[max(0, len(b)-logTail):])
}
