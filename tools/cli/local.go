package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/local"
)

// localCommands run a cluster on this machine.
func (a *app) localCommands() *cobra.Command {
	l := &localRun{app: a}
	parent := family("local", "Run a cluster of processes on this machine",
		l.upCommand(),
		l.command("status", "Show the processes", cobra.NoArgs, func(context.Context, *local.Cluster, []string) error { return nil }),
		l.command("down", "Stop all processes; their data stays", cobra.NoArgs, func(_ context.Context, c *local.Cluster, _ []string) error {
			return c.Down()
		}),
		l.command("kill ROLE ID", "End one process with SIGKILL", cobra.ExactArgs(2), l.on((*local.Cluster).Kill)),
		l.command("stop ROLE ID", "Stop one process", cobra.ExactArgs(2), l.on((*local.Cluster).Stop)),
		l.command("start ROLE ID", "Start one process again and wait until it is ready", cobra.ExactArgs(2), l.start),
		l.command("add ROLE", "Add a partition replica (partition) or a front-door (front-door)", cobra.ExactArgs(1), l.add),
	)
	f := parent.PersistentFlags()
	f.StringVar(&l.dir, "dir", "", "directory of the cluster")
	f.BoolVar(&l.json, "json", false, "print the processes as JSON")
	f.DurationVar(&l.wait, "wait", time.Minute, "how long to wait until everything is ready")
	_ = parent.MarkPersistentFlagRequired("dir")
	return parent
}

// localRun is one run of a local command.
type localRun struct {
	app  *app
	dir  string
	json bool
	wait time.Duration
}

func (l *localRun) upCommand() *cobra.Command {
	var p local.Plan
	var env []string
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster, or what does not run of it, and wait until it is ready", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := l.open(p, env)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), l.wait)
			defer cancel()
			if err := c.Up(ctx); err != nil {
				return err
			}
			return l.print(c)
		},
	}
	f := cmd.Flags()
	f.IntVar(&p.Metadata, "metadata", 0, "metadata replicas (default 3)")
	f.IntVar(&p.Partition, "partition", 0, "partition replicas (default 3)")
	f.IntVar(&p.FrontDoor, "front-door", 0, "front-doors (default 2)")
	f.IntVar(&p.AllRole, "all-role", 0, "nodes with all roles, instead of services")
	f.BoolVar(&p.NATS, "nats", false, "a NATS server too, which all processes tell what happens")
	f.IntVar(&p.BasePort, "base-port", 0, "first of the ports to use (default: free ones)")
	f.StringArrayVar(&env, "env", nil, "setting of every process, NAME=VALUE")
	f.StringVar(&p.Bin, "bin", "", "directory of the binaries (default: this program's)")
	return cmd
}

// open finds the cluster or makes it as planned.
func (l *localRun) open(p local.Plan, env []string) (*local.Cluster, error) {
	if _, err := os.Stat(filepath.Join(l.dir, "cluster.json")); err == nil {
		return local.Open(l.dir)
	}
	p.Env = map[string]string{}
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--env %q: want NAME=VALUE", kv)}
		}
		p.Env[name] = value
	}
	if p.AllRole == 0 {
		p.Metadata, p.Partition, p.FrontDoor = orElse(p.Metadata, 3), orElse(p.Partition, 3), orElse(p.FrontDoor, 2)
	}
	if p.Bin == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p.Bin = filepath.Dir(self)
	}
	c, err := local.Make(l.dir, p)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func (l *localRun) command(use, short string, args cobra.PositionalArgs, do func(context.Context, *local.Cluster, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: usage(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := local.Open(l.dir)
			if err != nil {
				return err
			}
			if err := do(cmd.Context(), c, args); err != nil {
				return err
			}
			return l.print(c)
		},
	}
}

// on makes an action on the member that the arguments name.
func (l *localRun) on(do func(*local.Cluster, local.Member) error) func(context.Context, *local.Cluster, []string) error {
	return func(_ context.Context, c *local.Cluster, args []string) error {
		m, err := member(c, args)
		if err != nil {
			return err
		}
		return do(c, m)
	}
}

func member(c *local.Cluster, args []string) (local.Member, error) {
	id, err := number(args[1], "ID")
	if err != nil {
		return local.Member{}, err
	}
	return c.Find(local.Role(args[0]), int(id))
}

func (l *localRun) start(ctx context.Context, c *local.Cluster, args []string) error {
	m, err := member(c, args)
	if err != nil {
		return err
	}
	return l.run(ctx, c, m)
}

func (l *localRun) add(ctx context.Context, c *local.Cluster, args []string) error {
	m, err := c.Add(local.Role(args[0]))
	if err != nil {
		return usageError{err}
	}
	return l.run(ctx, c, m)
}

func (l *localRun) run(ctx context.Context, c *local.Cluster, m local.Member) error {
	if err := c.Start(m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	return c.Await(ctx, m)
}

// print shows the processes of the cluster.
func (l *localRun) print(c *local.Cluster) error {
	if l.json {
		e := json.NewEncoder(l.app.Out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"processes": c.Status()})
	}
	var out list
	for _, p := range c.Status() {
		state := "stopped"
		switch {
		case p.Ready:
			state = "ready"
		case p.Pid != 0:
			state = "running"
		}
		out = append(out, record{
			{"role", string(p.Role)}, {"id", p.ID}, {"state", state}, {"pid", p.Pid}, {"tcp", cmp.Or(p.TCP, p.NATS)}, {"http", p.HTTP}, {"ops", p.Ops},
		})
	}
	return l.app.print(out)
}
