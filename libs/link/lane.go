package link

import "github.com/whippet-mq/whippet/libs/wire"

// Lane is one connection of a pair of nodes on the replica plane. Votes, acks and pings have their own,
// so that no bulk is ever in front of them. In mixed clusters a pair has one connection, on which control
// frames jump the queue.
type Lane uint8

// Control carries the frames for which ControlFrame is true.
const Control Lane = 0

// Data is the lane of the frames for one loop of the receiver.
func Data(loop uint8) Lane { return Lane(loop%wire.MaxLoops) + 1 }

const controlFrames uint32 = 1<<wire.CommandPing | 1<<wire.CommandPong | 1<<wire.CommandPrepareOk | 1<<wire.CommandCommit |
	1<<wire.CommandStartViewChange | 1<<wire.CommandDoViewChange | 1<<wire.CommandStartView | 1<<wire.CommandRequestStartView |
	1<<wire.CommandRequestPrepares | 1<<wire.CommandRepairDone | 1<<wire.CommandRangeEvicted |
	1<<wire.CommandRequestStateTransfer | 1<<wire.CommandRequestStateChunk | 1<<wire.CommandForwardRegister |
	1<<wire.CommandForwardRegisterResult | 1<<wire.CommandForwardLogout | 1<<wire.CommandForwardLogoutResult

// ControlFrame reports whether frames of command c belong on the control lane. Prepares, repaired
// prepares, offers and chunks belong on a data lane.
func ControlFrame(c wire.Command) bool { return c < 32 && controlFrames>>c&1 == 1 }
