package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// getUser serves GetUser: everyone may read the own record.
func (s *Session) getUser() action {
	q, err := wire.DecodeUserTarget(s.body)
	if err != nil {
		return s.refused(asCode(err))
	}
	user := s.view.User(q.User)
	if user == nil {
		return s.empty()
	}
	if user.ID != s.bound.user && !s.can(metadata.RightReadUsers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	return s.answer(user.Details().Append(s.reset()))
}

// getUsers serves GetUsers.
func (s *Session) getUsers() action {
	if !s.can(metadata.RightReadUsers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	out := s.reset()
	for _, user := range s.view.Users() {
		out = user.Record().Append(out)
	}
	return s.answer(out)
}

// getTokens serves GetPersonalAccessTokens: the caller's own, by name.
func (s *Session) getTokens() action {
	out := s.reset()
	if user := s.view.UserByID(s.bound.user); user != nil {
		for _, t := range user.Tokens() {
			out = t.Record().Append(out)
		}
	}
	return s.answer(out)
}
