package metadata

import (
	"cmp"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Right is something a user may be allowed to do (client-semantics §3.2).
type Right uint8

const (
	RightReadServers   Right = iota // GetStats, GetClients, GetClient, GetSnapshot
	RightManageServers              // where partitions are
	RightReadUsers                  // GetUsers, GetUser of another
	RightManageUsers                // user administration, ChangePassword of another
	RightListStreams                // GetStreams
	RightReadStream                 // GetStream
	RightCreateStream               // CreateStream
	RightManageStream               // Update, Delete, PurgeStream
	RightListTopics                 // GetTopics
	RightReadTopic                  // GetTopic, every consumer group command but Sync
	RightCreateTopic                // CreateTopic
	RightManageTopic                // Update, Delete, PurgeTopic, partitions, segments
	RightPoll                       // PollMessages, consumer offsets
	RightSend                       // SendMessages
	rightCount
)

// grant lists the bits any of which gives a right, per layer.
type grant struct {
	global wire.GlobalRights
	stream wire.StreamRights
	topic  wire.TopicRights
}

const (
	anyStreams = wire.GlobalManageStreams | wire.GlobalReadStreams
	anyTopics  = anyStreams | wire.GlobalManageTopics | wire.GlobalReadTopics
	sAnyTopics = wire.StreamManage | wire.StreamRead | wire.StreamManageTopics | wire.StreamReadTopics
)

var grants = [rightCount]grant{
	RightReadServers:   {global: wire.GlobalManageServers | wire.GlobalReadServers},
	RightManageServers: {global: wire.GlobalManageServers},
	RightReadUsers:     {global: wire.GlobalManageUsers | wire.GlobalReadUsers},
	RightManageUsers:   {global: wire.GlobalManageUsers},
	RightListStreams:   {global: anyStreams},
	RightReadStream:    {global: anyStreams, stream: wire.StreamManage | wire.StreamRead},
	RightCreateStream:  {global: wire.GlobalManageStreams},
	RightManageStream:  {global: wire.GlobalManageStreams, stream: wire.StreamManage},
	RightListTopics:    {global: anyTopics, stream: sAnyTopics},
	RightReadTopic:     {global: anyTopics, stream: sAnyTopics, topic: wire.TopicManage | wire.TopicRead},
	RightCreateTopic:   {global: wire.GlobalManageStreams | wire.GlobalManageTopics, stream: wire.StreamManage | wire.StreamManageTopics},
	RightManageTopic: {global: wire.GlobalManageStreams | wire.GlobalManageTopics, stream: wire.StreamManage | wire.StreamManageTopics,
		topic: wire.TopicManage},
	RightPoll: {global: anyTopics | wire.GlobalPollMessages, stream: sAnyTopics | wire.StreamPollMessages,
		topic: wire.TopicManage | wire.TopicRead | wire.TopicPollMessages},
	RightSend: {global: wire.GlobalManageStreams | wire.GlobalManageTopics | wire.GlobalSendMessages,
		stream: wire.StreamManage | wire.StreamManageTopics | wire.StreamSendMessages, topic: wire.TopicManage | wire.TopicSendMessages},
}

// Can reports whether user has the right on (stream, topic). The ids are looked at only where the
// right has a stream or topic layer. Root can do everything; an unknown user nothing.
func (v *View) Can(user uint32, right Right, stream, topic uint32) bool {
	if user == RootID {
		return true
	}
	u := v.UserByID(user)
	return u != nil && u.Permissions != nil && allows(u.Permissions, grants[right], stream, topic)
}

// allows looks through the three additive layers. Stream and topic entries are keyed by numeric id and
// outlive what they name, as in the reference.
func allows(p *wire.Permissions, g grant, stream, topic uint32) bool {
	if p.Global&g.global != 0 {
		return true
	}
	if g.stream == 0 && g.topic == 0 {
		return false
	}
	s := find(p.Streams, stream, func(s *wire.StreamPermissions) uint32 { return s.Stream })
	if s == nil {
		return false
	}
	if s.Rights&g.stream != 0 {
		return true
	}
	t := find(s.Topics, topic, func(t *wire.TopicPermissions) uint32 { return t.Topic })
	return t != nil && t.Rights&g.topic != 0
}

// find searches entries that ascend by id; nil when missing.
func find[T any](entries []T, id uint32, key func(*T) uint32) *T {
	low, high := 0, len(entries)
	for low < high {
		mid := (low + high) / 2
		switch c := cmp.Compare(id, key(&entries[mid])); {
		case c < 0:
			high = mid
		case c > 0:
			low = mid + 1
		default:
			return &entries[mid]
		}
	}
	return nil
}
