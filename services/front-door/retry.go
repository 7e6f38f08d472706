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

// A process that was stopped, or is cut off, keeps its connections for a while. One attempt waits this long
// for its answer, in milliseconds, and longer for what takes its time on the way; then another member is
// tried, which recognises what was executed already.
const (
	answerLimit    = 1000
	perMillisecond = 16 << 10 // bytes
)

// route sends the prepared call to the group's service and has judge look at the answer. A refusal
// that a repeat may cure is repeated from again on, which resolves the target anew. This is the only
// retrying there is: replicas answer once.
func (s *Session) route(service link.Service, again, judge step) action {
	s.again, s.judge, s.origin = again, judge, again
	s.service = service
	if service == nil {
		s.call.Status, s.call.Reason = wire.CodeTransientNotAccepted, link.ReasonUnknownGroup
		return s.answered()
	}
	if s.core.deps.Router != nil {
		s.call.Deadline = answerLimit + uint32(len(s.call.Body)/perMillisecond)
	}
	return s.then(actRoute, (*Session).answered)
}

func (s *Session) answered() action {
	if s.call.Status.IsTransient() {
		s.open = s.open || s.call.Status == wire.CodeTransientNotCommitted
		if s.core.deps.Router != nil && s.service != nil {
			s.core.deps.Router.Refused(s.call, s.service)
		}
		if s.mayRepeat() {
			return s.repeatLater()
		}
		if s.open { // the last refusal says nothing of the attempts before
			s.call.Status = wire.CodeTransientNotCommitted
		}
	}
	s.decided = true
	return s.judge(s)
}

// repeatLater repeats the call after a pause, or, when the replica knows newer metadata and therefore not
// the group, or not what was shown before a purge, as soon as the own view is as new.
func (s *Session) repeatLater() action {
	s.backOff()
	s.core.metrics.retries.Inc()
	if c := s.call; (c.Reason == link.ReasonUnknownGroup || c.Reason == link.ReasonBehind) && c.MetadataOp > s.view.Op {
		c.Op = c.MetadataOp
		return s.then(actHold, (*Session).repeat)
	}
	return s.then(actPause, (*Session).repeat)
}

// backOff sets the next pause.
func (s *Session) backOff() {
	s.delay = min(firstPause<<min(s.tries, 8), longPause)
	s.tries++
}

// mayRepeat reports whether the call can and should be made again: its bytes are still there, the
// reason may pass, and there is time.
func (s *Session) mayRepeat() bool {
	c := s.call
	limit := s.giveUp
	busy := c.Reason == link.ReasonBusy || c.Reason == link.ReasonBudget
	switch {
	case !busy:
		s.full = time.Time{}
	case s.full.IsZero():
		s.full = s.now
	}
	switch c.Reason {
	case link.ReasonDiskFull:
		return false
	case link.ReasonClosing:
		if s.core.deps.Router == nil {
			return false // there is nobody else
		}
	case link.ReasonUnknownGroup:
		limit = s.start.Add(s.core.cfg.RouteFor)
	case link.ReasonBusy, link.ReasonBudget:
		if s.header.Operation.Partition() && !s.open { // it keeps memory: better its client waits
			limit = s.full.Add(s.core.cfg.BusyFor)
		}
	}
	return (c.Frame != nil || !s.framed) && s.now.Before(limit) && !s.core.hurried(s.now)
}

// repeat clears the answer and prepares the call again on the newest metadata.
func (s *Session) repeat() action {
	frame, sequence := s.call.Frame, s.call.Sequence
	s.call.Reset()
	s.call.Frame, s.call.Sequence = frame, sequence
	s.view = s.core.deps.Follower.View()
	return s.again(s)
}
