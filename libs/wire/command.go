package wire

// Command is the frame type, byte 60 of every header.
type Command uint8

// The thirty commands, replica-wire.md §2.
const (
	CommandReserved Command = iota
	CommandPing
	CommandPong
	CommandPingClient
	CommandPongClient
	CommandRequest
	CommandPrepare
	CommandPrepareOk
	CommandReply
	CommandCommit
	CommandStartViewChange
	CommandDoViewChange
	CommandStartView
	CommandEviction
	CommandReplicaHello
	CommandReplicaChallenge
	CommandReplicaFinish
	CommandRequestStartView
	CommandRequestPrepares
	CommandRepairPrepare
	CommandRepairDone
	CommandRangeEvicted
	CommandRequestStateTransfer
	CommandStateTransferTarget
	CommandRequestStateChunk
	CommandStateChunk
	CommandForwardRegister
	CommandForwardRegisterResult
	CommandForwardLogout
	CommandForwardLogoutResult

	commandCount
)

var commandNames = [commandCount]string{
	"Reserved", "Ping", "Pong", "PingClient", "PongClient", "Request", "Prepare", "PrepareOk", "Reply", "Commit",
	"StartViewChange", "DoViewChange", "StartView", "Eviction", "ReplicaHello", "ReplicaChallenge", "ReplicaFinish",
	"RequestStartView", "RequestPrepares", "RepairPrepare", "RepairDone", "RangeEvicted", "RequestStateTransfer",
	"StateTransferTarget", "RequestStateChunk", "StateChunk", "ForwardRegister", "ForwardRegisterResult",
	"ForwardLogout", "ForwardLogoutResult",
}

// sealedCommands has bit c set when frames of command c carry a frame seal (replica-wire.md §1.3).
const sealedCommands uint32 = 1<<CommandPrepareOk | 1<<CommandCommit | 1<<CommandStartViewChange |
	1<<CommandDoViewChange | 1<<CommandStartView | 1<<CommandRequestStartView | 1<<CommandRequestPrepares |
	1<<CommandRepairDone | 1<<CommandRangeEvicted | 1<<CommandRequestStateTransfer | 1<<CommandStateTransferTarget |
	1<<CommandRequestStateChunk | 1<<CommandStateChunk | 1<<CommandForwardRegister | 1<<CommandForwardRegisterResult |
	1<<CommandForwardLogout | 1<<CommandForwardLogoutResult

// Known reports whether c is one of the thirty commands, Reserved included. A frame with an
// unknown command closes its connection.
func (c Command) Known() bool { return c < commandCount }

// Sealed reports whether frames of this command carry a frame seal in their checksum field.
func (c Command) Sealed() bool { return c < commandCount && sealedCommands>>c&1 == 1 }

// String returns the command's name.
func (c Command) String() string {
	if c < commandCount {
		return commandNames[c]
	}
	return "Unknown"
}
