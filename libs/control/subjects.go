package control

import (
	"fmt"
	"strings"
)

// Version of subjects and payloads. Fields and kinds may be added within a version; readers leave out what
// they do not know. Whatever else changes gets another number, and with it other subjects.
const Version = 1

// A subject is whippet.v1.CLUSTER.ROLE.PROCESS.CHANNEL: the name of the cluster as a token, one of the roles, the
// random name of the life of a process, one of the channels. The payload is a Message in JSON. So the account of a
// role can be held to whippet.v1.*.ROLE.>, and a reader chooses with whippet.v1.>, whippet.v1.NAME.> or
// whippet.v1.*.*.*.view.
const prefix = "whippet.v1"

// Roles as they stand in subjects.
const (
	RoleFrontDoor = "front-door"
	RoleMetadata  = "metadata"
	RolePartition = "partition"
	RoleServer    = "server" // all of them in one process
)

// Roles are all that publish.
var Roles = []string{RoleFrontDoor, RoleMetadata, RolePartition, RoleServer}

// Channel is the last part of a subject: what a message is about.
type Channel string

// Channels. A message has events of its channel; metrics has a Snapshot instead.
const (
	ChannelNode      Channel = "node"      // announcements: processes start, are ready, register, stop, are heard
	ChannelView      Channel = "view"      // who leads which groups
	ChannelPlacement Channel = "placement" // moves, drains and their progress
	ChannelClient    Channel = "client"    // evictions
	ChannelStorage   Channel = "storage"   // full disks, damage, loss, states fetched from other members
	ChannelMetrics   Channel = "metrics"   // figures of a process, each second
)

// Channels are all of them.
var Channels = []Channel{ChannelNode, ChannelView, ChannelPlacement, ChannelClient, ChannelStorage, ChannelMetrics}

// Kind says what happened.
type Kind string

// Kinds of events; Kinds says what each means and who says it.
const (
	Starting   Kind = "starting"
	Ready      Kind = "ready"
	Stopping   Kind = "stopping"
	Registered Kind = "registered"
	Heard      Kind = "heard"
	Silent     Kind = "silent"
	Restarted  Kind = "restarted"

	Leads   Kind = "leads"
	Follows Kind = "follows"

	Moving Kind = "moving"

	Evicted Kind = "evicted"

	DiskFull       Kind = "disk_full"
	DiskRoom       Kind = "disk_room"
	Damaged        Kind = "damaged"
	LossAccepted   Kind = "loss_accepted"
	TransferBegan  Kind = "transfer_began"
	TransferEnded  Kind = "transfer_ended"
	TransferFailed Kind = "transfer_failed"
)

// About is what a kind of event means.
type About struct {
	Kind    Kind
	Channel Channel
	From    string // roles that say it
	Says    string // what happened, for documentation
	Fields  string // of Event, besides kind, at and count
}

// Kinds are all kinds of events. deploy/docs/control.md shows this table.
var Kinds = []About{
	{Starting, ChannelNode, "all", "the process starts", ""},
	{Ready, ChannelNode, "all", "the process serves", ""},
	{Stopping, ChannelNode, "all", "the process was asked to stop", ""},
	{Registered, ChannelNode, "partition", "the process got its node id", "node"},
	{Heard, ChannelNode, "metadata, partition, server", "another node that shares groups with this one gives a sign of life again, or for the first time", "node"},
	{Silent, ChannelNode, "metadata, partition, server", "another node is not heard any more: what it leads is led elsewhere", "node"},
	{Restarted, ChannelNode, "metadata, partition, server", "another node has begun a new life", "node"},
	{Leads, ChannelView, "metadata, partition, server", "the process leads groups it did not lead before", "groups, view"},
	{Follows, ChannelView, "metadata, partition, server", "the process leads groups no more that it led", "groups, view"},
	{Moving, ChannelPlacement, "metadata, partition, server", "a task that moves data got on, began or ended", "progress"},
	{Evicted, ChannelClient, "front-door, server", "sessions of clients were ended", "reason"},
	{DiskFull, ChannelStorage, "partition, server", "sends are refused for lack of space", ""},
	{DiskRoom, ChannelStorage, "partition, server", "there is space again", ""},
	{Damaged, ChannelStorage, "metadata, partition, server", "what a disk holds can not be read: the group is led elsewhere, or alone takes no changes", "groups, reason"},
	{LossAccepted, ChannelStorage, "partition, server", "after a power cut acknowledged messages of its last second may be missing", "reason"},
	{TransferBegan, ChannelStorage, "metadata, partition, server", "the state of a group is fetched from another member", "node, groups"},
	{TransferEnded, ChannelStorage, "metadata, partition, server", "it is here", "node, groups"},
	{TransferFailed, ChannelStorage, "metadata, partition, server", "it is not, and is tried again", "node, groups, reason"},
}

