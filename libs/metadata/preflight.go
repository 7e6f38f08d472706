package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Action is what the client table says about a request.
type Action uint8

const (
	// ActionAdmit: order it.
	ActionAdmit Action = iota
	// ActionReplay: send Verdict.Reply again.
	ActionReplay
	// ActionResult: answer with Verdict.Code in a result section (59; 51 for a repeated CreateToken).
	ActionResult
	// ActionRefuse: answer with Verdict.Code. The reference is silent here.
	ActionRefuse
	// ActionEvict: end the session with Verdict.Evict.
	ActionEvict
	// ActionFull: the table is full. Refuse with Verdict.Code (58), or order the Register all the
	// same, which pushes Verdict.Victim out of the table (its watermark is kept).
	ActionFull
)

// Verdict is the client table's decision about a request.
type Verdict struct {
	Action Action
	Code   wire.Code
	Evict  wire.EvictionReason
	Reply  *Committed
	Victim wire.U128
}

// Preflight decides on a request with a number (client-semantics §1.5, rows 4 to 9). What is in the
// pipeline is the caller's to check: any op of the client there means 57.
func (v *View) Preflight(client wire.U128, session, request uint64, checksum wire.U128) Verdict {
	panic("soon")
}

// PreflightRegister decides on a login of user under the client id.
func (v *View) PreflightRegister(client wire.U128, user uint32) Verdict { panic("soon") }
