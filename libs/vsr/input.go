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
	// InputFrame: a frame of another member arrived.
	InputFrame
	// InputWritten: every op up to Op is with the operating system.
	InputWritten
	// InputSynced: every op up to Op is on stable storage.
	InputSynced
	// InputWriteFailed: the journal does not hold Op and what follows it. SyncLost says that what
	// was written before is in doubt too.
	InputWriteFailed
	// InputVoteSaved: the Vote asked for last is on stable storage.
	InputVoteSaved
	// InputApplied: every op up to Op has been applied.
	InputApplied
	// InputAlive and InputDead: the connection to member From works, or stopped working.
	InputAlive
	InputDead
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

	From   uint8        // member index proven by the connection
	Header *wire.Header // InputFrame
	Suffix []wire.PrepareHeader

	Op       uint64 // completions
	SyncLost bool   // InputWriteFailed
}
