package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

// loginState is what a login keeps while a password is verified and the session is registered.
type loginState struct {
	user       uint32
	active     bool
	credential []byte // the body behind the version prefix
	recognized bool   // a password-shaped body was read
}

// register starts a login: version, checksum, then the body as user name and password, then as a
// token, because the command code is not on the wire (client-semantics.md §1.3).
func (s *Session) register() action {
	prefix, rest, err := wire.DecodeLoginPrefix(s.body)
	if err != nil {
		return s.denied(wire.EvictMalformedLogin)
	}
	if !wire.AcceptsVersion(prefix.ProtocolVersion) {
		return s.denied(wire.EvictIncompatibleProtocol)
	}
	if !s.checksumHolds() {
		return s.refused(wire.CodeInvalidFormat)
	}
	s.sdk = wire.IdentifySDK(prefix.SDKName, prefix.SDKVersion)
	s.login = loginState{credential: rest}
	password, err := wire.DecodeLogin(rest)
	if err != nil {
		return s.tokenLogin()
	}
	s.login.recognized = true
	if !password.WithinPolicy() {
		return s.tokenLogin()
	}
	// An unknown user costs as much as a known one, and an inactive one looks like a wrong password.
	s.job.user, s.job.phc = ^uint32(0), s.core.passwords.dummy
	if user := s.view.UserByName(password.Username); user != nil {
		s.login.user, s.login.active = user.ID, user.Active
		s.job.user, s.job.phc = user.ID, user.PasswordHash
	}
	s.job.password = append(s.job.password[:0], password.Password...)
	return s.then(actPassword, (*Session).passwordVerified)
}

func (s *Session) passwordVerified() action {
	switch {
	case s.job.busy:
		s.core.metrics.loginsBusy.Inc()
		return s.rejected(wire.CodeTransientNotAccepted)
	case s.job.ok && s.login.active:
		return s.enter()
	}
	return s.tokenLogin()
}

// tokenLogin reads the credentials as a personal access token. A body that is none leaves the
// verdict to what the password shape said.
func (s *Session) tokenLogin() action {
	q, err := wire.DecodeTokenLogin(s.login.credential)
	if err != nil {
		if s.login.recognized {
			return s.denied(wire.EvictInvalidCredentials)
		}
		return s.denied(wire.EvictMalformedLogin)
	}
	token := s.view.TokenByHash(hashToken(q.Token))
	if token == nil || token.Expired(uint64(s.now.UnixMicro())) {
		return s.denied(wire.EvictInvalidToken)
	}
	owner := s.view.UserByID(token.UserID)
	if owner == nil {
		return s.denied(wire.EvictInvalidToken)
	}
	if !owner.Active {
		return s.denied(wire.EvictUserInactive)
	}
	s.login.user = owner.ID
	return s.enter()
}

// denied ends a login with an eviction. The connection stays open and, if it was bound, bound.
func (s *Session) denied(reason wire.EvictionReason) action {
	s.core.metrics.loginsDenied.Inc()
	return s.evicted(reason)
}

// enter registers the verified user. A connection that is bound already keeps its session.
func (s *Session) enter() action {
	if s.authenticated() {
		return s.welcome(s.login.user, s.bound.session)
	}
	c := s.call
	c.Group = wire.MetadataGroup
	c.Header = s.header
	c.Header.UserID = s.login.user
	return s.route(s.core.metadataService(), (*Session).enter, (*Session).registered)
}

func (s *Session) registered() action {
	c := s.call
	switch {
	case c.Evict != 0:
		return s.denied(c.Evict)
	case c.Status != 0:
		return s.rejected(c.Status)
	}
	s.bound = &binding{client: s.header.Client, session: c.Op, user: s.login.user}
	s.core.clients.bind(s, s.bound)
	s.core.metrics.logins.Inc()
	return s.then(actHold, (*Session).entered)
}

func (s *Session) entered() action { return s.welcome(s.bound.user, s.bound.session) }

// welcome answers a login.
func (s *Session) welcome(user uint32, session uint64) action {
	reply := wire.LoginReply{UserID: user, Session: session, ProtocolVersion: wire.ProtocolVersion, ServerVersion: s.core.cfg.Version}
	s.out = reply.Append(wire.AppendSuccess(s.reset()))
	h := s.echo(len(s.out))
	h.Client, h.Op, h.Commit = s.header.Client, session, max(s.view.Op, session)
	h.Put(s.out)
	return actAnswer
}

// logout ends the session. On a connection without one, or with one that was superseded, it does
// nothing and succeeds.
func (s *Session) logout() action {
	if !s.authenticated() {
		return s.goodbye()
	}
	c := s.call
	c.Group = wire.MetadataGroup
	c.Header = s.header
	c.Header.Client, c.Header.Session, c.Header.UserID = s.bound.client, s.bound.session, s.bound.user
	return s.route(s.core.metadataService(), (*Session).logout, (*Session).loggedOut)
}

func (s *Session) loggedOut() action {
	if s.call.Status != 0 && s.call.Evict == 0 {
		return s.refused(s.call.Status)
	}
	s.core.clients.unbind(s, s.bound)
	return s.then(actHold, (*Session).goodbye)
}

func (s *Session) goodbye() action {
	s.out = s.reset()
	h := s.echo(len(s.out))
	h.Client = s.id
	if s.bound != nil {
		h.Client, h.Op = s.bound.client, s.bound.session
	}
	h.Put(s.out)
	return actAnswer
}