var channelOf = func() map[Kind]Channel {
	of := make(map[Kind]Channel, len(Kinds))
	for _, k := range Kinds {
		of[k.Kind] = k.Channel
	}
	return of
}()

// Message is the payload on every subject.
type Message struct {
	V       int       `json:"v"` // Version
	Source  Source    `json:"source"`
	Seq     uint64    `json:"seq"`               // counts the messages of the process from 1: a gap is a loss
	At      int64     `json:"at"`                // µs since the epoch, by the clock of the process
	Dropped uint64    `json:"dropped,omitempty"` // events of the channel that had no room since its last message
	Events  []Event   `json:"events,omitempty"`
	Metrics *Snapshot `json:"metrics,omitempty"`
}

// Source is the process a message is from.
type Source struct {
	Cluster string `json:"cluster"`
	Role    string `json:"role"`
	Process string `json:"process"`        // random, other after a restart
	Node    *uint8 `json:"node,omitempty"` // id of a process with a replica, once it has one
	Host    string `json:"host"`
	Ops     string `json:"ops"` // host:port of its ops endpoint
	Version string `json:"version"`
}

// Event is something that happened, or several alike.
type Event struct {
	Kind   Kind     `json:"kind"`
	At     int64    `json:"at"`               // µs since the epoch, of the first
	Count  uint64   `json:"count"`            // 1 or more
	Node   *uint8   `json:"node,omitempty"`   // another node
	Groups []string `json:"groups,omitempty"` // MetadataGroup, or stream/topic/partition in numbers; the first MaxGroups
	View   uint32   `json:"view,omitempty"`   // the highest
	Reason string   `json:"reason,omitempty"`
	// Progress is that of a task. Of one task the newest counts.
	Progress *Progress `json:"progress,omitempty"`
}

// MetadataGroup names the metadata among groups.
const MetadataGroup = "metadata"

// MaxGroups is how many groups an event names; Count counts them all.
const MaxGroups = 8

// Progress is how far a task is that moves data between nodes.
type Progress struct {
	Task  string  `json:"task"`  // names it: "move 1/2/0", "drain 4"
	Phase string  `json:"phase"` // what it does now; "done" and "failed" end it
	From  []uint8 `json:"from,omitempty"`
	To    []uint8 `json:"to,omitempty"`
	Done  uint64  `json:"done"`           // bytes
	Total uint64  `json:"total"`          // bytes
	Left  int64   `json:"left,omitempty"` // µs it may still take, 0 when nobody can say
}

// GroupName names a partition in events.
func GroupName(stream, topic, partition uint32) string {
	return fmt.Sprintf("%d/%d/%d", stream, topic, partition)
}

// Subject is where a process publishes messages of a channel.
func (s *Source) Subject(c Channel) string {
	return strings.Join([]string{prefix, token(s.Cluster), s.Role, s.Process, string(c)}, ".")
}

// All is the pattern of every subject of a cluster, of all clusters when it is "".
func All(cluster string) string {
	if cluster == "" {
		return prefix + ".>"
	}
	return prefix + "." + token(cluster) + ".>"
}

// token writes a name so that it can stand between the dots of a subject.
func token(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if b.Len() == 0 {
		return "="
	}
	return b.String()
}
