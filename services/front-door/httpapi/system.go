package httpapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

type statsJSON struct {
	ProcessID         uint32               `json:"process_id"`
	CPUUsage          float32              `json:"cpu_usage"`
	TotalCPUUsage     float32              `json:"total_cpu_usage"`
	MemoryUsage       string               `json:"memory_usage"`
	TotalMemory       string               `json:"total_memory"`
	AvailableMemory   string               `json:"available_memory"`
	RunTime           uint64               `json:"run_time"`
	StartTime         uint64               `json:"start_time"`
	ReadBytes         string               `json:"read_bytes"`
	WrittenBytes      string               `json:"written_bytes"`
	MessagesSizeBytes string               `json:"messages_size_bytes"`
	Streams           uint32               `json:"streams_count"`
	Topics            uint32               `json:"topics_count"`
	Partitions        uint32               `json:"partitions_count"`
	Segments          uint32               `json:"segments_count"`
	Messages          uint64               `json:"messages_count"`
	Clients           uint32               `json:"clients_count"`
	Groups            uint32               `json:"consumer_groups_count"`
	Hostname          string               `json:"hostname"`
	OSName            string               `json:"os_name"`
	OSVersion         string               `json:"os_version"`
	KernelVersion     string               `json:"kernel_version"`
	ServerVersion     string               `json:"iggy_server_version"`
	ServerSemver      *uint32              `json:"iggy_server_semver"`
	Caches            map[string]cacheJSON `json:"cache_metrics"`
	Threads           uint32               `json:"threads_count"`
	FreeDiskSpace     string               `json:"free_disk_space"`
	TotalDiskSpace    string               `json:"total_disk_space"`
}

type cacheJSON struct {
	Hits     uint64  `json:"hits"`
	Misses   uint64  `json:"misses"`
	HitRatio float32 `json:"hit_ratio"`
}

// getStats serves GET /stats.
func getStats(c *call) error {
	if err := c.plain(); err != nil {
		return err
	}
	return c.read(wire.CmdGetStats, nil, func(b []byte) error {
		s, err := wire.DecodeStats(b)
		if err != nil {
			return err
		}
		out := statsJSON{
			ProcessID: s.ProcessID, CPUUsage: s.CPUUsage, TotalCPUUsage: s.TotalCPUUsage, MemoryUsage: wire.FormatSize(s.MemoryUsage),
			TotalMemory: wire.FormatSize(s.TotalMemory), AvailableMemory: wire.FormatSize(s.AvailableMemory), RunTime: s.RunTime, StartTime: s.StartTime,
			ReadBytes: wire.FormatSize(s.ReadBytes), WrittenBytes: wire.FormatSize(s.WrittenBytes), MessagesSizeBytes: wire.FormatSize(s.MessagesSizeBytes),
			Streams: s.Streams, Topics: s.Topics, Partitions: s.Partitions, Segments: s.Segments, Messages: s.Messages, Clients: s.Clients, Groups: s.Groups,
			Hostname: s.Hostname, OSName: s.OSName, OSVersion: s.OSVersion, KernelVersion: s.KernelVersion, ServerVersion: s.ServerVersion,
			Caches: make(map[string]cacheJSON), Threads: s.Threads, FreeDiskSpace: wire.FormatSize(s.FreeDiskSpace), TotalDiskSpace: wire.FormatSize(s.TotalDiskSpace),
		}
		if s.ServerSemver != 0 {
			out.ServerSemver = &s.ServerSemver
		}
		for _, one := range s.Caches {
			out.Caches[fmt.Sprintf("%d-%d-%d", one.Stream, one.Topic, one.Partition)] = cacheJSON{one.Hits, one.Misses, one.HitRatio}
		}
		return c.json(out)
	})
}

type clusterJSON struct {
	Name  string     `json:"name"`
	Nodes []nodeJSON `json:"nodes"`
}

type nodeJSON struct {
	Name      string    `json:"name"`
	IP        string    `json:"ip"`
	Endpoints portsJSON `json:"endpoints"`
	Role      string    `json:"role"`
	Status    string    `json:"status"`
}

type portsJSON struct {
	TCP       uint16 `json:"tcp"`
	QUIC      uint16 `json:"quic"`
	HTTP      uint16 `json:"http"`
	WebSocket uint16 `json:"websocket"`
}

var roles = map[wire.NodeRole]string{wire.NodeLeader: "leader", wire.NodeFollower: "follower"}

var statuses = map[wire.NodeStatus]string{
	wire.NodeHealthy: "healthy", wire.NodeStarting: "starting", wire.NodeStopping: "stopping",
	wire.NodeUnreachable: "unreachable", wire.NodeMaintenance: "maintenance",
}

// getClusterMetadata serves GET /cluster/metadata.
func getClusterMetadata(c *call) error {
	return c.read(wire.CmdGetClusterMetadata, nil, func(b []byte) error {
		m, err := wire.DecodeClusterMetadata(b)
		if err != nil {
			return err
		}
		out := clusterJSON{Name: m.Name, Nodes: make([]nodeJSON, len(m.Nodes))}
		for i, n := range m.Nodes {
			status, ok := statuses[n.Status]
			if !ok {
				status = "unknown"
			}
			out.Nodes[i] = nodeJSON{n.Name, n.Address, portsJSON{n.TCP, n.QUIC, n.HTTP, n.WebSocket}, roles[n.Role], status}
		}
		return c.json(out)
	})
}

