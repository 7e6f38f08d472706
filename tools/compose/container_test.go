package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// container is one of a project.
type container struct {
	project     *project
	id, name    string
	service     string
	removedFrom map[string][]string // networks it was cut off from, with its names there
}

// containers are those of the project, those that ended included.
func (p *project) containers() (all []*container) {
	p.t.Helper()
	out, err := docker("ps", "-a", "--no-trunc", "--filter", "label=com.docker.compose.project="+p.name(),
		"--format", `{{.ID}} {{.Names}} {{.Label "com.docker.compose.service"}}`)
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		c := &container{project: p, removedFrom: map[string][]string{}}
		if _, err := fmt.Sscan(line, &c.id, &c.name, &c.service); err != nil {
			p.t.Fatalf("docker ps: %q", line)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *container) int { return strings.Compare(a.name, b.name) })
	return all
}

// of are the containers of services whose names begin so.
func (p *project) of(prefix string) (all []*container) {
	for _, c := range p.containers() {
		if strings.HasPrefix(c.service, prefix) {
			all = append(all, c)
		}
	}
	return all
}

// do runs a docker command on the container.
func (c *container) do(command string, args ...string) {
	c.project.t.Helper()
	if _, err := docker(append(append(strings.Fields(command), args...), c.id)...); err != nil {
		c.project.t.Fatal(err)
	}
}

// state is what docker tells of a container.
type state struct {
	Image string
	State struct {
		Status   string
		Pid      int
		ExitCode int
		Health   struct{ Status string }
	}
	Config     struct{ Image, User string }
	HostConfig struct {
		ReadonlyRootfs bool
		CapDrop        []string
		Privileged     bool
		SecurityOpt    []string
		Memory         int64
		NanoCpus       int64
		PidsLimit      int64
	}
	NetworkSettings struct {
		Networks map[string]struct{ Aliases []string }
	}
}

func (c *container) inspect() (s state) {
	c.project.t.Helper()
	out, err := docker("inspect", "--format", "{{json .}}", c.id)
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err != nil {
		c.project.t.Fatal(err)
	}
	return s
}

// awaitHealthy waits for its health check.
func (c *container) awaitHealthy() {
	c.project.t.Helper()
	c.project.await(c.name+" is healthy", func() bool { return c.inspect().State.Health.Status == "healthy" })
}

// cut takes the container off a network of the project.
func (c *container) cut(network string) {
	network = c.project.name() + "_" + network
	c.removedFrom[network] = c.inspect().NetworkSettings.Networks[network].Aliases
	c.do("network disconnect", network)
}

// join puts it back where it was cut off, under the names it had.
func (c *container) join() {
	for network, names := range c.removedFrom {
		var args []string
		for _, name := range names {
			args = append(args, "--alias", name)
		}
		c.do("network connect", append(args, network)...)
	}
	clear(c.removedFrom)
}

// dial connects to a port of the container from within: over its own loopback.
func (c *container) dial(ctx context.Context, _, address string) (net.Conn, error) {
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.inspect().State.Pid))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() { // a thread for this alone: it ends with the goroutine and never comes back from the other network
		runtime.LockOSThread()
		if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// opsPorts are those of the services.
var opsPorts = map[string]string{"metadata": "9192", "partition": "9193", "front": "9191"}

// metric is a metric of the container's process without labels, 0 where it has none or does not answer.
func (c *container) metric(name string) (value float64) {
	kind, _, _ := strings.Cut(c.service, "-")
	client := http.Client{Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	r, err := client.Get("http://127.0.0.1:" + opsPorts[kind] + "/metrics")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			_, _ = fmt.Sscan(rest, &value)
		}
	}
	return value
}

// metadataPrimary leads the metadata; the others follow it.
func (p *project) metadataPrimary() (primary *container, backups []*container) {
	p.t.Helper()
	p.await("one metadata primary", func() bool {
		primary, backups = nil, nil
		for _, c := range p.of("metadata-") {
			if c.metric("whippet_metadata_primary") == 1 {
				primary = c
			} else {
				backups = append(backups, c)
			}
		}
		return primary != nil && len(backups) == 2
	})
	return primary, backups
}
