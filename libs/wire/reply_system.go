package wire

import "math"

// Stats answers get stats (client-wire §10.1).
type Stats struct {
	ProcessID         uint32
	CPUUsage          float32 // percent of one core
	TotalCPUUsage     float32
	MemoryUsage       uint64 // bytes
	TotalMemory       uint64
	AvailableMemory   uint64
	RunTime           uint64 // microseconds
	StartTime         uint64 // microseconds since the epoch
	ReadBytes         uint64
	WrittenBytes      uint64
	MessagesSizeBytes uint64
	Streams           uint32
	Topics            uint32
	Partitions        uint32
	Segments          uint32
	Messages          uint64
	Clients           uint32
	Groups            uint32
	Hostname          string
	OSName            string
	OSVersion         string
	KernelVersion     string
	ServerVersion     string
	ServerSemver      uint32 // StatsVersion, 0 when absent
	Caches            []CacheStats
	Threads           uint32
	FreeDiskSpace     uint64 // bytes
	TotalDiskSpace    uint64
}

// CacheStats is how one partition's cache did, 32 bytes.
type CacheStats struct {
	Stream, Topic, Partition uint32
	Hits, Misses             uint64
	HitRatio                 float32
}

// Append writes s's wire form behind dst.
func (s *Stats) Append(dst []byte) []byte {
	dst = appendF32(appendF32(appendU32(dst, s.ProcessID), s.CPUUsage), s.TotalCPUUsage)
	for _, v := range [...]uint64{
		s.MemoryUsage, s.TotalMemory, s.AvailableMemory, s.RunTime, s.StartTime,
		s.ReadBytes, s.WrittenBytes, s.MessagesSizeBytes,
	} {
		dst = appendU64(dst, v)
	}
	dst = appendU32(appendU32(appendU32(appendU32(dst, s.Streams), s.Topics), s.Partitions), s.Segments)
	dst = appendU32(appendU32(appendU64(dst, s.Messages), s.Clients), s.Groups)
	for _, text := range [...]string{s.Hostname, s.OSName, s.OSVersion, s.KernelVersion, s.ServerVersion} {
		dst = appendStr32(dst, text)
	}
	dst = appendU32(appendU32(dst, s.ServerSemver), uint32(len(s.Caches)))
	for _, c := range s.Caches {
		dst = appendU32(appendU32(appendU32(dst, c.Stream), c.Topic), c.Partition)
		dst = appendF32(appendU64(appendU64(dst, c.Hits), c.Misses), c.HitRatio)
	}
	return appendU64(appendU64(appendU32(dst, s.Threads), s.FreeDiskSpace), s.TotalDiskSpace)
}

// DecodeStats reads the reply of get stats; bytes behind it are ignored.
func DecodeStats(b []byte) (Stats, error) {
	r := reader{rest: b}
	s := Stats{
		ProcessID: r.u32(), CPUUsage: r.f32(), TotalCPUUsage: r.f32(),
		MemoryUsage: r.u64(), TotalMemory: r.u64(), AvailableMemory: r.u64(), RunTime: r.u64(), StartTime: r.u64(),
		ReadBytes: r.u64(), WrittenBytes: r.u64(), MessagesSizeBytes: r.u64(),
		Streams: r.u32(), Topics: r.u32(), Partitions: r.u32(), Segments: r.u32(),
		Messages: r.u64(), Clients: r.u32(), Groups: r.u32(),
		Hostname: string(r.str32()), OSName: string(r.str32()), OSVersion: string(r.str32()),
		KernelVersion: string(r.str32()), ServerVersion: string(r.str32()), ServerSemver: r.u32(),
		Caches: repeat(&r, r.u32(), func(r *reader) CacheStats {
			return CacheStats{
				Stream: r.u32(), Topic: r.u32(), Partition: r.u32(), Hits: r.u64(), Misses: r.u64(), HitRatio: r.f32(),
			}
		}),
		Threads: r.u32(), FreeDiskSpace: r.u64(), TotalDiskSpace: r.u64(),
	}
	return s, r.err()
}

func (r *reader) f32() float32 { return math.Float32frombits(r.u32()) }

func appendF32(dst []byte, v float32) []byte { return appendU32(dst, math.Float32bits(v)) }

// NodeRole is a node's part in the cluster as the roster shows it.
type NodeRole uint8

// Node roles.
const (
	NodeLeader   NodeRole = 0
	NodeFollower NodeRole = 1
)

// NodeStatus is a node's condition as the roster shows it.
type NodeStatus uint8

// Node statuses that clients can decode.
const (
	NodeHealthy     NodeStatus = 0
	NodeStarting    NodeStatus = 1
	NodeStopping    NodeStatus = 2
	NodeUnreachable NodeStatus = 3
	NodeMaintenance NodeStatus = 4
)

// ClusterNode is one node of the roster; port 0 means that transport is off.
// Layout: name:str32 ip:str32 tcp:u16 quic:u16 http:u16 websocket:u16 role:u8 status:u8.
type ClusterNode struct {
	Name      string
	Address   string // IP or host name, without a port
	TCP       uint16
	QUIC      uint16
	HTTP      uint16
	WebSocket uint16
	Role      NodeRole
	Status    NodeStatus
}

