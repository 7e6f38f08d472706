package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// Tick is a point on a monotonic clock in microseconds. Timers run on it.
type Tick uint64

// Body is the caller's token for a payload. The core passes it through.
type Body uint32

// InputKind says what happened.
type InputKind uint8

const (
	// InputTick: time passed; nothing else happened.
	InputTick InputKind = iota
	// InputRequest: a request was admitted here. Answered at once by an Append, or by a Refusal.
	InputRequest
	// InputFrame: a frame of another member arrived: Header, From, and by command Body or Suffix.
	InputFrame
	// InputWritten: every op up to Op is with the operating system. Never said of an op that a later
	// Truncate removed.
	InputWritten
	// InputSynced: every op up to Op is on stable storage. The same exception.
	InputSynced
	// InputWriteFailed: the journal does not hold Op and what follows it. SyncLost says that what
	// was written before is in doubt too.
	InputWriteFailed
	// InputAdopted: the Truncate and Adopt of the Output that carried them are on stable storage.
	InputAdopted
	// InputVoteSaved: the Vote asked for last is on stable storage.
	InputVoteSaved
	// InputApplied: every op up to Op has been applied.
	InputApplied
	// InputAlive: member From is heard again.
	InputAlive
	// InputDead: member From is not heard any more, and so say enough others that a view change may
	// start without it (pre-vote, design-arguments 20).
	InputDead
	// InputIsolated: as a primary this member no longer hears enough others (step-down,
	// design-arguments 14); InputReached ends it.
	InputIsolated
	InputReached
	// InputPeerView: member From reports that its view is Op (design-arguments 1, D9).
	InputPeerView
	// InputInstalled: a state transfer is complete. The log now begins behind Prepare, which is
	// committed and applied; what the log held before is gone.
	InputInstalled
	// InputTransferFailed: the transfer asked for last brought nothing.
	InputTransferFailed
	// InputHandOver: lead no longer, if another member can.
	InputHandOver
	// InputAcceptLoss: an operator lets the members of a group in synced mode give up what none of them
	// holds, if they cannot agree otherwise (rule D8). Good for one view, to be said at every member.
	InputAcceptLoss
)

// Request is what a prepare takes from the admitted request.
type Request struct {
	Operation wire.Operation // as it is to be logged
	Client    wire.U128
	Request   uint64
	Checksum  wire.U128 // request_checksum, verbatim
	UserID    uint32
	Release   uint32
	Size      uint32 // bytes of the prepare, header and body
}

// Input is one event. Pointers and slices are only read during the call.
type Input struct {
	Kind InputKind
	Now  uint64 // wall clock, µs since the Unix epoch; becomes prepare timestamps
	Tick Tick   // monotonic clock
	Rand uint64 // the only randomness

	Request  Request // InputRequest
	Body     Body    // InputRequest, InputFrame with a body
	BodyHash uint64  // wire.Hash64 of the body, when the policy seals bodies
	BodyOK   bool    // InputFrame: the body matches its own checksums

	From   uint8                // member index proven by the connection
	Header *wire.Header         // InputFrame
	Suffix []wire.PrepareHeader // DoViewChange and StartView: decoded and verified, newest first

	Prepare wire.PrepareHeader // InputInstalled

	Op       uint64 // completions, InputPeerView
	SyncLost bool   // InputWriteFailed
}
