package loop

import (
	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Proposal is an admitted request: what its prepare will carry.
type Proposal struct {
	Operation       wire.Operation
	Client          wire.U128
	RequestChecksum wire.U128
	Request         uint64
	UserID          uint32
	// Reserved ops free or bound space: they may use what the journal keeps back for a full disk.
	Reserved bool
	// Frame holds Body at BodyStart, with at least wire.HeaderSize bytes in front of it for the
	// prepare header. The proposal owns one reference. Frame may be nil: then Body is any slice
	// with at least wire.HeaderSize bytes in front of it in Buf.
	Frame     *buffer.Frame
	Buf       []byte
	BodyStart int
	BodyLen   int
}

// Bytes is the prepare frame: 256 bytes for the header, then the body.
func (p *Proposal) Bytes() []byte {
	b := p.Buf
	if p.Frame != nil {
		b = p.Frame.Bytes()
	}
	return b[p.BodyStart-wire.HeaderSize : p.BodyStart+p.BodyLen]
}

// Staged says where a prepare's body lives besides memory.
type Staged struct {
	// Large is the write that puts a large body into its segment before the header record is
	// written; its File is nil when the body is inline in the journal.
	Large journal.LargeBody
	At    journal.Location
}

// Work is file work due for a group. Run is called on another goroutine; Done comes back on the
// loop with Run's result.
type Work struct {
	Run  func() error
	Done func(error)
}

// Image is a captured state. Run and Encode are called, in this order, on another goroutine: Run
// makes durable what the state counts, and only then may it enter a checkpoint; Encode appends the
// state. Done comes back on the loop once the checkpoint is durable, or failed.
type Image struct {
	Run    func() error
	Encode func(dst []byte) []byte
	Done   func(error)
}

// Machine is a group's replicated state, called only by its loop.
type Machine interface {
	// Blocked reports that an op in flight must be applied before anything else is admitted; calls
	// wait in the queue meanwhile. It may propose that op.
	Blocked() bool
	// Admit decides on a request at the primary. It returns true with p filled, or answers the
	// call itself (now or later) and returns false.
	Admit(c *link.Call, p *Proposal) bool
	// Stage takes a prepare into the uncommitted tail and puts its body into final form in place
	// (a partition stamps offset, time and checksum). An error means nothing was changed.
	Stage(h *wire.PrepareHeader, body []byte) (Staged, error)
	// Follow is Stage for a prepare of another primary, whose body is final: an error says that the
	// body does not continue what the machine has, ErrWait that something in flight has to be applied
	// before. It must not propose anything.
	Follow(h *wire.PrepareHeader, body []byte) (Staged, error)
	// Unstage drops the uncommitted prepares from op on. It must not propose anything.
	Unstage(op uint64)
	// Apply executes a committed prepare, in op order. With a call it also fills the answer, but
	// the loop finishes the call, after Settle. c is nil at replay and for the machine's own ops.
	Apply(h *wire.PrepareHeader, body []byte, c *link.Call)
	// Settle publishes what was applied: readers see it before any waiting call is finished.
	Settle()
	// Work returns file work that is due at now (µs), or nil. With force it returns all there is.
	Work(now uint64, force bool) *Work
	// Pending reports whether Work has or will have something to do.
	Pending() bool
	// Rest gives back what only a machine with ops in flight needs: for a while there were none.
	Rest()
	// Replay takes a prepare of the log at restart, before any other call: its body, or the place
	// At where it stands. verify asks to check a body on disk in full. The error says why the
	// prepare is not usable. Committed prepares are applied right after, others may be unstaged.
	Replay(h *wire.PrepareHeader, body []byte, at journal.Location, verify bool) error
	// Ready ends the restart. An error fences the group: it stays hosted, answers its damage to
	// every request and changes nothing on disk. Checkpoints go on storing what it was restored from.
	Ready() error
	// Image captures the state a checkpoint stores for this group, covering every applied op.
	Image() Image
	// Bodies returns a function that reads a large body back into dst, which has its length. It is
	// called on any goroutine, later.
	Bodies() func(at journal.Location, dst []byte) error
	// Role tells the machine that it became or stopped being the acting primary of several members.
	// It is told first when it is hosted. A group of one is never told.
	Role(primary bool, view uint32)
	// Close gives back what the machine holds; nothing is called after it.
	Close()
}
