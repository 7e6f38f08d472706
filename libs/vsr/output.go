package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// Output is the effects of one Step. The caller owns it and reuses it; Reset keeps the capacity of
// its slices.
type Output struct {
	Truncate uint64 // first op to remove from the log, 0 = none; before Append
	// Adopt: this member takes on the log of view AdoptView without holding all bodies. The headers of
	// the ops it lacks, newest first, outlive a restart (Boot.Adopted): once it votes with the view's
	// number it must be able to say which ops the view has. Answer with InputAdopted.
	Adopt []wire.PrepareHeader
	// AdoptView is set when Truncate or Adopt must be durable before the core goes on.
	AdoptView uint32
	Append    []Append  // put into the journal; answer with Written, Synced or WriteFailed
	Vote      Vote      // save it when Vote.Save, answer with InputVoteSaved
	Send      []Send    // may leave now
	Serve     []Serve   // ranges of the log a member asked for
	Transfer  Transfer  // valid when Transfer.Wanted
	Commit    uint64    // commit point: apply up to here, then InputApplied. 0 = unchanged
	Refused   []Refusal // requests that got no op, or lost it
	Drop      []Body    // bodies of frames that are not needed any more, or never were
	Lost      uint64    // ops the members agreed to give up (rule D8), for log and metric
	Salvaged  bool      // the log of the view was chosen that way: more than Lost may be gone, that nobody knows of
	Role      Role      // valid when Role.Changed
	Wake      Tick      // next InputTick wanted, 0 = none: an idle group costs nothing
	Fault     Fault
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
	WhyIsolated        // too few members are heard: another one may lead
	WhyViewChange      // the view changed under the request
	WhySealed          // the log ends in a seal: a successor goes on
)

// Serve asks the caller to send member To the ops Low..Top, at most wire.MaxSuffix of them, as
// RepairPrepare frames in op order, then RepairDone with the last op sent. If the log no longer
// reaches down to Low, RangeEvicted with its first op goes before.
//
// A View that is not 0 is stamped on the RepairPrepares (the identity does not cover it): the log of
// that view has these ops. The asker believes a stamp of its own view; without it, only an op whose
// identity it knows.
type Serve struct {
	To       uint8
	Low, Top uint64
	Nonce    wire.U128
	View     uint32
}

// Transfer asks the caller to fetch the group's state from member From: its log no longer reaches
// down to what this one needs. Answer with InputInstalled (at op Above or higher) or
// InputTransferFailed.
type Transfer struct {
	Wanted bool
	From   uint8
	Above  uint64
}

// Vote is the durable part of view changes. No frame that names a view leaves before it is saved.
//
// Whole says that a suspect or empty log is whole again (rule D9): everything in the log is made
// durable before the vote is saved, and the vote record takes the current suspect epoch. Without it a
// suspect member's record keeps the epoch it has. Whole and born members always say Whole.
type Vote struct {
	Save          bool
	View, LogView uint32
	Whole         bool
	// Deserts: it leaves a view in which this member followed a primary, member Deserted, that has not given it up.
	// Where reads rest on that, it is saved only when what the primary was promised is over (design-arguments 14).
	Deserts  bool
	Deserted uint8
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
	FaultOperation        // prepare of an operation this build does not know: the group goes on without this member
)

// Reset empties o for the next Step.
func (o *Output) Reset() {
	*o = Output{
		Adopt: o.Adopt[:0], Append: o.Append[:0], Send: o.Send[:0], Serve: o.Serve[:0],
		Refused: o.Refused[:0], Drop: o.Drop[:0],
	}
}

func (o *Output) refuse(in *Input, code wire.Code, why Why) {
	o.Refused = append(o.Refused, Refusal{Body: in.Body, Code: code, Why: why})
}

// send adds a frame whose header the caller fills in. op names the body that follows, 0 for none.
func (o *Output) send(to uint8, op uint64) *wire.Header {
	o.Send = append(o.Send, Send{To: to, Op: op})
	return &o.Send[len(o.Send)-1].Header
}
