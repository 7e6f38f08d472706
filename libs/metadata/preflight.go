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
	// ActionRefuse: answer with Verdict.Code as a status. The reference is silent here.
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

// PreflightRequest decides on a request by its header, whose Client, Session and UserID are those of
// the session. A Logout is admitted under any number, so that a lost connection always ends its
// session; with an older epoch or without an entry it is an eviction here and nothing to do for the
// client that sent it.
func (v *View) PreflightRequest(h *wire.RequestHeader) Verdict {
	switch h.Operation {
	case wire.OpRegister:
		return v.PreflightRegister(h.Client, h.UserID)
	case wire.OpLogout:
		return v.session(h.Client, h.Session)
	}
	return v.preflight(h.Client, h.Session, h.Request, h.RequestChecksum, h.Operation)
}

// Preflight is PreflightRequest for a request whose operation is that of the original.
func (v *View) Preflight(client wire.U128, session, request uint64, checksum wire.U128) Verdict {
	return v.preflight(client, session, request, checksum, wire.OpReserved)
}

// preflight decides on a numbered request (client-semantics §1.5, rows 4 to 9). What is in the
// pipeline is the caller's to check: any op of the client there means 57. A zero checksum, here or on
// the original, matches everything.
func (v *View) preflight(client wire.U128, session, request uint64, checksum wire.U128, op wire.Operation) Verdict {
	c := v.Client(client)
	if verdict := v.session(client, session); verdict.Action != ActionAdmit || request > c.Watermark {
		return verdict
	}
	reply := c.reply(request)
	original := c.WatermarkChecksum
	if reply != nil {
		original = reply.Header.RequestChecksum
	}
	reused := checksum != original && !checksum.IsZero() && !original.IsZero()
	switch {
	case reused && (reply != nil || request == c.Watermark):
		return Verdict{Action: ActionRefuse, Code: wire.CodeInvalidCommand}
	case reply == nil:
		return Verdict{Action: ActionResult, Code: wire.CodeRequestAlreadyApplied}
	case reply.Header.Operation == wire.OpCreateToken && succeeded(reply.Body) && (op == wire.OpCreateToken || op == wire.OpReserved):
		// The secret was shown once and exists nowhere.
		return Verdict{Action: ActionResult, Code: wire.CodePersonalAccessTokenAlreadyExists}
	}
	return Verdict{Action: ActionReplay, Reply: reply}
}

// session tests the session number against the client's entry.
func (v *View) session(client wire.U128, session uint64) Verdict {
	c := v.Client(client)
	switch {
	case c == nil:
		return Verdict{Action: ActionEvict, Evict: wire.EvictNoSession}
	case session < c.Epoch:
		return Verdict{Action: ActionEvict, Evict: wire.EvictSessionTooLow}
	case session > c.Epoch:
		// The Register of that session is not applied here yet.
		return Verdict{Action: ActionRefuse, Code: wire.CodeTransientNotAccepted}
	}
	return Verdict{Action: ActionAdmit}
}

// PreflightRegister decides on a login of user under the client id.
func (v *View) PreflightRegister(client wire.U128, user uint32) Verdict {
	c := v.Client(client)
	switch {
	case c != nil && c.UserID != user && !c.orphaned():
		return Verdict{Action: ActionEvict, Evict: wire.EvictSessionError}
	case c == nil && v.clients.Len() >= v.limits.Clients:
		_, victim := v.recency.At(0)
		return Verdict{Action: ActionFull, Code: wire.CodeTransientNotAccepted, Victim: victim}
	}
	return Verdict{Action: ActionAdmit}
}

// reply returns the cached reply to the request number; the Register reply has none.
func (c *Client) reply(request uint64) *Committed {
	for _, r := range c.Replies {
		if r.Header.Request == request && r.Header.Operation != wire.OpRegister {
			return r
		}
	}
	return nil
}

// succeeded reports whether a committed body is a success: its result count is 0.
func succeeded(body []byte) bool {
	return len(body) >= 4 && body[0]|body[1]|body[2]|body[3] == 0
}
