package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

// Clients of the released 0.11.0 that see several nodes ask where to poll with auto-commit and where to
// write offsets, open a data connection to that node, attach it to the session of the connection that
// asked, and go on there (released-clients.md §2.4). Every node forwards, so the node to go to is the one
// that was asked: the way never leads to a node that is down.

// attachment is the session a data connection polls and commits for.
type attachment struct {
	client  wire.U128
	session uint64
}

// attach serves AttachSession once the view holds everything the client was told.
func (s *Session) attach() action {
	q, err := wire.DecodeAttachSession(s.body)
	if err != nil {
		return s.refused(wire.CodeInvalidCommand)
	}
	if told := max(q.Watermark, q.Session); s.view.Op < told {
		if !s.now.Before(s.giveUp) || s.core.hurried(s.now) {
			return s.unavailable()
		}
		s.call.Op = told
		return s.then(actHold, (*Session).attachHeld)
	}
	if user, ok := s.view.UserOf(q.Client, q.Session); !ok || user != s.bound.user {
		return s.refused(wire.CodeStaleClient)
	}
	s.bound.attached = &attachment{q.Client, q.Session}
	return s.empty()
}

// attachHeld judges the attach anew. A position this cluster has not reached is refused after one wait.
func (s *Session) attachHeld() action {
	told := s.call.Op
	if s.view = s.core.deps.Follower.View(); s.view.Op < told {
		return s.unavailable()
	}
	return s.attach()
}

// member is the client whose memberships count on this connection.
func (s *Session) member() wire.U128 {
	if a := s.bound.attached; a != nil {
		return a.client
	}
	return s.bound.client
}

// detached reports whether the session this connection is attached to has ended.
func (s *Session) detached() bool {
	a := s.bound.attached
	if a == nil {
		return false
	}
	user, ok := s.view.UserOf(a.client, a.session)
	return !ok || user != s.bound.user
}

// routedPoll serves a poll on a data connection.
func (s *Session) routedPoll() action {
	switch {
	case s.bound.attached == nil:
		return s.refused(wire.CodeUnauthenticated)
	case s.detached():
		return s.refused(wire.CodeStaleClient)
	}
	return s.poll()
}

// pollRouting answers where to poll with auto-commit. Whether the consumer may is judged there.
func (s *Session) pollRouting() action {
	q, err := wire.DecodePollMessages(s.body)
	if err != nil || !q.AutoCommit {
		return s.refused(wire.CodeInvalidCommand)
	}
	return s.routing(q.Consumer, q.Stream, q.Topic, q.Partition)
}

// offsetRouting answers where to write an offset.
func (s *Session) offsetRouting() action {
	q, err := wire.DecodeOffsetTarget(s.body)
	if err != nil {
		return s.refused(wire.CodeInvalidCommand)
	}
	return s.routing(q.Consumer, q.Stream, q.Topic, q.Partition)
}

func (s *Session) routing(consumer wire.Consumer, stream, topic wire.Identifier, at wire.PartitionSelector) action {
	target := s.resolveOffset(consumer, stream, topic)
	if target.topic == nil {
		return s.refused(target.miss)
	}
	if !target.mayPoll {
		return s.refused(wire.CodeUnauthorized)
	}
	if _, _, ok := target.partition(at.ID); at.Set && !ok {
		return s.refused(wire.CodePartitionNotFound)
	}
	return s.answer(wire.PollRouting{
		AttachSession: wire.AttachSession{Client: s.bound.client, Session: s.bound.session, Watermark: s.view.Op},
		Primary:       s.core.shownNode(s.peer),
	}.Append(s.reset()))
}

// shownNode is this process as its roster shows it to a client at peer.
func (c *Core) shownNode(peer string) wire.ClusterNode {
	own := c.ownNode()
	for _, n := range c.roster(peer).Nodes {
		if n.Name == own.Name && n.TCP == own.TCP && n.QUIC == own.QUIC && n.HTTP == own.HTTP && n.WebSocket == own.WebSocket {
			return n
		}
	}
	return own
}
