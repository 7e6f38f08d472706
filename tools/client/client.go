package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// ProtocolVersion is the packed protocol version this client speaks: 0.11.0.
const ProtocolVersion = 11 << 10

// Options say where to connect and as whom.
type Options struct {
	Address  string // host:port
	Username string // with Password: log in while dialling
	Password string
	Token    string      // or log in with a token
	TLS      *tls.Config // nil speaks plain TCP

	Timeout time.Duration // for one answer, which may take half as long again; 0 means 30 s
	// RetryFor is how long a request refused with 57 or 58 is repeated; 0 means 30 s, below 0 never.
	RetryFor time.Duration
	Name     string // shown by the server; "" means whippet-client
	Version  string // likewise; "" means 1
}

// Client is one connection to a server. It serves one goroutine at a time.
type Client struct {
	conn    net.Conn
	options Options
	id      wire.U128
	session uint64
	request uint64 // number of the next metadata request
	userID  uint32

	out    []byte      // request under construction: header space, then body
	vector net.Buffers // header part and payload of a send, for one vectored write
	parts  [2][]byte   // backing of vector
	in     []byte      // bytes received
	used   int         // bytes of in that the last frame took
	err    error       // why the connection is unusable

	deadline time.Time // of reads and writes
	written  time.Time // when the last request was
}

// Dial connects and, when the options hold credentials, logs in.
func Dial(ctx context.Context, o Options) (*Client, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.RetryFor == 0 {
		o.RetryFor = 30 * time.Second
	}
	dialer := net.Dialer{Timeout: o.Timeout}
	conn, err := dialer.DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		secure := tls.Client(conn, withServerName(o.TLS, o.Address))
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, fmt.Errorf("TLS to %s: %w", o.Address, err)
		}
		conn = secure
	}
	c := &Client{conn: conn, options: o, out: make([]byte, wire.HeaderSize, 4096)}
	switch {
	case o.Token != "":
		err = c.LoginToken(o.Token)
	case o.Username != "":
		err = c.Login(o.Username, o.Password)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func withServerName(t *tls.Config, address string) *tls.Config {
	if t.ServerName != "" || t.InsecureSkipVerify {
		return t
	}
	t = t.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil {
		t.ServerName = host
	}
	return t
}

// Close ends the connection. The server drops the session soon after.
func (c *Client) Close() {
	_ = c.fail(net.ErrClosed)
	c.conn.Close()
}

// Broken reports whether the connection failed; every further call returns that error.
func (c *Client) Broken() bool { return c.err != nil }

// Session is the number of the session, 0 before login.
func (c *Client) Session() uint64 { return c.session }

// Written is when the last byte of the last request was in the hands of the operating system.
func (c *Client) Written() time.Time { return c.written }

// UserID is the user logged in.
func (c *Client) UserID() uint32 { return c.userID }

// ID is the client id of the session.
func (c *Client) ID() wire.U128 { return c.id }

func (c *Client) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return err
}

// newID draws a client id; each login takes a new one.
func newID() wire.U128 {
	var b [16]byte
	rand.Read(b[:])
	b[0] |= 1
	return wire.DecodeU128(b[:])
}
