package frontdoor

import (
	"os"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// getMe serves GetMe: the own connection with its groups.
func (s *Session) getMe() action { return s.answer(s.appendDetails(s.reset(), s)) }

// getClient serves GetClient. Only connections of this front-door are known.
func (s *Session) getClient() action {
	q, err := wire.DecodeGetClient(s.body)
	if !s.can(metadata.RightReadServers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	if err != nil {
		return s.empty()
	}
	other := s.core.clients.get(q.ClientID)
	if other == nil {
		return s.empty()
	}
	return s.answer(s.appendDetails(s.reset(), other))
}

// getClients serves GetClients: the connections of this front-door by id, without memberships.
func (s *Session) getClients() action {
	if !s.can(metadata.RightReadServers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	out := s.reset()
	for _, other := range s.core.clients.all() {
		record, _ := s.clientRecord(other)
		out = record.Append(out)
	}
	return s.answer(out)
}

func (s *Session) appendDetails(out []byte, other *Session) []byte {
	record, groups := s.clientRecord(other)
	out = record.Append(out)
	for _, g := range groups {
		out = wire.GroupMembership{Stream: g.Stream, Topic: g.Topic, Group: g.Group}.Append(out)
	}
	return out
}

// clientRecord describes a connection in the request's view.
func (s *Session) clientRecord(other *Session) (wire.ClientRecord, []metadata.GroupKey) {
	record := wire.ClientRecord{ID: other.clientID(), UserID: wire.NoUser, Transport: other.transport, Address: other.peer}
	b := other.binding.Load()
	if b == nil || b.superseded.Load() {
		return record, nil
	}
	groups := s.view.Memberships(b.client)
	record.UserID, record.GroupsCount = b.user, uint32(len(groups))
	return record, groups
}

// getClusterMetadata serves GetClusterMetadata.
func (s *Session) getClusterMetadata() action {
	return s.answer(s.core.roster(s.peer).Append(s.reset()))
}

// roster is what a client at peer is told of the nodes. Where nobody says otherwise that is one node, this
// process: whoever asks is where it should be, and everything is forwarded inside.
func (c *Core) roster(peer string) wire.ClusterMetadata {
	if c.deps.Roster != nil {
		return c.deps.Roster(peer)
	}
	return wire.ClusterMetadata{Name: c.cfg.Cluster, Nodes: []wire.ClusterNode{c.ownNode()}}
}

// ownNode is this process as a roster of one shows it.
func (c *Core) ownNode() wire.ClusterNode {
	n := c.cfg.Node
	return wire.ClusterNode{
		Name: n.Name, Address: n.IP, TCP: n.TCP, QUIC: n.QUIC, HTTP: n.HTTP, WebSocket: n.WebSocket,
		Role: wire.NodeLeader, Status: wire.NodeHealthy,
	}
}

// getStats serves GetStats: this process and its machine, the metadata's counts and the partitions'
// facts.
func (s *Session) getStats() action {
	if !s.can(metadata.RightReadServers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	s.groups = s.groups[:0]
	for _, stream := range s.view.Streams() {
		s.groups = appendGroups(s.groups, stream)
	}
	return s.then(actFacts, (*Session).statsFacts)
}

func (s *Session) statsFacts() action { return s.then(actStats, (*Session).stats) }

func (s *Session) stats() action {
	var t totals
	known := s.facts
	for _, stream := range s.view.Streams() {
		var one totals
		one, known = s.core.sumStream(stream, known)
		t.add(one)
	}
	counts, h := s.view.Counts(), &s.host
	stats := wire.Stats{
		ProcessID: uint32(os.Getpid()), CPUUsage: h.CPU, TotalCPUUsage: h.TotalCPU, MemoryUsage: h.Memory,
		TotalMemory: h.TotalMemory, AvailableMemory: h.AvailableMemory, RunTime: h.RunTime, StartTime: h.StartTime,
		ReadBytes: h.ReadBytes, WrittenBytes: h.WrittenBytes, MessagesSizeBytes: t.size,
		Streams: uint32(counts.Streams), Topics: uint32(counts.Topics), Partitions: uint32(counts.Partitions),
		Segments: t.segments, Messages: t.messages, Clients: uint32(s.core.clients.len()), Groups: uint32(counts.Groups),
		Hostname: h.Hostname, OSName: h.OS, OSVersion: h.OSVersion, KernelVersion: h.Kernel,
		ServerVersion: s.core.cfg.Version, ServerSemver: s.core.cfg.Semver,
		Threads: h.Threads, FreeDiskSpace: h.FreeDisk, TotalDiskSpace: h.TotalDisk,
	}
	return s.answer(stats.Append(s.reset()))
}

// getSnapshot serves GetSnapshot: a diagnostic archive.
func (s *Session) getSnapshot() action {
	q, err := wire.DecodeGetSnapshot(s.body)
	if !s.can(metadata.RightReadServers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	if err != nil {
		return s.refused(asCode(err))
	}
	s.archiveSpec = archiveSpec{stored: q.Compression == wire.SnapshotStored}
	for _, t := range q.Types {
		if wire.SnapshotType(t) == wire.SnapshotAll {
			s.archiveSpec.types = []wire.SnapshotType{
				wire.SnapshotFilesystem, wire.SnapshotProcesses, wire.SnapshotResourceUsage, wire.SnapshotServerLogs, wire.SnapshotServerConfig,
			}
			break
		}
		s.archiveSpec.types = append(s.archiveSpec.types, wire.SnapshotType(t))
	}
	return s.then(actSnapshot, (*Session).archived)
}

func (s *Session) archived() action {
	if s.archiveErr != nil {
		return s.refused(asCode(s.archiveErr))
	}
	return s.answer(append(s.reset(), s.archive...))
}
