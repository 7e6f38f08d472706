package metadatareplica

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ask answers the cluster's own questions, which only the primary may. One of them has to be ordered.
func (r *Replica) ask(c *link.Call, p *loop.Proposal) bool {
	if !r.primary {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonNotPrimary)
		return false
	}
	switch c.Internal {
	case link.InternalReadIndex:
		r.readIndex(c)
	case link.InternalClaims:
		r.takeClaims(c)
	case link.InternalRegister:
		return r.admitNode(c, p)
	case link.InternalAlive:
		r.nodeAlive(c)
	case link.InternalCopied:
		r.noteCopied(c)
	case link.InternalSucceed:
		return r.admitMoved(c, p)
	case link.InternalPlacement:
		return r.command(c, p)
	default:
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
	}
	return false
}

// readIndex answers under the lease of the primary: another one may lead by now if too few members are
// heard. It names the end of the log and not the commit point: what an earlier primary acknowledged may
// still be uncommitted here, but it is in the log (design-arguments.md 13, 14).
func (r *Replica) readIndex(c *link.Call) {
	if ok, why := r.group.Leased(r.engine.Tick(), r.config.Engine.Echoes); !ok {
		c.Refuse(wire.CodeTransientNotAccepted, why)
		return
	}
	c.Op, c.Commit = r.group.Head(), r.current.Op
	c.Finish()
}
