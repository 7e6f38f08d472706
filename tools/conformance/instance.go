package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

// instance is a server, or a cluster, that the runner starts and ends.
type instance interface {
	Server
	bound
	Start() error
	Stop() error
	Kill() error
	Alive() bool
	LastWords() string
}

// Forms are the kinds of clusters scenarios can be played against.
var Forms = []string{"services", "all-role"}

// nodes is how many replicas and nodes the clusters have.
const nodes = 3

// instance prepares a server with its data under dir.
func (r *runner) instance(dir string, env map[string]string) (instance, error) {
	if r.Form == "" {
		return process.New(r.Binary, dir, env), nil
	}
	plan := local.Plan{Bin: r.Binary, Env: env, AllRole: nodes}
	role := local.AllRole
	if r.Form == "services" {
		plan.AllRole, role = 0, local.FrontDoor
		plan.Metadata, plan.Partition, plan.FrontDoor = nodes, nodes, r.Node+1
	}
	c, err := local.Make(dir, plan)
	if err != nil {
		return nil, err
	}
	at, err := c.Find(role, r.Node)
	return &cluster{c, at}, err
}

// cluster is a cluster of local processes as a client sees it who knows one of them.
type cluster struct {
	processes *local.Cluster
	at        local.Member // front-door or node that is spoken to
}

// readyTime is how long a whole cluster may take to be ready, generous for a busy machine.
const readyTime = 60 * time.Second

func (c *cluster) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	return c.processes.Up(ctx)
}

func (c *cluster) Stop() error { return c.processes.Down() }

// Kill ends every process at once.
func (c *cluster) Kill() error {
	var errs []error
	for _, m := range c.processes.Members {
		if c.processes.Process(m).Pid != 0 {
			errs = append(errs, c.processes.Kill(m))
		}
	}
	return errors.Join(errs...)
}

// Restart stops or kills all processes and starts them on their data.
func (c *cluster) Restart(kill bool) error {
	end := c.Stop
	if kill {
		end = c.Kill
	}
	if err := end(); err != nil {
		return err
	}
	return c.Start()
}

func (c *cluster) Address() string { return c.processes.Process(c.at).TCP }

func (c *cluster) Bound(section string) string {
	p := c.processes.Process(c.at)
	return map[string]string{"tcp": p.TCP, "http": p.HTTP, "quic": p.QUIC, "websocket": p.WebSocket}[section]
}

// Alive reports whether all processes run.
func (c *cluster) Alive() bool { return c.dead() == nil }

func (c *cluster) dead() *local.Member {
	for i, p := range c.processes.Status() {
		if p.Pid == 0 {
			return &c.processes.Members[i]
		}
	}
	return nil
}

// LastWords are those of the first process that does not run.
func (c *cluster) LastWords() string {
	m := c.dead()
	if m == nil {
		return ""
	}
	text, _ := os.ReadFile(c.processes.Log(*m))
	return fmt.Sprintf("%s %d: %s", m.Role, m.ID, text[max(0, len(text)-wordsTail):])
}

// wordsTail is how much of a dead process's log is quoted, in bytes.
const wordsTail = 2048
