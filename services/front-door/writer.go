package frontdoor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// writer is the session under which one user's metadata operations are ordered for Local. The
// metadata group recognises repeats by its client id and request number, so it sends one at a time.
type writer struct {
	user uint32
	born uint64 // when the user was made: a later user may get its id

	mu      sync.Mutex // held from a request to the release of its answer
	session *Session
	bound   atomic.Pointer[binding] // of session, for whoever does not hold mu
	request uint64                  // number of the last one
	used    time.Time
	gone    bool // logged out: the next caller makes a new one
}

// Write orders a metadata operation for user.
func (l *Local) Write(user uint32, op wire.Operation, body []byte) LocalReply {
	for range 3 {
		w, code := l.writer(user)
		if code != 0 {
			return LocalReply{Status: code}
		}
		w.request++
		s := w.session
		b := s.binding.Load()
		h := wire.RequestHeader{Operation: op, Client: b.client, Session: b.session, Request: w.request}
		r := l.reply(s, s.frame(&h, body), nil, w.mu.Unlock)
		if s.reason == 0 {
			return r
		}
		// The session is gone, pushed out of the client table or logged out after a restart. If the
		// request was repeated before, the outcome of its first attempt went with it.
		if s.tries > 0 {
			r.Status = wire.CodeTransientNotCommitted
			w.gone = true
			return r
		}
		w.gone = true
		r.Release()
	}
	return LocalReply{Status: wire.CodeTransientNotAccepted}
}

// writer returns the user's session, locked and registered.
func (l *Local) writer(user uint32) (*writer, wire.Code) {
	for {
		u := l.View().UserByID(user)
		if u == nil {
			return nil, wire.CodeUnauthorized
		}
		l.mu.Lock()
		w := l.writers[user]
		if w == nil {
			if len(l.writers) >= l.server.core.cfg.LocalSessions {
				l.mu.Unlock()
				return nil, wire.CodeCannotEstablishConnection
			}
			w = &writer{user: user, born: u.CreatedAt}
			l.writers[user] = w
		}
		l.mu.Unlock()
		w.mu.Lock()
		if w.born != u.CreatedAt {
			l.end(w)
		}
		if w.gone {
			l.forget(w)
			w.mu.Unlock()
			continue
		}
		w.used = time.Now()
		if w.session != nil {
			return w, 0
		}
		if code := l.register(w); code != 0 {
			w.gone = true
			l.forget(w)
			w.mu.Unlock()
			return nil, code
		}
		return w, 0
	}
}

func (l *Local) forget(w *writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writers[w.user] == w {
		delete(l.writers, w.user)
	}
}

// register opens a session for w under a client id nobody else has.
func (l *Local) register(w *writer) wire.Code {
	s := l.newSession()
	s.retryFor = l.server.core.cfg.RetryFor
	client := randomU128()
	c := s.call
	giveUp := time.Now().Add(s.retryFor)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		c.Reset()
		c.Group = wire.MetadataGroup
		c.Header = wire.RequestHeader{Operation: wire.OpRegister, Client: client, UserID: w.user}
		l.server.core.askMetadata(c)
		if !c.Status.IsTransient() || time.Now().After(giveUp) || l.server.core.stopping.Load() {
			break
		}
		l.server.pause(pause)
	}
	switch {
	case c.Evict != 0:
		return wire.CodeUnauthorized
	case c.Status != 0:
		return c.Status
	}
	l.server.core.deps.Follower.Wait(c.Op, l.server.core.cfg.HoldFor)
	b := &binding{client: client, session: c.Op, user: w.user}
	s.binding.Store(b)
	w.bound.Store(b)
	w.session, w.request = s, 0
	return 0
}

// hold adds the sessions of the users to held, by client.
func (l *Local) hold(held map[wire.U128]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writers {
		if b := w.bound.Load(); b != nil {
			held[b.client] = b.session
		}
	}
}

// Logout ends the session kept for user, if no request is using it. Later requests open a new one.
func (l *Local) Logout(user uint32) {
	l.mu.Lock()
	w := l.writers[user]
	l.mu.Unlock()
	if w != nil && w.mu.TryLock() {
		l.end(w)
		w.mu.Unlock()
	}
}

// end logs w, which the caller holds, out.
func (l *Local) end(w *writer) {
	if w.gone {
		return
	}
	w.gone = true
	w.bound.Store(nil)
	l.forget(w)
	if w.session != nil {
		l.server.logout(w.session.binding.Load())
	}
}

// expire logs sessions out that nobody used for a while, until the server stops.
func (l *Local) expire() {
	ticker := time.NewTicker(writerIdle / 10)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			l.expireAt(now)
		case <-l.server.done:
			return
		}
	}
}

func (l *Local) expireAt(now time.Time) {
	l.mu.Lock()
	all := make([]*writer, 0, len(l.writers))
	for _, w := range l.writers {
		all = append(all, w)
	}
	l.mu.Unlock()
	for _, w := range all {
		if !w.mu.TryLock() {
			continue
		}
		if now.Sub(w.used) > writerIdle {
			l.end(w)
		}
		w.mu.Unlock()
	}
}
