package frontdoor

import (
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Back-off between repeats of a refused call.
const (
	firstPause = 5 * time.Millisecond
	longPause  = 50 * time.Millisecond
)

// route sends the prepared call to the group's service and has judge look at the answer. A refusal
// that a repeat may cure is repeated from again on, which resolves the target anew. This is the only
// retrying there is: replicas answer once.
func (s *Session) route(service link.Service, again, judge step) action {
	s.again, s.judge = again, judge
	if service == nil {
		s.call.Status, s.call.Reason = wire.CodeTransientNotAccepted, link.ReasonUnknownGroup
		return s.answered()
	}
	s.service = service
	return s.then(actRoute, (*Session).answered)
}

func (s *Session) answered() action {
	if s.call.Status.IsTransient() && s.mayRepeat() {
		s.delay = min(firstPause<<min(s.tries, 8), longPause)
		s.tries++
		s.core.metrics.retries.Inc()
		return s.then(actPause, (*Session).repeat)
	}
	return s.judge(s)
}

// mayRepeat reports whether the call can and should be made again: its bytes are still there, the
// reason may pass, and there is time.
func (s *Session) mayRepeat() bool {
	c := s.call
	limit := s.giveUp
	switch c.Reason {
	case link.ReasonClosing, link.ReasonDiskFull:
		return false
	case link.ReasonUnknownGroup:
		limit = s.start.Add(s.core.cfg.RouteFor)
	}
	return (c.Frame != nil || !s.framed) && s.now.Before(limit) && !s.core.stopping.Load()
}

// repeat clears the answer and prepares the call again on the newest metadata.
func (s *Session) repeat() action {
	frame, sequence := s.call.Frame, s.call.Sequence
	s.call.Reset()
	s.call.Frame, s.call.Sequence = frame, sequence
	s.view = s.core.deps.Follower.View()
	return s.again(s)
}
