package frontdoor

import (
	"bytes"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// route is what the bytes that name a stream and a topic mean in one view, and what the connection's
// user may do there.
type route struct {
	key      []byte // stream identifier ‖ topic identifier, as sent
	view     *metadata.View
	user     uint32
	topic    *metadata.Topic
	since    uint64    // op by which topic is as it is here: whoever serves it needs to know no more
	miss     wire.Code // why topic is nil
	mayPoll  bool
	maySend  bool
	balanced *atomic.Uint64
}

// routes remembers the last targets of a connection, so that a producer or consumer resolves names
// once per metadata change and not once per request.
type routes struct {
	entries [4]route
	next    int
}

// resolve finds the topic that (stream, topic) name in the session's view. key is their wire form.
func (s *Session) resolve(stream, topic wire.Identifier, key []byte) *route {
	r := &s.routes
	for i := range r.entries {
		e := &r.entries[i]
		if bytes.Equal(e.key, key) {
			s.refresh(e, stream, topic)
			return e
		}
	}
	e := &r.entries[r.next]
	r.next = (r.next + 1) % len(r.entries)
	e.key, e.view = append(e.key[:0], key...), nil
	s.refresh(e, stream, topic)
	return e
}

func (s *Session) refresh(e *route, stream, topic wire.Identifier) {
	if e.view == s.view && e.user == s.bound.user {
		return
	}
	before := e.topic
	e.view, e.user = s.view, s.bound.user
	if e.topic, e.miss = s.view.Topic(stream, topic); e.topic != before {
		e.since = s.view.Op
	}
	e.mayPoll, e.maySend = false, false
	if e.topic == nil {
		return
	}
	e.mayPoll = s.view.Can(e.user, metadata.RightPoll, e.topic.Stream, e.topic.ID)
	e.maySend = s.view.Can(e.user, metadata.RightSend, e.topic.Stream, e.topic.ID)
	if before == nil || before.Key() != e.topic.Key() || e.balanced == nil {
		e.balanced = s.core.counter(e.topic.Key())
	}
}

// partition returns the topic's partition id and the id of its consensus group.
func (e *route) partition(id uint32) (p metadata.Partition, group uint64, ok bool) {
	if p, ok = e.topic.Partition(id); ok {
		group = e.topic.GroupID(&p)
	}
	return p, group, ok
}
