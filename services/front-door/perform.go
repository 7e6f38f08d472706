package frontdoor

import (
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// answer lets a session act on one whole frame and returns the reply, which is valid until the
// session's release. frame, when not nil, owns b.
func (s *Server) answer(session *Session, b []byte, frame *buffer.Frame) []byte {
	now := time.Now()
	for act := session.request(now, b, frame); act != actAnswer; {
		act = s.perform(session, act)
	}
	reply := session.reply()
	s.core.metrics.observe(session, now, len(b), len(reply))
	return reply
}

// answerRead answers what a frameReader read: a frame, or errNoRoom and a header.
func (s *Server) answerRead(session *Session, b []byte, frame *buffer.Frame, err error) []byte {
	if err != nil {
		session.refuse(b, wire.CodeTransientNotAccepted)
		return session.reply()
	}
	return s.answer(session, b, frame)
}

// perform does what a session asked for and lets it go on. It is the only place where a request
// waits.
func (s *Server) perform(session *Session, act action) action {
	switch act {
	case actRoute:
		s.call(session)
	case actPause:
		time.Sleep(session.delay) // a server that stops waits too: requests in progress are answered first
	case actHold:
		if !s.core.deps.Follower.Wait(session.call.Op, s.core.cfg.HoldFor) {
			s.core.metrics.lateFollower.Inc()
		}
	case actPassword:
		s.core.passwords.compute(&session.job)
	case actFacts:
		session.facts = s.core.facts.get(session.groups, session.facts[:0])
	case actStats:
		s.core.host.read(&session.host)
	case actReadIndex:
		s.takeIndex(session)
	case actSnapshot:
		session.archive, session.archiveErr = s.core.snapshot(session.archiveSpec)
	}
	return session.resume(time.Now())
}

// call makes the session's call, a login's in its turn.
func (s *Server) call(session *Session) {
	if session.call.Header.Operation == wire.OpRegister {
		s.core.entering <- struct{}{}
		defer func() { <-s.core.entering }()
	}
	if !s.core.passes(session) {
		return
	}
	began := time.Now()
	session.service.Serve(session.call)
	<-session.call.Done()
	took := time.Since(began)
	s.core.metrics.called(session.call.Group, took)
	s.core.gate.answered(&session.pass, took, session.call.Reason == link.ReasonBusy)
}

// pause waits d, or until the server stops.
func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.done:
	}
}

// converse serves the requests of a connection, which is among the clients meanwhile, with next and
// then ends it with end.
func (s *Server) converse(session *Session, next func() bool, end func()) {
	s.core.metrics.connections.Inc()
	s.core.clients.add(session)
	for next() {
	}
	end()
	s.core.gate.leave(&session.pass)
	s.leave(session)
	s.core.clients.remove(session)
	s.core.metrics.connections.Dec()
}

// leave logs the session of a lost connection out, unless the server itself is stopping: then the
// client may come back to its session.
func (s *Server) leave(session *Session) {
	b := session.binding.Load()
	if b == nil || b.superseded.Load() || s.core.stopping.Load() {
		return
	}
	s.logout(b)
	s.core.clients.unbind(session, b)
}
