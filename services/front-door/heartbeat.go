package frontdoor

import (
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// heartbeats evicts members of consumer groups that have been silent for 1.2 intervals. Connections
// that are in no group may be silent for ever.
func (s *Server) heartbeats() {
	interval := s.core.cfg.Heartbeat
	ticker := time.NewTicker(max(interval/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			s.evictSilent(now, interval+interval/5)
		case <-s.done:
			return
		}
	}
}

func (s *Server) evictSilent(now time.Time, limit time.Duration) {
	view := s.core.deps.Follower.View()
	for _, session := range s.core.clients.all() {
		b := session.binding.Load()
		if b == nil || b.superseded.Load() || session.idle(now) <= limit || !isMember(view, b.client) {
			continue
		}
		if s.core.clients.unbind(session, b) {
			s.group.Go(func() {
				s.logout(b)
				s.core.metrics.evict(wire.EvictStaleClient)
				session.push(wire.EvictStaleClient)
			})
		}
	}
}

// logout ends a session for a client that cannot do it itself. It repeats until the metadata group
// has answered for good or the server stops.
func (s *Server) logout(b *binding) {
	call := link.NewCall()
	for delay := 5 * time.Millisecond; !s.core.stopping.Load(); delay = min(2*delay, time.Second) {
		call.Reset()
		call.Group = wire.MetadataGroup
		call.Header = wire.RequestHeader{
			Operation: wire.OpLogout, Client: b.client, Session: b.session, UserID: b.user, Request: ^uint64(0),
		}
		s.core.entering <- struct{}{}
		s.core.askMetadata(call)
		<-s.core.entering
		if call.Status == 0 {
			s.core.deps.Follower.Wait(call.Op, s.core.cfg.HoldFor)
			return
		}
		if !call.Status.IsTransient() {
			return
		}
		select {
		case <-time.After(delay):
		case <-s.done:
			return
		}
	}
}
