package link

import "github.com/whippet-mq/whippet/libs/wire"

// The planes, as metrics name them.
const (
	planeReplica = "replica"
	planeService = "service"
)

// frameSet has bit c set for each command c that may arrive on a connection. Any other one closes it.
type frameSet uint32

func (s frameSet) has(c wire.Command) bool { return c < 32 && s>>c&1 == 1 }

func frames(commands ...wire.Command) (s frameSet) {
	for _, c := range commands {
		s |= 1 << c
	}
	return s
}

var (
	pings    = frames(wire.CommandPing, wire.CommandPong)
	feedAsks = frames(wire.CommandRequestPrepares, wire.CommandRequestStateTransfer, wire.CommandRequestStateChunk)
	feedTold = frames(wire.CommandCommit, wire.CommandRepairPrepare, wire.CommandRepairDone, wire.CommandRangeEvicted,
		wire.CommandStateTransferTarget, wire.CommandStateChunk)
	forwards       = frames(wire.CommandForwardRegister, wire.CommandForwardLogout)
	forwardResults = frames(wire.CommandForwardRegisterResult, wire.CommandForwardLogoutResult)

	// mixedFrames may pass between members of a mixed cluster, nativeFrames between native nodes.
	mixedFrames = feedAsks | feedTold | forwards | forwardResults | frames(wire.CommandPrepare, wire.CommandPrepareOk,
		wire.CommandStartViewChange, wire.CommandDoViewChange, wire.CommandStartView, wire.CommandRequestStartView)
	nativeFrames = mixedFrames | pings

	// askingFrames go to the server of the service plane, answeringFrames come from it. Logins and logouts
	// are Requests there: 26 to 29 are for members of a mixed cluster.
	askingFrames    = pings | feedAsks | frames(wire.CommandRequest)
	answeringFrames = pings | feedTold | frames(wire.CommandReply, wire.CommandEviction)
)

// sealed reports whether frames of command c carry a seal: the documented ones, and pings.
func sealed(c wire.Command) bool {
	return c.Sealed() || c == wire.CommandPing || c == wire.CommandPong
}
