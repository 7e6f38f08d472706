package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// caller is who a credential stands for.
type caller struct {
	user  uint32
	key   string // of the credential, for what is counted per credential
	ghost bool   // the user of the token does not exist any more: it has no rights at all
}

// ghost is a caller whose user was deleted. No user has its number.
func ghost(key string) caller { return caller{user: wire.NoUser, key: key, ghost: true} }

// authenticate finds the caller of a request: a bearer token of ours, one of a trusted issuer, or a
// personal access token.
func (s *Server) authenticate(r *http.Request, now time.Time) (caller, error) {
	credential, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || credential == "" {
		return caller{}, refusal(wire.CodeAccessTokenMissing)
	}
	if who, ok := s.tokens.resolve(r.Context(), credential, now); ok {
		return s.known(who)
	}
	owner, code := s.local.Token(credential, now)
	switch {
	case code.IsTransient():
		return caller{}, refusal(code)
	case code != 0:
		return caller{}, refusal(wire.CodeUnauthenticated)
	}
	return caller{user: owner.ID, key: credential}, nil
}

// known turns the subject of a token into a caller. A user made after the token was issued is not
// the one it was issued for: user ids are given out again.
func (s *Server) known(who subject) (caller, error) {
	user, code := s.local.User(who.user)
	switch {
	case code != 0:
		return caller{}, refusal(code)
	case user == nil, who.born != 0 && user.CreatedAt != who.born, who.born == 0 && user.CreatedAt/1e6 > who.issued:
		return ghost(who.id), nil
	}
	return caller{user: who.user, key: who.id}, nil
}