type clientJSON struct {
	ID        uint32  `json:"client_id"`
	UserID    *uint32 `json:"user_id"`
	Address   string  `json:"address"`
	Transport string  `json:"transport"`
	Groups    uint32  `json:"consumer_groups_count"`
}

type clientDetailsJSON struct {
	ID          uint32           `json:"client_id"`
	UserID      *uint32          `json:"user_id"`
	Address     string           `json:"address"`
	Transport   string           `json:"transport"`
	GroupsCount uint32           `json:"consumer_groups_count"`
	Groups      []membershipJSON `json:"consumer_groups"`
}

type membershipJSON struct {
	Stream uint32 `json:"stream_id"`
	Topic  uint32 `json:"topic_id"`
	Group  uint32 `json:"group_id"`
}

var transports = map[wire.Transport]string{
	wire.TransportTCP: "TCP", wire.TransportQUIC: "QUIC", wire.TransportHTTP: "HTTP", wire.TransportWebSocket: "WebSocket",
}

func showClient(r *wire.ClientRecord) clientJSON {
	out := clientJSON{ID: r.ID, Address: r.Address, Transport: transports[r.Transport], Groups: r.GroupsCount}
	if r.UserID != wire.NoUser {
		out.UserID = &r.UserID
	}
	return out
}

// getClients serves GET /clients: the connections of this front-door. HTTP callers have none.
func getClients(c *call) error {
	if err := c.plain(); err != nil {
		return err
	}
	return c.read(wire.CmdGetClients, nil, func(b []byte) error {
		list, err := wire.DecodeClients(b)
		if err != nil {
			return err
		}
		out := make([]clientJSON, len(list))
		for i := range list {
			out[i] = showClient(&list[i])
		}
		return c.json(out)
	})
}

// getClient serves GET /clients/{client}.
func getClient(c *call) error {
	id, err := c.number(0)
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	return c.read(wire.CmdGetClient, wire.GetClientRequest{ClientID: id}.Append(nil), func(b []byte) error {
		if len(b) == 0 {
			return errMissing
		}
		d, err := wire.DecodeClientDetails(b)
		if err != nil {
			return err
		}
		s := showClient(&d.ClientRecord)
		out := clientDetailsJSON{s.ID, s.UserID, s.Address, s.Transport, s.Groups, make([]membershipJSON, len(d.Groups))}
		for i, g := range d.Groups {
			out.Groups[i] = membershipJSON{g.Stream, g.Topic, g.Group}
		}
		return c.json(out)
	})
}

var (
	compressions  = []string{"Stored", "Deflated", "Bzip2", "Zstd", "Lzma", "Xz"} // SnapshotStored and on
	snapshotTypes = map[string]wire.SnapshotType{
		"FilesystemOverview": wire.SnapshotFilesystem, "ProcessList": wire.SnapshotProcesses, "ResourceUsage": wire.SnapshotResourceUsage,
		"Test": wire.SnapshotTest, "ServerLogs": wire.SnapshotServerLogs, "ServerConfig": wire.SnapshotServerConfig, "All": wire.SnapshotAll,
	}
)

// maxSnapshotTypes is how many types one request can name.
const maxSnapshotTypes = 255

// snapshot serves POST /snapshot: a diagnostic archive.
func snapshot(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	var q wire.GetSnapshotRequest
	b.record([]string{"compression", "snapshot_types"}, 2, func(i int) {
		if i == 1 {
			b.list(func() {
				t, ok := snapshotTypes[string(b.str())]
				if !ok || len(q.Types) == maxSnapshotTypes {
					b.unfit("Expected the name of a snapshot type.")
				}
				q.Types = append(q.Types, byte(t))
			})
			return
		}
		at := indexOf(compressions, b.str())
		if at < 0 {
			b.unfit("Expected the name of a compression.")
		}
		q.Compression = wire.SnapshotCompression(at + 1)
	})
	if err := b.end(); err != nil {
		return err
	}
	return c.read(wire.CmdGetSnapshot, q.Append(nil), func(archive []byte) error {
		name := time.Now().UTC().Format("iggy_snapshot_20060102_150405.zip")
		c.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		return c.send(200, "application/zip", archive)
	})
}

// shown are the families of the metrics page: counts that any user may know. Everything else is on
// the operations endpoint.
var shown = []string{"http_requests_total", "streams", "topics", "partitions", "segments", "messages", "users", "clients"}

// metrics serves the metrics page in the OpenMetrics text format.
func metrics(c *call) error {
	families, err := c.api.registry.Gather()
	if err != nil {
		return err
	}
	var out []byte
	for _, f := range families {
		if !listed(shown, f.GetName()) || len(f.GetMetric()) != 1 {
			continue
		}
		m, kind, value := f.GetMetric()[0], "gauge", 0.0
		if m.GetCounter() != nil {
			kind, value = "counter", m.GetCounter().GetValue()
		} else {
			value = m.GetGauge().GetValue()
		}
		name := strings.TrimSuffix(f.GetName(), "_total")
		out = fmt.Appendf(out, "# HELP %s %s\n# TYPE %s %s\n%s ", name, f.GetHelp(), name, kind, f.GetName())
		out = append(strconv.AppendFloat(out, value, 'f', -1, 64), '\n')
	}
	return c.send(200, "text/plain; charset=utf-8", append(out, "# EOF\n"...))
}