// Append writes n's wire form behind dst.
func (n ClusterNode) Append(dst []byte) []byte {
	dst = appendStr32(appendStr32(dst, n.Name), n.Address)
	dst = appendU16(appendU16(appendU16(appendU16(dst, n.TCP), n.QUIC), n.HTTP), n.WebSocket)
	return append(dst, byte(n.Role), byte(n.Status))
}

func (r *reader) clusterNode() ClusterNode {
	return ClusterNode{
		Name: string(r.str32()), Address: string(r.str32()),
		TCP: r.u16(), QUIC: r.u16(), HTTP: r.u16(), WebSocket: r.u16(),
		Role: NodeRole(r.u8()), Status: NodeStatus(r.u8()),
	}
}

// ClusterMetadata answers get cluster metadata: the roster.
type ClusterMetadata struct {
	Name  string
	Nodes []ClusterNode
}

// Append writes m's wire form behind dst: name:str32 count:u32 node × count.
func (m ClusterMetadata) Append(dst []byte) []byte {
	return appendAll(appendU32(appendStr32(dst, m.Name), uint32(len(m.Nodes))), m.Nodes)
}

// DecodeClusterMetadata reads a roster, which must fill b.
func DecodeClusterMetadata(b []byte) (ClusterMetadata, error) {
	r := reader{rest: b}
	m := ClusterMetadata{Name: string(r.str32()), Nodes: repeat(&r, r.u32(), (*reader).clusterNode)}
	return m, r.end()
}

// Transport is how a client is connected.
type Transport uint8

// Transports; TLS counts as its carrier.
const (
	TransportTCP       Transport = 1
	TransportQUIC      Transport = 2
	TransportHTTP      Transport = 3
	TransportWebSocket Transport = 4
)

// NoUser is the user id of a connection that has not logged in.
const NoUser uint32 = 0xffffffff

// ClientRecord is one connection in a list.
// Layout: client_id:u32 user_id:u32 transport:u8 address:str32 groups_count:u32 (client-wire §10.1).
type ClientRecord struct {
	ID          uint32 // low 32 bits of the connection id
	UserID      uint32 // NoUser before login
	Transport   Transport
	Address     string // "ip:port"
	GroupsCount uint32
}

// Append writes c's wire form behind dst.
func (c ClientRecord) Append(dst []byte) []byte {
	dst = append(appendU32(appendU32(dst, c.ID), c.UserID), byte(c.Transport))
	return appendU32(appendStr32(dst, c.Address), c.GroupsCount)
}

func (r *reader) clientRecord() ClientRecord {
	return ClientRecord{
		ID: r.u32(), UserID: r.u32(), Transport: Transport(r.u8()), Address: string(r.str32()), GroupsCount: r.u32(),
	}
}

// DecodeClients reads records to the end of b: a list carries no memberships.
func DecodeClients(b []byte) ([]ClientRecord, error) { return decodeAll(b, (*reader).clientRecord) }

// GroupMembership is one group a client has joined, by number.
type GroupMembership struct{ Stream, Topic, Group uint32 }

// Append writes m's wire form behind dst.
func (m GroupMembership) Append(dst []byte) []byte {
	return appendU32(appendU32(appendU32(dst, m.Stream), m.Topic), m.Group)
}

// ClientDetails is a connection with its memberships, the reply of get me and get client.
type ClientDetails struct {
	ClientRecord
	Groups []GroupMembership
}

// Append writes d's wire form behind dst; the record's count must be true.
func (d ClientDetails) Append(dst []byte) []byte {
	return appendAll(d.ClientRecord.Append(dst), d.Groups)
}

// DecodeClientDetails reads a ClientDetails, which must fill b.
func DecodeClientDetails(b []byte) (ClientDetails, error) {
	r := reader{rest: b}
	d := ClientDetails{ClientRecord: r.clientRecord()}
	d.Groups = repeat(&r, d.GroupsCount, func(r *reader) GroupMembership {
		return GroupMembership{Stream: r.u32(), Topic: r.u32(), Group: r.u32()}
	})
	return d, r.end()
}

// OptionRecord describes one option. Layout: key:name8 kind:u8 default:blk32 description:str32.
type OptionRecord struct {
	Key         string
	Kind        ValueKind
	Default     []byte // in Kind's encoding
	Description string
}

// Append writes o's wire form behind dst.
func (o OptionRecord) Append(dst []byte) []byte {
	dst = append(appendStr8(dst, o.Key), byte(o.Kind))
	return appendStr32(appendStr32(dst, o.Default), o.Description)
}

// DecodeOptionCatalog reads the reply of describe options, which must fill b: count:u32 and records.
func DecodeOptionCatalog(b []byte) ([]OptionRecord, error) {
	r := reader{rest: b}
	records := repeat(&r, r.u32(), func(r *reader) OptionRecord {
		return OptionRecord{
			Key: string(r.name8()), Kind: ValueKind(r.u8()),
			Default: append([]byte(nil), r.blk32()...), Description: string(r.str32()),
		}
	})
	return records, r.end()
}
