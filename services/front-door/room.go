package frontdoor

import (
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// room takes what a frame of size bytes needs before the rest of it is read: its turn at the gate if it is a
// large send, and a buffer. front is the frame as far as it came. Without room in time the frame is refused.
func (c *Core) room(s *Session, front []byte, size int) (f *buffer.Frame, ok bool) {
	c.gate.leave(&s.pass) // of a frame that did not come to its end
	if size < gated {
		return c.buffer(size, c.cfg.BusyFor)
	}
	began := time.Now()
	service, group := s.aim(front)
	if service != nil && !c.gate.enter(&s.pass, service, group, size, c.cfg.BusyFor) {
		c.metrics.crowded.Inc()
		return nil, false
	}
	if f, ok = c.buffer(size, c.cfg.BusyFor-time.Since(began)); ok && service != nil {
		c.gate.read(&s.pass)
	}
	return f, ok
}

// buffer takes memory from the budget, after waiting for at most limit.
func (c *Core) buffer(size int, limit time.Duration) (f *buffer.Frame, ok bool) {
	if f, ok = c.deps.Pool.Try(size); ok {
		return f, true
	}
	if f, ok = c.deps.Pool.Wait(size, limit); !ok {
		c.metrics.overBudget.Inc()
	}
	return f, ok
}

// passes has a large send wait for its turn, if it came without one or has lost it; false: there is no room.
func (c *Core) passes(s *Session) bool {
	size := wire.HeaderSize + len(s.call.Body)
	if size < gated || s.call.Header.Operation != wire.OpSendMessages {
		return true
	}
	if c.gate.ensure(&s.pass, s.service, s.call.Group, size, time.Until(s.start.Add(c.cfg.BusyFor))) {
		return true
	}
	c.metrics.crowded.Inc()
	s.call.Status, s.call.Reason = wire.CodeTransientNotAccepted, link.ReasonBusy
	return false
}
