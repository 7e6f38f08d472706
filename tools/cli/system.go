package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

func (a *app) systemCommands() []*cobra.Command {
	return []*cobra.Command{
		a.pingCommand(), a.healthCommand(), a.snapshotCommand(),
		a.command("me", "Show this connection as the server sees it", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
			d, err := c.Me()
			if err != nil {
				return nil, err
			}
			return connectionDetails(d), nil
		}),
		a.command("stats", "Show the server's statistics", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
			s, err := c.Stats()
			if err != nil {
				return nil, err
			}
			return statsRecord(s), nil
		}),
		a.clusterCommand(), a.topCommand(),
		a.command("options [SCOPE]", "List the options of a scope: topic (default), stream or user", cobra.MaximumNArgs(1), describeOptions),
		family("client", "Connections of the server",
			a.command("list", "List all connections", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
				clients, err := c.Clients()
				var out list
				for _, r := range clients {
					out = append(out, connectionRecord(r))
				}
				return out, err
			}),
			a.command("get ID", "Show a connection and the groups it has joined", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
				id, err := number(args[0], "ID")
				if err != nil {
					return nil, err
				}
				d, err := c.GetClient(id)
				if err != nil {
					return nil, err
				}
				return connectionDetails(d), nil
			}),
		),
	}
}

// pingCommand needs no login.
func (a *app) pingCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "ping", Short: "Measure how fast the server answers, without logging in", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.options()
			if err != nil {
				return err
			}
			o.Username, o.Token = "", ""
			c, err := dial(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer c.Close()
			best, total := time.Hour, time.Duration(0)
			for range max(1, count) {
				took, err := timed(c.Ping)
				if err != nil {
					return connectError{err}
				}
				best, total = min(best, took), total+took
			}
			mean := total / time.Duration(max(1, count))
			return a.print(record{{"address", o.Address}, {"count", max(1, count)}, {"best_us", best.Microseconds()}, {"mean_us", mean.Microseconds()}})
		},
	}
	cmd.Flags().IntVarP(&count, "count", "c", 3, "how many pings")
	return cmd
}

func timed(do func() error) (time.Duration, error) {
	started := time.Now()
	err := do()
	return time.Since(started), err
}

func (a *app) snapshotCommand() *cobra.Command {
	var path string
	cmd := a.command("snapshot", "Save a diagnostic archive of the server", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
		archive, err := c.Snapshot(wire.GetSnapshotRequest{Compression: wire.SnapshotDeflated, Types: []byte{byte(wire.SnapshotAll)}})
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, archive, 0o600); err != nil {
			return nil, err
		}
		return record{{"file", path}, {"size", bytesCount(len(archive))}}, nil
	})
	cmd.Flags().StringVarP(&path, "file", "f", "snapshot.zip", "where to")
	return cmd
}

func describeOptions(c *client.Client, args []string) (any, error) {
	scopes := map[string]wire.OptionScope{"topic": wire.ScopeTopic, "stream": wire.ScopeStream, "user": wire.ScopeUser}
	name := "topic"
	if len(args) > 0 {
		name = args[0]
	}
	scope, ok := scopes[name]
	if !ok {
		return nil, usageError{fmt.Errorf("scope %q: want topic, stream or user", name)}
	}
	options, err := c.DescribeOptions(scope)
	var out list
	for _, o := range options {
		out = append(out, record{{"key", o.Key}, {"default", optionText(o.Kind, o.Default)}, {"description", o.Description}})
	}
	return out, err
}

func connectionRecord(c wire.ClientRecord) record {
	transports := map[wire.Transport]string{
		wire.TransportTCP: "tcp", wire.TransportQUIC: "quic", wire.TransportHTTP: "http", wire.TransportWebSocket: "websocket",
	}
	user := any(c.UserID)
	if c.UserID == wire.NoUser {
		user = "none"
	}
	return record{
		{"id", c.ID}, {"user", user}, {"transport", transports[c.Transport]}, {"address", c.Address}, {"groups_count", c.GroupsCount},
	}
}

func connectionDetails(d wire.ClientDetails) record {
	groups := list{}
	for _, g := range d.Groups {
		groups = append(groups, record{{"stream", g.Stream}, {"topic", g.Topic}, {"group", g.Group}})
	}
	return append(connectionRecord(d.ClientRecord), field{"groups", groups})
}

// clusterCommand shows the roster; what else there is about the cluster stands below it.
func (a *app) clusterCommand() *cobra.Command {
	cmd := a.command("cluster", "Show the nodes clients may connect to", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
		m, err := c.Cluster()
		if err != nil {
			return nil, err
		}
		return clusterRecord(m), nil
	})
	cmd.AddCommand(a.eventsCommand())
	cmd.AddCommand(a.placementCommands()...)
	return cmd
}

func nodeStatus(s wire.NodeStatus) string {
	names := []string{"healthy", "starting", "stopping", "unreachable", "under maintenance"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("in state %d", s)
}

func clusterRecord(m wire.ClusterMetadata) record {
	nodes := list{}
	for _, n := range m.Nodes {
		role := "leader"
		if n.Role == wire.NodeFollower {
			role = "follower"
		}
		nodes = append(nodes, record{
			{"name", n.Name}, {"address", n.Address}, {"tcp", n.TCP}, {"quic", n.QUIC}, {"http", n.HTTP},
			{"websocket", n.WebSocket}, {"role", role}, {"status", nodeStatus(n.Status)},
		})
	}
	return record{{"name", m.Name}, {"nodes", nodes}}
}

func statsRecord(s wire.Stats) record {
	return record{
		{"server_version", s.ServerVersion}, {"hostname", s.Hostname}, {"os", s.OSName + " " + s.OSVersion}, {"kernel", s.KernelVersion},
		{"process_id", s.ProcessID}, {"threads", s.Threads}, {"started_at", instant(s.StartTime)}, {"run_time", span(s.RunTime)},
		{"cpu_percent", s.CPUUsage}, {"total_cpu_percent", s.TotalCPUUsage},
		{"memory", bytesCount(s.MemoryUsage)}, {"available_memory", bytesCount(s.AvailableMemory)}, {"total_memory", bytesCount(s.TotalMemory)},
		{"free_disk", bytesCount(s.FreeDiskSpace)}, {"total_disk", bytesCount(s.TotalDiskSpace)},
		{"read", bytesCount(s.ReadBytes)}, {"written", bytesCount(s.WrittenBytes)},
		{"streams", s.Streams}, {"topics", s.Topics}, {"partitions", s.Partitions}, {"segments", s.Segments},
		{"messages", s.Messages}, {"messages_size", bytesCount(s.MessagesSizeBytes)}, {"clients", s.Clients}, {"groups", s.Groups},
	}
}
