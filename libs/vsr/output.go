package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// Output is the effects of one Step. The caller owns it and reuses it; Reset keeps the capacity of
// its slices.
type Output struct {
	Vote     Vote      // save it when Vote.Save, answer with InputVoteSaved
	Truncate uint64    // first op to remove from the log, 0 = none; before Append
	Append   []Append  // put into the journal; answer with Written, Synced or WriteFailed
	Send     []Send    // may leave now
	Commit   uint64    // commit point: apply up to here, then InputApplied. 0 = unchanged
	Refused  []Refusal // requests that got no op, or lost it
	Fetch    []Fetch
	Role     Role // valid when Role.Changed
	Wake     Tick // next InputTick wanted, 0 = none: an idle group costs nothing
	Fault    Fault
}

// Append is a prepare to put into the log. Its header is complete and sealed: written in front of
// the body it is the frame for the journal and for peers.
type Append struct {
	Header wire.PrepareHeader
	Body   Body
}

// Everyone addresses a Send to all other members.
const Everyone = 0xff

// Send is a frame to another member. When Op is not 0 the body of that op follows the header.
type Send struct {
	To     uint8 // member index or Everyone
	Header wire.Header
	Suffix []wire.PrepareHeader
	Op     uint64
}

// Refusal answers a request that will not be executed under this primary.
type Refusal struct {
	Body Body
	Op   uint64    // 0 when the request never got one
	Code wire.Code // CodeTransientNotAccepted, or CodeTransientNotCommitted when the outcome is open
	Why  Why
}

// Why says why a request was refused.
type Why uint8

const (
	WhyNone        Why = iota
	WhyNotPrimary      // another member leads, or nobody does
	WhyPipeline        // too many prepares in flight
	WhyInFlight        // another request of this client is in flight
	WhyWriteFailed     // the journal could not write the prepare
	WhyHalted          // a sync failed: this log is not to be trusted, the process ends
	WhySize            // the size is not that of a frame
)

// Fetch asks a member for a range of prepares.
type Fetch struct {
	From     uint8
	Low, Top uint64
	Nonce    wire.U128
}

// Vote is the durable part of view changes. No frame that names a view leaves before it is saved.
type Vote struct {
	Save          bool
	View, LogView uint32
}

// Role says that the replica became or ceased to be the acting primary.
type Role struct {
	Changed bool
	Primary bool
	View    uint32
}

// Fault names an input that was ignored because it cannot come from a correct peer or caller. The
// caller counts it.
type Fault uint8

const (
	FaultNone       Fault = iota
	FaultCompletion       // completion above the head or failure at or below the commit point
	FaultFrame            // header does not decode, or a seal or identity does not match
	FaultGroup            // frame of another group
	FaultSender           // sender's index is not the one its connection proved
	FaultChain            // parent is not the identity of the op before
	FaultConflict         // two prepares for one op
	FaultKind             // unknown input kind
)

// Reset empties o for the next Step.
func (o *Output) Reset() {
	*o = Output{Append: o.Append[:0], Send: o.Send[:0], Refused: o.Refused[:0], Fetch: o.Fetch[:0]}
}

func (o *Output) refuse(in *Input, code wire.Code, why Why) {
	o.Refused = append(o.Refused, Refusal{Body: in.Body, Code: code, Why: why})
}
