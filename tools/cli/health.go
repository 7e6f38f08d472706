package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// healthCommand asks either as a client does, or at an ops port, which has no login: that of any service, as
// health checks of containers and service managers do.
func (a *app) healthCommand() *cobra.Command {
	var ops, url string
	var settled bool
	cmd := a.command("health", "Check that the server does its work; exit code 0 when it does", cobra.NoArgs, healthy)
	asClient := cmd.RunE
	cmd.Long = "Without --ops: log in, read, and look whether all nodes of the roster are well.\n" +
		"With --ops: ask /healthz and /readyz of one process, without a login. Exit code 1: it says that it is not\n" +
		"well, or not ready; 3: it does not answer.\n" +
		"With --settled as well: 1 too while a partition that the process hosts does not fully take part yet: before that\n" +
		"no other replica should be stopped.\n" +
		"With --url: the same of another program that says by a status other than 200 that it is not well."
	cmd.Flags().StringVar(&ops, "ops", "", "host:port of the ops endpoint of one process")
	cmd.Flags().BoolVar(&settled, "settled", false, "with --ops, of a partition replica: are all its copies up to date?")
	cmd.Flags().StringVar(&url, "url", "", "address of a page that is there while a program is well")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case ops != "" && url != "":
			return usageError{errors.New("--ops and --url: one of them")}
		case settled && ops == "":
			return usageError{errors.New("--settled is for --ops")}
		case ops != "":
			return a.probe(cmd.Context(), ops, settled)
		case url != "":
			return a.probePage(cmd.Context(), url)
		}
		return asClient(cmd, args)
	}
	return cmd
}

// healthy asks for everything a client needs: an answer, a login, the metadata and a roster whose nodes are
// all well.
func healthy(c *client.Client, _ []string) (any, error) {
	ping, err := timed(c.Ping)
	if err != nil {
		return nil, err
	}
	read, err := timed(func() error { _, err := c.Me(); return err })
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	m, err := c.Cluster()
	if err != nil {
		return nil, fmt.Errorf("roster: %w", err)
	}
	for _, n := range m.Nodes {
		if n.Status != wire.NodeHealthy {
			return nil, fmt.Errorf("node %s (%s) is %s", n.Name, n.Address, nodeStatus(n.Status))
		}
	}
	return record{{"healthy", true}, {"ping_us", ping.Microseconds()}, {"read_us", read.Microseconds()}, {"nodes", len(m.Nodes)}}, nil
}

// probe asks an ops endpoint whether its process is well and ready.
func (a *app) probe(ctx context.Context, ops string, settled bool) error {
	host, port, err := net.SplitHostPort(ops)
	if err != nil {
		return usageError{fmt.Errorf("--ops %q: want host:port", ops)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() { // as a listener is written
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	started := time.Now()
	for _, path := range []string{"/healthz", "/readyz"} {
		text, err := ask(ctx, "http://"+net.JoinHostPort(host, port)+path)
		if err != nil {
			return err
		}
		if text != "" {
			return fmt.Errorf("%s%s: %s", ops, path, text)
		}
	}
	if settled {
		if err := askSettled(ctx, "http://"+net.JoinHostPort(host, port)+"/metrics"); err != nil {
			return err
		}
	}
	return a.print(record{{"healthy", true}, {"ready", true}, {"took_us", time.Since(started).Microseconds()}})
}

// probePage asks one page of a program that is not ours.
func (a *app) probePage(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	started := time.Now()
	text, err := ask(ctx, url)
	if err != nil {
		return err
	}
	if text != "" {
		return fmt.Errorf("%s: %s", url, text)
	}
	return a.print(record{{"healthy", true}, {"took_us", time.Since(started).Microseconds()}})
}

// probeText bounds what a failing endpoint may say.
const probeText = 4 << 10

// askSettled reads from a page of metrics whether all partitions take part.
func askSettled(ctx context.Context, url string) error {
	r, err := get(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	const name = "whippet_partitions_unsettled "
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), name); found && value == "0" {
			return nil
		} else if found {
			return fmt.Errorf("%s partitions do not fully take part yet", value)
		}
	}
	return fmt.Errorf("%s does not say how many partitions take part", url)
}

// get asks for a page. No proxy is asked on the way.
func get(ctx context.Context, url string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, usageError{err}
	}
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return nil, connectError{err}
	}
	return r, nil
}

// ask returns what an endpoint complains about, "" when it is content.
func ask(ctx context.Context, url string) (string, error) {
	r, err := get(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode == http.StatusOK {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, probeText))
	if err != nil {
		return "", connectError{err}
	}
	return fmt.Sprintf("%s: %s", r.Status, strings.TrimSpace(string(text))), nil
}
