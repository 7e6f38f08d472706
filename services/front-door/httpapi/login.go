package httpapi

import (
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// identity answers a login.
type identity struct {
	UserID uint32      `json:"user_id"`
	Token  accessToken `json:"access_token"`
}

type accessToken struct {
	Token  string `json:"token"`
	Expiry int64  `json:"expiry"` // unix seconds
}

// ping serves GET /ping.
func ping(c *call) error { return c.send(200, "text/plain; charset=utf-8", []byte("pong")) }

// login serves POST /users/login.
func login(c *call) error {
	var username, password []byte
	b, err := c.body()
	if err != nil {
		return err
	}
	b.record([]string{"username", "password", "version", "context"}, 2, func(i int) {
		switch i {
		case 0:
			username = b.str()
		case 1:
			password = b.str()
		default:
			if !b.null() {
				b.str()
			}
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	user, code := c.api.local.Password(username, password)
	if code != 0 {
		return refusal(code)
	}
	return c.issue(user)
}

// issue answers with a new bearer token for user.
func (c *call) issue(user uint32) error {
	u := c.api.local.View().UserByID(user)
	if u == nil {
		return refusal(wire.CodeUnauthenticated)
	}
	token, expiry := c.api.tokens.issue(user, u.CreatedAt, time.Now())
	return c.json(identity{UserID: user, Token: accessToken{Token: token, Expiry: expiry}})
}

// one reads a body of one string member that matters.
func (c *call) one(name string) ([]byte, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	var text []byte
	b.record([]string{name}, 1, func(int) { text = b.str() })
	return text, b.end()
}

// refresh serves POST /users/refresh-token: a token of ours that is still good gets a successor, and
// stays good itself.
func refresh(c *call) error {
	text, err := c.one("token")
	if err != nil {
		return err
	}
	now := time.Now()
	who, ok := c.api.tokens.own(string(text), now)
	if !ok {
		if _, foreign := c.api.tokens.trusted.resolve(c.r.Context(), string(text), now, c.api.cfg.JWT.Skew); foreign {
			return refusal(wire.CodeInvalidAccessToken)
		}
		return refusal(wire.CodeUnauthenticated)
	}
	caller, err := c.api.known(who)
	switch {
	case err != nil:
		return err
	case caller.ghost:
		return refusal(wire.CodeUnauthenticated)
	}
	return c.issue(caller.user)
}

// tokenLogin serves POST /personal-access-tokens/login.
func tokenLogin(c *call) error {
	text, err := c.one("token")
	if err != nil {
		return err
	}
	owner, code := c.api.local.Token(string(text), time.Now())
	if code != 0 {
		return refusal(code)
	}
	return c.issue(owner.ID)
}

// logout serves DELETE /users/logout. It ends what the server keeps for the caller; a bearer token is
// good until it expires.
func logout(c *call) error {
	if !c.caller.ghost {
		c.api.local.Logout(c.caller.user)
	}
	return c.noContent(nil)
}
