package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// read serves operation 2: everything that is answered without being ordered.
func (s *Session) read() action {
	switch code := s.header.Code; {
	case code == wire.CmdLoginLegacy || code == wire.CmdTokenLoginLegacy:
		return s.evicted(wire.EvictMalformedLogin)
	case code == wire.CmdPing:
		return s.empty()
	case !s.authenticated():
		s.bound = nil
		return s.refused(wire.CodeUnauthenticated)
	case s.core.index != nil && !s.sure && readsMetadata(code):
		return s.confirm()
	}
	switch s.header.Code {
	case wire.CmdPollMessages:
		return s.poll()
	case wire.CmdGetOffset:
		return s.getOffset()
	case wire.CmdAttachSession:
		return s.attach()
	case wire.CmdGetPollRouting:
		return s.pollRouting()
	case wire.CmdGetOffsetRouting:
		return s.offsetRouting()
	case wire.CmdRoutedPoll:
		return s.routedPoll()
	case wire.CmdGetStats:
		return s.getStats()
	case wire.CmdGetSnapshot:
		return s.getSnapshot()
	case wire.CmdGetClusterMetadata:
		return s.getClusterMetadata()
	case wire.CmdDescribeOptions:
		return s.describeOptions()
	case wire.CmdGetMe:
		return s.getMe()
	case wire.CmdGetClient:
		return s.getClient()
	case wire.CmdGetClients:
		return s.getClients()
	case wire.CmdGetUser:
		return s.getUser()
	case wire.CmdGetUsers:
		return s.getUsers()
	case wire.CmdGetTokens:
		return s.getTokens()
	case wire.CmdGetStream:
		return s.getStream()
	case wire.CmdGetStreams:
		return s.getStreams()
	case wire.CmdGetTopic:
		return s.getTopic()
	case wire.CmdGetTopics:
		return s.getTopics()
	case wire.CmdGetGroup:
		return s.getGroup()
	case wire.CmdGetGroups:
		return s.getGroups()
	case wire.CmdSyncGroup:
		return s.syncGroup()
	case wire.CmdPlacement:
		return s.placement()
	case wire.CmdLogout, wire.CmdLogin, wire.CmdTokenLogin:
		return s.empty() // session commands have an operation of their own; as a read they do nothing
	}
	if replicated(s.header.Code) {
		return s.refused(wire.CodeFeatureUnavailable)
	}
	return s.refused(wire.CodeInvalidCommand)
}

// replicated reports whether a command code belongs to an operation of its own, so that it means
// nothing in a read. Flush is refused the same way by every server.
func replicated(code wire.Cmd) bool {
	switch code {
	case wire.CmdCreateUser, wire.CmdDeleteUser, wire.CmdUpdateUser, wire.CmdUpdatePermissions, wire.CmdChangePassword,
		wire.CmdCreateToken, wire.CmdDeleteToken, wire.CmdSendMessages, wire.CmdFlushBuffer, wire.CmdStoreOffset,
		wire.CmdDeleteOffset, wire.CmdCreateStream, wire.CmdDeleteStream, wire.CmdUpdateStream, wire.CmdPurgeStream,
		wire.CmdCreateTopic, wire.CmdDeleteTopic, wire.CmdUpdateTopic, wire.CmdPurgeTopic, wire.CmdCreatePartitions,
		wire.CmdDeletePartitions, wire.CmdDeleteSegments, wire.CmdCreateGroup, wire.CmdDeleteGroup, wire.CmdJoinGroup,
		wire.CmdLeaveGroup:
		return true
	}
	return false
}

// can reports whether the connection's user has the right in the request's view.
func (s *Session) can(right metadata.Right, stream, topic uint32) bool {
	return s.view.Can(s.bound.user, right, stream, topic)
}

// knownRead reports whether code is a command that can be asked for in a read, refused or not.
func knownRead(code wire.Cmd) bool {
	switch code {
	case wire.CmdPing, wire.CmdGetStats, wire.CmdGetSnapshot, wire.CmdGetClusterMetadata, wire.CmdDescribeOptions, wire.CmdGetMe,
		wire.CmdGetClient, wire.CmdGetClients, wire.CmdGetUser, wire.CmdGetUsers, wire.CmdGetTokens, wire.CmdPollMessages,
		wire.CmdGetOffset, wire.CmdGetStream, wire.CmdGetStreams, wire.CmdGetTopic, wire.CmdGetTopics, wire.CmdGetGroup,
		wire.CmdGetGroups, wire.CmdSyncGroup, wire.CmdLogout, wire.CmdLogin, wire.CmdTokenLogin,
		wire.CmdAttachSession, wire.CmdGetPollRouting, wire.CmdGetOffsetRouting, wire.CmdRoutedPoll, wire.CmdPlacement:
		return true
	}
	return replicated(code)
}
