package control

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

const (
	natsDial  = 2 * time.Second  // to connect, and to write what was published
	natsPing  = 10 * time.Second // between questions whether the server is still there; two without an answer: it is not
	natsPause = 100 * time.Millisecond
	// natsJitter spreads the processes of a cluster that connect again.
	natsJitter = 5 * time.Second

	complainEvery = time.Minute
)

// NATSOptions say where a NATS server is and who connects.
type NATSOptions struct {
	URL      string // nats://host:port or tls://host:port, several with commas; no credentials
	User     string
	Password string
	Seed     string // of an nkey, instead of user and password
	CAFile   string // PEM; given: TLS only, with a certificate of one of these authorities
	Name     string // of the connection, as the server shows it
	Log      hclog.Logger
	Metrics  *Metrics
}

// NATS is the bus of a cluster. Core NATS only: nothing is stored and nothing is repeated.
type NATS struct {
	options NATSOptions
	conn    atomic.Pointer[nats.Conn]
	closed  chan struct{}
	up      atomic.Bool

	complained atomic.Int64 // when, ns
}

// ErrNotConnected says that a message was dropped because there is no connection.
var ErrNotConnected = errors.New("control: not connected to NATS")

// OpenNATS returns at once and connects in the background, for as long as it takes. An error is one of the
// options.
func OpenNATS(o NATSOptions) (*NATS, error) {
	b, settings, err := newNATS(o)
	if err != nil {
		return nil, err
	}
	go func() {
		if _, err := b.connect(append(settings, nats.RetryOnFailedConnect(true))); err != nil {
			b.complain(err)
		}
	}()
	return b, nil
}

// DialNATS connects before it returns. A connection that is lost later is made again.
func DialNATS(o NATSOptions) (*NATS, error) {
	b, settings, err := newNATS(o)
	if err != nil {
		return nil, err
	}
	if _, err := b.connect(settings); err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", o.URL, err)
	}
	return b, nil
}

func newNATS(o NATSOptions) (*NATS, []nats.Option, error) {
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	for one := range strings.SplitSeq(o.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls":
			return nil, nil, errors.New("control: a NATS server is nats://host:port or tls://host:port")
		case u.User != nil:
			return nil, nil, errors.New("control: the URL of a NATS server holds no credentials: they are settings of their own, which no log shows")
		}
	}
	b := &NATS{options: o, closed: make(chan struct{})}
	settings, err := b.settings()
	return b, settings, err
}

func (b *NATS) settings() ([]nats.Option, error) {
	o := &b.options
	s := []nats.Option{
		nats.Name(o.Name), nats.Timeout(natsDial), nats.FlusherTimeout(natsDial), nats.PingInterval(natsPing), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(natsPause), nats.ReconnectJitter(natsJitter, natsJitter), nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), nats.NoCallbacksAfterClientClose(),
		nats.ConnectHandler(b.connected), nats.ReconnectHandler(b.connected),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { b.lost(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.complain(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { b.complain(err) }),
	}
	switch {
	case o.Seed != "" && o.User != "":
		return nil, errors.New("control: NATS takes either an nkey or a user")
	case o.Seed != "":
		key, err := nkeys.FromSeed([]byte(strings.TrimSpace(o.Seed)))
		if err != nil {
			return nil, errors.New("control: the nkey is not the seed of a user, which begins with SU")
		}
		public, err := key.PublicKey()
		if err != nil || !nkeys.IsValidPublicUserKey(public) {
			return nil, errors.New("control: the nkey is not the seed of a user, which begins with SU")
		}
		s = append(s, nats.Nkey(public, key.Sign))
	case o.User != "":
		s = append(s, nats.UserInfo(o.User, o.Password))
	}
	if o.CAFile != "" {
		s = append(s, nats.RootCAs(o.CAFile))
	}
	for _, set := range s { // what is wrong shows now, not when a server is found
		if err := set(&nats.Options{}); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
	}
	return s, nil
}

func (b *NATS) connect(settings []nats.Option) (*nats.Conn, error) {
	c, err := nats.Connect(b.options.URL, settings...)
	if err != nil {
		return nil, err
	}
	b.conn.Store(c)
	select {
	case <-b.closed: // meanwhile
		c.Close()
	default:
	}
	return c, nil
}

func (b *NATS) connected(c *nats.Conn) {
	b.up.Store(true)
	b.options.Metrics.connect(true)
	b.options.Log.Info("control plane is connected", "nats", c.ConnectedUrlRedacted())
}

func (b *NATS) lost(err error) {
	if b.up.Swap(false) {
		b.options.Metrics.connect(false)
		b.options.Log.Warn("control plane lost its connection: events are not shown until it is back", "error", err)
	}
}

// complain says what is wrong, once in complainEvery: it may be so for every message.
func (b *NATS) complain(err error) {
	now := time.Now().UnixNano()
	if last := b.complained.Load(); now-last > int64(complainEvery) && b.complained.CompareAndSwap(last, now) {
		b.options.Log.Warn("control plane does not work", "nats", b.options.URL, "error", err)
	}
}

// Publish implements Bus.
func (b *NATS) Publish(subject string, payload []byte) error {
	c := b.conn.Load()
	if c == nil || !c.IsConnected() {
		return ErrNotConnected
	}
	return c.Publish(subject, payload)
}

// Subscribe implements Bus. It needs a connection to have been made.
func (b *NATS) Subscribe(pattern string) (*Subscription, error) {
	c := b.conn.Load()
	if c == nil {
		return nil, ErrNotConnected
	}
	var cancel func()
	s := newSubscription(func() { cancel() })
	sub, err := c.Subscribe(pattern, func(m *nats.Msg) { s.deliver(Delivery{m.Subject, m.Data}) })
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	cancel = func() { _ = sub.Unsubscribe() }
	return s, nil
}

// Listening implements Bus: a server may always have somebody who listens.
func (b *NATS) Listening() bool {
	c := b.conn.Load()
	return c != nil && c.IsConnected()
}

// Close implements Bus. What was published is sent if the server takes it at once.
func (b *NATS) Close() {
	close(b.closed)
	if c := b.conn.Load(); c != nil {
		_ = c.FlushTimeout(closing / 2)
		c.Close()
	}
}
