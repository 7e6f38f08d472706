package link

import (
	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Internal names a request that only processes of the cluster send each other (routed Request,
// bytes 228..232). Zero is an ordinary client command.
type Internal uint32

const (
	// InternalNone: the operation and code of the header say what is asked.
	InternalNone Internal = 0
	// InternalFacts: body = group ids (u64 each, empty = all hosted); answer = Fact records.
	InternalFacts Internal = 1
	// InternalSealed: body = partition group id u64, count u32; answer = end offset u64 of the
	// count-th oldest sealed segment, 0 when none is sealed.
	InternalSealed Internal = 2
	// InternalInFlight: body = consumer group id u32, then partition group ids u64 each; answer = those of them
	// with polled but uncommitted data of that consumer group.
	InternalInFlight Internal = 3
)

// Call is one routed request on its way to a role and its answer on the way back: the in-process
// form of the service plane's Request and Reply frames. A front-door connection owns one Call and
// reuses it; between Serve and Finish it belongs to the service.
type Call struct {
	// Request. Header.Client, Session and UserID are those of the session, not of the frame.
	Header       wire.RequestHeader
	Group        uint64 // wire.MetadataGroup or a partition group id
	Internal     Internal
	MetadataOp   uint64     // metadata op the request was resolved at
	Floor        wire.Floor // reads: what the front-door has shown of this group; a replica below it refuses
	Generation   uint64     // generation of the consumer group at MetadataOp
	ConsumerKind wire.ConsumerKind
	ConsumerID   uint32 // resolved: number, hash of the name, or consumer group id
	Sequence     uint64 // the front-door's own number of a partition write, for duplicate recognition
	Connection   wire.U128
	MaxReply     int      // polls: bytes of the reply frame if more than one message is in it, 0: the service's own bound
	InFlight     []uint32 // join: partitions of the consumer group with polled but uncommitted data
	Deadline     uint32   // ms the caller waits for an answer of another process, 0: the link's own bound

	// Frame holds the request's bytes and Body is a sub-slice of it. The service takes the frame
	// over by setting Frame to nil; otherwise the caller releases it after Finish.
	// For SendMessages Body is the batch, with at least 256 writable bytes in front of it in Frame
	// (BodyStart is its position there), where the prepare header is built in place.
	Frame     *buffer.Frame
	Body      []byte
	BodyStart int

	// Answer, set by the service before Finish.
	Evict    wire.EvictionReason // non-zero: the answer is an eviction
	Status   wire.Code           // non-zero: status reply, no body
	Reason   Reason              // why Status is retryable, for metrics and back-off
	ReplyOp  wire.Operation      // operation byte of the reply
	Op       uint64              // log position of a committed op
	Commit   uint64
	Time     uint64 // prepare time, µs; 0 = echo the request's
	View     uint32
	Primary  uint8         // member index of the group's primary as far as known, wire.NoPrimary otherwise
	Out      []byte        // small body; the service appends to Out[:0], capacity is kept
	OutFrame *buffer.Frame // large reply: 256 free bytes, then the body; the caller releases it

	done  chan struct{}
	owner finisher // of a call that came from a connection; nil: the owner waits on done
}

// finisher owns calls and is told of their end instead of waiting for it. finished must not block.
type finisher interface{ finished(c *Call) }

// Reason says why a request was refused with a retryable status.
type Reason uint8

const (
	ReasonNone Reason = iota
	ReasonNotPrimary
	ReasonBusy
	ReasonUnknownGroup
	ReasonBehind
	ReasonDiskFull
	ReasonBudget
	ReasonViewChange
	ReasonClosing
	ReasonUnreachable // no connection to the process that was asked
)

// NewCall returns an idle Call.
func NewCall() *Call { return &Call{done: make(chan struct{}, 1), Primary: wire.NoPrimary} }

// Reset clears request and answer, keeping Out's capacity.
func (c *Call) Reset() {
	*c = Call{done: c.done, owner: c.owner, Out: c.Out[:0], Primary: wire.NoPrimary}
}

// Finish hands the answered call back to its owner. Exactly once per Serve.
func (c *Call) Finish() {
	if c.owner != nil {
		c.owner.finished(c)
		return
	}
	c.done <- struct{}{}
}

// Refuse answers with a status and finishes.
func (c *Call) Refuse(code wire.Code, why Reason) {
	c.Status, c.Reason = code, why
	c.Out = c.Out[:0]
	c.Finish()
}

// Done receives once when the service has finished the call.
func (c *Call) Done() <-chan struct{} { return c.done }

// Service answers routed requests: a role in this process, or a link to one elsewhere. Serve
// returns at once; it may run reads on the calling goroutine. The call is finished exactly once.
type Service interface {
	Serve(c *Call)
}
