package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

// voucher is a Follower that knows whether its view is recent: one that follows over a network.
type voucher interface {
	// Fresh reports whether somebody who knows what is committed vouched for the view lately.
	Fresh() bool
}

// fresh reports whether requests may be authorized from the view. What was revoked meanwhile would still be
// allowed, so this fails closed (design-arguments.md 13).
func (c *Core) fresh() bool { return c.voucher == nil || c.voucher.Fresh() }

// authorizes reports whether the request's answer depends on who may do what.
func (s *Session) authorizes() bool {
	switch s.header.Operation {
	case wire.OpLogout:
		return false
	case wire.OpNonReplicated:
		return s.header.Code != wire.CmdPing
	}
	return true
}

// unvouched waits until the view may be used, as long as a refused call is repeated.
func (s *Session) unvouched() action {
	switch {
	case s.core.fresh():
		s.view = s.core.deps.Follower.View()
		return s.begin()
	case !s.now.Before(s.giveUp) || s.core.hurried(s.now):
		return s.unavailable()
	}
	s.backOff()
	return s.then(actPause, (*Session).unvouched)
}

// unavailable refuses a request that nothing was done about, the way its operation is refused.
func (s *Session) unavailable() action {
	if op := s.header.Operation; op == wire.OpRegister || op.Metadata() && op != wire.OpLogout {
		return s.rejected(wire.CodeTransientNotAccepted)
	}
	return s.refused(wire.CodeTransientNotAccepted)
}

// overtaken marks the binding when the metadata shows a newer login of its client, which may have
// happened at another front-door.
func (s *Session) overtaken() {
	if s.core.index == nil || s.bound == nil || s.boundAt == s.view {
		return
	}
	s.boundAt = s.view
	if _, local := s.conn.(nobody); local {
		return // its client id is its own affair
	}
	if c := s.view.Client(s.bound.client); c != nil && c.Epoch > s.bound.session {
		s.bound.superseded.Store(true)
	}
}
