package metadatareplica

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ask answers the cluster's own questions, which only the primary may. Called in a turn.
func (r *Replica) ask(c *link.Call) {
	if !r.primary {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonNotPrimary)
		return
	}
	switch c.Internal {
	case link.InternalReadIndex:
		r.readIndex(c)
	default:
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
	}
}

// readIndex names the end of the log and not the commit point: what an earlier primary acknowledged may
// still be uncommitted here, but it is in the log (design-arguments.md 13, 14).
func (r *Replica) readIndex(c *link.Call) {
	c.Op, c.Commit = r.group.Head(), r.current.Op
	c.Finish()
}
