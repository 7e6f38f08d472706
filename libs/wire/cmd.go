package wire

import "strconv"

// Cmd is a command code. It travels in the code field of a request with operation 2; the other
// operations imply it.
type Cmd uint32

// Command codes of the client plane.
const (
	CmdPing               Cmd = 1
	CmdGetStats           Cmd = 10
	CmdGetSnapshot        Cmd = 11
	CmdGetClusterMetadata Cmd = 12
	CmdDescribeOptions    Cmd = 13
	CmdAttachSession      Cmd = 14
	CmdGetMe              Cmd = 20
	CmdGetClient          Cmd = 21
	CmdGetClients         Cmd = 22
	CmdGetUser            Cmd = 31
	CmdGetUsers           Cmd = 32
	CmdCreateUser         Cmd = 33
	CmdDeleteUser         Cmd = 34
	CmdUpdateUser         Cmd = 35
	CmdUpdatePermissions  Cmd = 36
	CmdChangePassword     Cmd = 37
	CmdLoginLegacy        Cmd = 38
	CmdLogout             Cmd = 39
	CmdLogin              Cmd = 40
	CmdGetTokens          Cmd = 41
	CmdCreateToken        Cmd = 42
	CmdDeleteToken        Cmd = 43
	CmdTokenLoginLegacy   Cmd = 44
	CmdTokenLogin         Cmd = 45
	CmdPollMessages       Cmd = 100
	CmdSendMessages       Cmd = 101
	CmdFlushBuffer        Cmd = 102
	CmdGetPollRouting     Cmd = 103
	CmdRoutedPoll         Cmd = 104
	CmdGetOffset          Cmd = 120
	CmdStoreOffset        Cmd = 121
	CmdDeleteOffset       Cmd = 122
	CmdGetOffsetRouting   Cmd = 123
	CmdGetStream          Cmd = 200
	CmdGetStreams         Cmd = 201
	CmdCreateStream       Cmd = 202
	CmdDeleteStream       Cmd = 203
	CmdUpdateStream       Cmd = 204
	CmdPurgeStream        Cmd = 205
	CmdGetTopic           Cmd = 300
	CmdGetTopics          Cmd = 301
	CmdCreateTopic        Cmd = 302
	CmdDeleteTopic        Cmd = 303
	CmdUpdateTopic        Cmd = 304
	CmdPurgeTopic         Cmd = 305
	CmdCreatePartitions   Cmd = 402
	CmdDeletePartitions   Cmd = 403
	CmdDeleteSegments     Cmd = 503
	CmdGetGroup           Cmd = 600
	CmdGetGroups          Cmd = 601
	CmdCreateGroup        Cmd = 602
	CmdDeleteGroup        Cmd = 603
	CmdJoinGroup          Cmd = 604
	CmdLeaveGroup         Cmd = 605
	CmdSyncGroup          Cmd = 606

	// CmdPlacement is Whippet's own: an operator's command about where partitions are, as JSON of package placement.
	CmdPlacement Cmd = 22_273
)

// String names the command in snake case, as metric labels and logs use it.
func (c Cmd) String() string {
	switch c {
	case CmdPing:
		return "ping"
	case CmdGetStats:
		return "get_stats"
	case CmdGetSnapshot:
		return "get_snapshot"
	case CmdGetClusterMetadata:
		return "get_cluster_metadata"
	case CmdDescribeOptions:
		return "describe_options"
	case CmdAttachSession:
		return "attach_session"
	case CmdGetMe:
		return "get_me"
	case CmdGetClient:
		return "get_client"
	case CmdGetClients:
		return "get_clients"
	case CmdGetUser:
		return "get_user"
	case CmdGetUsers:
		return "get_users"
	case CmdCreateUser:
		return "create_user"
	case CmdDeleteUser:
		return "delete_user"
	case CmdUpdateUser:
		return "update_user"
	case CmdUpdatePermissions:
		return "update_permissions"
	case CmdChangePassword:
		return "change_password"
	case CmdLoginLegacy:
		return "login_legacy"
	case CmdLogout:
		return "logout"
	case CmdLogin:
		return "login"
	case CmdGetTokens:
		return "get_tokens"
	case CmdCreateToken:
		return "create_token"
	case CmdDeleteToken:
		return "delete_token"
	case CmdTokenLoginLegacy:
		return "token_login_legacy"
	case CmdTokenLogin:
		return "token_login"
	case CmdPollMessages:
		return "poll_messages"
	case CmdSendMessages:
		return "send_messages"
	case CmdFlushBuffer:
		return "flush_buffer"
	case CmdGetPollRouting:
		return "get_poll_routing"
	case CmdRoutedPoll:
		return "routed_poll"
	case CmdGetOffset:
		return "get_offset"
	case CmdStoreOffset:
		return "store_offset"
	case CmdDeleteOffset:
		return "delete_offset"
	case CmdGetOffsetRouting:
		return "get_offset_routing"
	case CmdGetStream:
		return "get_stream"
	case CmdGetStreams:
		return "get_streams"
	case CmdCreateStream:
		return "create_stream"
	case CmdDeleteStream:
		return "delete_stream"
	case CmdUpdateStream:
		return "update_stream"
	case CmdPurgeStream:
		return "purge_stream"
	case CmdGetTopic:
		return "get_topic"
	case CmdGetTopics:
		return "get_topics"
	case CmdCreateTopic:
		return "create_topic"
	case CmdDeleteTopic:
		return "delete_topic"
	case CmdUpdateTopic:
		return "update_topic"
	case CmdPurgeTopic:
		return "purge_topic"
	case CmdCreatePartitions:
		return "create_partitions"
	case CmdDeletePartitions:
		return "delete_partitions"
	case CmdDeleteSegments:
		return "delete_segments"
	case CmdGetGroup:
		return "get_group"
	case CmdGetGroups:
		return "get_groups"
	case CmdCreateGroup:
		return "create_group"
	case CmdDeleteGroup:
		return "delete_group"
	case CmdJoinGroup:
		return "join_group"
	case CmdLeaveGroup:
		return "leave_group"
	case CmdSyncGroup:
		return "sync_group"
	case CmdPlacement:
		return "placement"
	}
	return "command_" + strconv.FormatUint(uint64(c), 10)
}
