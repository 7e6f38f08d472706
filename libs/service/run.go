package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// stopLimit is how long a program may take from the first signal to the return of Serve. The rest
// of the promised five seconds is for the process around it.
const stopLimit = 4500 * time.Millisecond

// Program is what a main package hands to Run.
type Program struct {
	Name       string // name of the binary
	About      string // one sentence for --help
	OpsAddress string // where the ops endpoint stands unless ops.address is given; empty: its default
	// Serve starts the program, calls r.Ready once its listeners accept, and works until ctx is
	// done; then it drains and returns nil. An error ends the process with its ExitCode.
	Serve func(ctx context.Context, r *Runtime) error
}

// Runtime is what a program stands on while it runs.
type Runtime struct {
	Config *Config
	Log    hclog.Logger
	Ops    *Ops

	start  *Condition
	mu     sync.Mutex
	reload []func(*Config)
}

// Ready says that every listener accepts: it writes runtime/current_config.toml, makes /readyz
// depend on the other conditions alone and logs the line "server running".
func (r *Runtime) Ready(b Bound) error {
	b.Ops = r.Ops.Address()
	if err := r.Config.WriteCurrent(b); err != nil {
		return fmt.Errorf("runtime configuration: %w", err)
	}
	r.start.Hold()
	pairs := []any{"data", r.Config.System.Path, "ops", b.Ops}
	for _, listener := range []struct{ name, address string }{{"tcp", b.TCP}, {"quic", b.QUIC}, {"http", b.HTTP}, {"websocket", b.WebSocket}} {
		if listener.address != "" {
			pairs = append(pairs, listener.name, listener.address)
		}
	}
	r.Log.Info("server running", pairs...)
	notify("READY=1")
	return nil
}

// OnReload adds a function that SIGHUP calls with the configuration as it reads then. The log level
// follows by itself; certificates are the listeners' business.
func (r *Runtime) OnReload(f func(*Config)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reload = append(r.reload, f)
}

// Run is the whole life of a process: flags, configuration, logger, ops endpoint, Serve, stop. It
// returns the exit code. SIGINT and SIGTERM, or the end of ctx, ask for the stop.
func Run(ctx context.Context, p Program, args, environ []string, stdout, stderr io.Writer) int {
	config, warnings, err := Load(args, environ)
	switch {
	case errors.Is(err, ErrHelp):
		fmt.Fprintf(stdout, "%s: %s\n\nUsage: %s [flags]\n\n%s\nSettings: deploy/docs/configuration.md\n", p.Name, p.About, p.Name, flagsHelp)
		return ExitDone
	case errors.Is(err, ErrVersion):
		fmt.Fprintln(stdout, VersionLine(p.Name))
		return ExitDone
	case err != nil:
		fmt.Fprintf(stderr, "%s: bad configuration\n%v\n", p.Name, err)
		return ExitConfig
	}
	if p.OpsAddress != "" && !config.Explicit("ops.address") {
		config.Ops.Address = p.OpsAddress
	}
	log := NewLogger(config, p.Name, stdout)
	for _, w := range warnings {
		log.Warn("configuration", "name", w.Name, "warning", w.Text)
	}
	boundMemory(config, environ)
	code, err := run(ctx, p, config, log, func() (*Config, error) {
		fresh, _, err := Load(args, os.Environ())
		return fresh, err
	})
	if err != nil {
		log.Error("ended", "error", err, "exit_code", code)
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	}
	return code
}

func run(ctx context.Context, p Program, config *Config, log hclog.Logger, again func() (*Config, error)) (int, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)

	ops, err := NewOps(config, log)
	if err != nil {
		return ExitFailed, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = ops.Close(closing)
	}()
	r := &Runtime{Config: config, Log: log, Ops: ops, start: ops.Condition("start")}
	log.Info("starting", "version", Version, "commit", Commit, "ops", ops.Address())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, r) }()
	for {
		select {
		case err := <-served:
			return ExitCode(err), err
		case <-hup:
			r.reloadConfig(again)
		case <-ctx.Done():
			return r.await(served)
		}
	}
}

// await gives Serve its time to drain.
func (r *Runtime) await(served <-chan error) (int, error) {
	r.start.Fail("stopping")
	r.Log.Info("stopping")
	notify("STOPPING=1")
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case err := <-served:
		if err == nil {
			r.Log.Info("stopped")
		}
		return ExitCode(err), err
	case <-limit.C:
		return ExitFailed, fmt.Errorf("not drained within %v", stopLimit)
	}
}

func (r *Runtime) reloadConfig(again func() (*Config, error)) {
	fresh, err := again()
	if err != nil {
		r.Log.Error("reload refused, the running configuration stays", "error", err)
		return
	}
	r.Log.SetLevel(hclog.LevelFromString(fresh.System.Logging.Level))
	r.mu.Lock()
	calls := r.reload
	r.mu.Unlock()
	for _, f := range calls {
		f(fresh)
	}
	r.Log.Info("reloaded", "level", fresh.System.Logging.Level)
}

// boundMemory makes the collector work harder before the process outgrows its buffer budget: twice
// the budget and 256 MiB, unless GOMEMLIMIT says otherwise.
func boundMemory(c *Config, environ []string) {
	for _, line := range environ {
		if len(line) > len("GOMEMLIMIT=") && line[:len("GOMEMLIMIT=")] == "GOMEMLIMIT=" {
			return
		}
	}
	debug.SetMemoryLimit(2*int64(c.Limits.Memory) + 256<<20)
}
