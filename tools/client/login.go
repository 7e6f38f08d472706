package client

import (
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Login starts a session with a password. The error is an *Evicted when the server refuses.
func (c *Client) Login(username, password string) error {
	return c.login(func(dst []byte) []byte {
		return wire.LoginRequest{Username: []byte(username), Password: []byte(password)}.Append(dst)
	})
}

// LoginToken starts a session with a personal access token.
func (c *Client) LoginToken(token string) error {
	return c.login(func(dst []byte) []byte { return wire.TokenLoginRequest{Token: []byte(token)}.Append(dst) })
}

func (c *Client) login(credentials func([]byte) []byte) error {
	prefix := wire.LoginPrefix{
		ProtocolVersion: ProtocolVersion,
		SDKName:         []byte(orElse(c.options.Name, "whippet-client")),
		SDKVersion:      []byte(orElse(c.options.Version, "1")),
	}
	c.id = newID()
	c.begin(credentials(prefix.Append(c.body())))
	payload, err := c.exchange(wire.OpRegister, 0, nil)
	if err != nil {
		return err
	}
	reply, err := wire.DecodeLoginReply(append(wire.AppendSuccess(nil), payload...))
	if err != nil {
		return c.fail(fmt.Errorf("%w: login reply: %v", ErrProtocol, err))
	}
	c.session, c.userID, c.request = reply.Session, reply.UserID, 1
	return nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Logout ends the session; the connection stays and may log in again.
func (c *Client) Logout() error {
	c.begin(c.body())
	_, err := c.change(wire.OpLogout)
	if err == nil {
		c.session = 0
	}
	return err
}
