package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Reply is the outcome of an applied op.
type Reply struct {
	Code wire.Code // 0, or the committed rejection
	Body []byte    // what follows the reply header: result section and payload; empty for Register and Logout
}

// Apply executes a committed prepare of the metadata group and returns the next view. It is a pure
// function of its arguments: every replica and follower gets the same view and the same reply. It
// keeps no reference to h or body. A body that does not decode changes nothing and is answered with
// CodeInvalidCommand; admission never lets one into the log.
func (v *View) Apply(h *wire.PrepareHeader, body []byte) (*View, Reply) { panic("soon") }
