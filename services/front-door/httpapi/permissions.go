package httpapi

import (
	"math"
	"strconv"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The rights of each level in the order of their bits.
var (
	globalRights = []string{
		"manage_servers", "read_servers", "manage_users", "read_users", "manage_streams", "read_streams",
		"manage_topics", "read_topics", "poll_messages", "send_messages",
	}
	streamRights = []string{"manage_stream", "read_stream", "manage_topics", "read_topics", "poll_messages", "send_messages", "topics"}
	topicRights  = []string{"manage_topic", "read_topic", "poll_messages", "send_messages"}
)

// permissions reads a permissions object, or null, into a permission blob.
func (r *reader) permissions() []byte {
	if r.null() {
		return nil
	}
	var p wire.Permissions
	r.record([]string{"global", "streams"}, 1, func(i int) {
		switch {
		case i == 0:
			p.Global = wire.GlobalRights(r.rights(globalRights))
		case !r.null():
			r.object(func(key []byte) { p.Streams = append(p.Streams, r.streamPermissions(key)) })
		}
	})
	if r.fault != nil {
		return nil
	}
	return p.Append(nil)
}

// rights reads an object of booleans, all of them given, into bits.
func (r *reader) rights(names []string) (set uint16) {
	r.record(names, len(names), func(i int) {
		if r.boolean() {
			set |= 1 << i
		}
	})
	return set
}

func (r *reader) streamPermissions(key []byte) wire.StreamPermissions {
	s := wire.StreamPermissions{Stream: r.mapID(key)}
	topics := len(streamRights) - 1
	r.record(streamRights, topics, func(i int) {
		switch {
		case i < topics:
			if r.boolean() {
				s.Rights |= 1 << i
			}
		case !r.null():
			r.object(func(key []byte) {
				s.Topics = append(s.Topics, wire.TopicPermissions{Topic: r.mapID(key), Rights: wire.TopicRights(r.rights(topicRights))})
			})
		}
	})
	return s
}

// mapID reads an id that is a member name.
func (r *reader) mapID(key []byte) uint32 {
	n, err := strconv.ParseUint(string(key), 10, 32)
	if err != nil || n > math.MaxUint32 {
		r.unfit("Expected an id as the name of a member.")
	}
	return uint32(n)
}

type permissionsJSON struct {
	Global  globalJSON            `json:"global"`
	Streams map[uint32]streamPerm `json:"streams"`
}

type globalJSON struct {
	ManageServers bool `json:"manage_servers"`
	ReadServers   bool `json:"read_servers"`
	ManageUsers   bool `json:"manage_users"`
	ReadUsers     bool `json:"read_users"`
	ManageStreams bool `json:"manage_streams"`
	ReadStreams   bool `json:"read_streams"`
	ManageTopics  bool `json:"manage_topics"`
	ReadTopics    bool `json:"read_topics"`
	PollMessages  bool `json:"poll_messages"`
	SendMessages  bool `json:"send_messages"`
}

type streamPerm struct {
	ManageStream bool                 `json:"manage_stream"`
	ReadStream   bool                 `json:"read_stream"`
	ManageTopics bool                 `json:"manage_topics"`
	ReadTopics   bool                 `json:"read_topics"`
	PollMessages bool                 `json:"poll_messages"`
	SendMessages bool                 `json:"send_messages"`
	Topics       map[uint32]topicPerm `json:"topics"`
}

type topicPerm struct {
	ManageTopic  bool `json:"manage_topic"`
	ReadTopic    bool `json:"read_topic"`
	PollMessages bool `json:"poll_messages"`
	SendMessages bool `json:"send_messages"`
}

// showPermissions is p as JSON; nil for none.
func showPermissions(p *wire.Permissions) *permissionsJSON {
	if p == nil {
		return nil
	}
	g := p.Global
	out := &permissionsJSON{Global: globalJSON{
		g&wire.GlobalManageServers != 0, g&wire.GlobalReadServers != 0, g&wire.GlobalManageUsers != 0, g&wire.GlobalReadUsers != 0,
		g&wire.GlobalManageStreams != 0, g&wire.GlobalReadStreams != 0, g&wire.GlobalManageTopics != 0, g&wire.GlobalReadTopics != 0,
		g&wire.GlobalPollMessages != 0, g&wire.GlobalSendMessages != 0,
	}}
	for _, s := range p.Streams {
		if out.Streams == nil {
			out.Streams = make(map[uint32]streamPerm)
		}
		out.Streams[s.Stream] = showStream(&s)
	}
	return out
}

func showStream(s *wire.StreamPermissions) streamPerm {
	r := s.Rights
	out := streamPerm{
		r&wire.StreamManage != 0, r&wire.StreamRead != 0, r&wire.StreamManageTopics != 0, r&wire.StreamReadTopics != 0,
		r&wire.StreamPollMessages != 0, r&wire.StreamSendMessages != 0, nil,
	}
	for _, t := range s.Topics {
		if out.Topics == nil {
			out.Topics = make(map[uint32]topicPerm)
		}
		out.Topics[t.Topic] = topicPerm{
			t.Rights&wire.TopicManage != 0, t.Rights&wire.TopicRead != 0, t.Rights&wire.TopicPollMessages != 0, t.Rights&wire.TopicSendMessages != 0,
		}
	}
	return out
}
