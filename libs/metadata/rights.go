package metadata

import "cmp"

// Global bits of a user's permissions, in wire order (client-wire §11.1).
const (
	GlobalManageServers uint16 = 1 << iota
	GlobalReadServers
	GlobalManageUsers
	GlobalReadUsers
	GlobalManageStreams
	GlobalReadStreams
	GlobalManageTopics
	GlobalReadTopics
	GlobalPollMessages
	GlobalSendMessages

	globalBits        = 10
	AllGlobal  uint16 = 1<<globalBits - 1
)

// Bits of a stream entry, in wire order.
const (
	StreamManage uint8 = 1 << iota
	StreamRead
	StreamManageTopics
	StreamReadTopics
	StreamPollMessages
	StreamSendMessages

	streamBits = 6
)

// Bits of a topic entry, in wire order.
const (
	TopicManage uint8 = 1 << iota
	TopicRead
	TopicPollMessages
	TopicSendMessages

	topicBits = 4
)

// Permissions are a user's rights in three additive layers: a finer layer adds rights and never
// takes any. Entries are keyed by numeric id and outlive the stream or topic they name.
type Permissions struct {
	Global  uint16
	Streams []StreamPermissions // ascending by Stream
}

// StreamPermissions are rights on one stream.
type StreamPermissions struct {
	Stream uint32
	Bits   uint8
	Topics []TopicPermissions // ascending by Topic
}

// TopicPermissions are rights on one topic.
type TopicPermissions struct {
	Topic uint32
	Bits  uint8
}

// Right is something a user may be allowed to do (client-semantics §3.2).
type Right uint8

const (
	RightReadServers  Right = iota // GetStats, GetClients, GetClient, GetSnapshot
	RightReadUsers                 // GetUsers, GetUser of another
	RightManageUsers               // user administration, ChangePassword of another
	RightListStreams               // GetStreams
	RightReadStream                // GetStream
	RightCreateStream              // CreateStream
	RightManageStream              // Update, Delete, PurgeStream
	RightListTopics                // GetTopics
	RightReadTopic                 // GetTopic, every consumer group command but Sync
	RightCreateTopic               // CreateTopic
	RightManageTopic               // Update, Delete, PurgeTopic, partitions, segments
	RightPoll                      // PollMessages, consumer offsets
	RightSend                      // SendMessages
	rightCount
)

// grant lists the bits any of which gives a right, per layer.
type grant struct {
	global uint16
	stream uint8
	topic  uint8
}

const (
	anyStreams = GlobalManageStreams | GlobalReadStreams
	anyTopics  = anyStreams | GlobalManageTopics | GlobalReadTopics
	sAnyTopics = StreamManage | StreamRead | StreamManageTopics | StreamReadTopics
)

var grants = [rightCount]grant{
	RightReadServers:  {global: GlobalManageServers | GlobalReadServers},
	RightReadUsers:    {global: GlobalManageUsers | GlobalReadUsers},
	RightManageUsers:  {global: GlobalManageUsers},
	RightListStreams:  {global: anyStreams},
	RightReadStream:   {global: anyStreams, stream: StreamManage | StreamRead},
	RightCreateStream: {global: GlobalManageStreams},
	RightManageStream: {global: GlobalManageStreams, stream: StreamManage},
	RightListTopics:   {global: anyTopics, stream: sAnyTopics},
	RightReadTopic:    {global: anyTopics, stream: sAnyTopics, topic: TopicManage | TopicRead},
	RightCreateTopic:  {global: GlobalManageStreams | GlobalManageTopics, stream: StreamManage | StreamManageTopics},
	RightManageTopic: {global: GlobalManageStreams | GlobalManageTopics, stream: StreamManage | StreamManageTopics,
		topic: TopicManage},
	RightPoll: {global: anyTopics | GlobalPollMessages, stream: sAnyTopics | StreamPollMessages,
		topic: TopicManage | TopicRead | TopicPollMessages},
	RightSend: {global: GlobalManageStreams | GlobalManageTopics | GlobalSendMessages,
		stream: StreamManage | StreamManageTopics | StreamSendMessages, topic: TopicManage | TopicSendMessages},
}

// Can reports whether user has the right on (stream, topic). The ids are looked at only where the
// right has a stream or topic layer. Root can do everything; an unknown user nothing.
func (v *View) Can(user uint32, right Right, stream, topic uint32) bool {
	if user == RootID {
		return true
	}
	u := v.UserByID(user)
	return u != nil && u.Permissions.allow(grants[right], stream, topic)
}

func (p *Permissions) allow(g grant, stream, topic uint32) bool {
	if p == nil {
		return false
	}
	if p.Global&g.global != 0 {
		return true
	}
	if g.stream == 0 && g.topic == 0 {
		return false
	}
	s := find(p.Streams, stream, func(s *StreamPermissions) uint32 { return s.Stream })
	if s == nil {
		return false
	}
	if s.Bits&g.stream != 0 {
		return true
	}
	t := find(s.Topics, topic, func(t *TopicPermissions) uint32 { return t.Topic })
	return t != nil && t.Bits&g.topic != 0
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
