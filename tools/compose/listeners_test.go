package compose

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// listener is one place where the cluster can be talked to.
type listener struct {
	name    string
	mutual  bool // both sides show a certificate
	onlyTLS bool // there is no plain form of it
	// ask talks to it, in plain without a configuration, and returns nil when it was answered.
	ask func(ctx context.Context, config *tls.Config) error
}

// errAnswer says that the other side said something else than what belongs to its protocol.
var errAnswer = errors.New("no answer of this protocol")

// listeners are all of them, but for the ops ports.
func (p *project) listeners() []*listener {
	all := []*listener{
		{name: "clients, TCP", ask: p.askTCP},
		{name: "clients, WebSocket", ask: p.askWebSocket},
		{name: "clients, HTTP", ask: p.askHTTP},
		{name: "clients, QUIC", ask: p.askQUIC, onlyTLS: true},
		{name: "NATS", ask: p.askNATS},
	}
	for _, c := range []*container{p.of("metadata-2")[0], p.of("partition-replica")[0]} {
		all = append(all,
			&listener{name: "replica plane, " + c.service, mutual: true, ask: c.hello("127.0.0.1:9090", 0)},
			&listener{name: "service plane, " + c.service, mutual: true, ask: c.hello("127.0.0.1:9091", wire.FrontDoorID)},
		)
	}
	return all
}

func (p *project) askTCP(ctx context.Context, config *tls.Config) error {
	c, err := client.Dial(ctx, client.Options{
		Address: p.address("FRONT_DOOR_0_TCP"), Username: "iggy", Password: password, TLS: config, Timeout: answerTime,
	})
	if err == nil {
		c.Close()
	}
	return err
}

// web is a client of HTTP, with what belongs in front of an address.
func web(config *tls.Config, scheme string) (*http.Client, string) {
	if config == nil {
		return &http.Client{Transport: &http.Transport{}}, scheme + "://"
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, scheme + "s://"
}

func (p *project) askWebSocket(ctx context.Context, config *tls.Config) error {
	through, scheme := web(config, "ws")
	c, _, err := websocket.Dial(ctx, scheme+p.address("FRONT_DOOR_0_WEBSOCKET"), &websocket.DialOptions{HTTPClient: through})
	if err != nil {
		return err
	}
	return c.CloseNow()
}

func (p *project) askHTTP(ctx context.Context, config *tls.Config) error {
	through, scheme := web(config, "http")
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+p.address("FRONT_DOOR_0_HTTP")+"/ping", nil)
	if err != nil {
		return err
	}
	r, err := through.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errAnswer, errors.Join(err, errors.New(r.Status)))
	}
	return nil
}

func (p *project) askQUIC(ctx context.Context, config *tls.Config) error {
	config = config.Clone()
	config.NextProtos = []string{"iggy"}
	c, err := quic.DialAddr(ctx, p.address("FRONT_DOOR_0_QUIC"), config, nil)
	if err != nil {
		return err
	}
	return c.CloseWithError(0, "")
}

// askNATS speaks the first words of NATS, whose server always begins in plain text.
func (p *project) askNATS(ctx context.Context, config *tls.Config) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address("NATS_PORT"))
	if err != nil {
		return err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	if info, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(info, "INFO ") {
		return fmt.Errorf("%w: %q %v", errAnswer, info, err)
	}
	if config != nil {
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		conn = secure
	}
	const operator = `CONNECT {"verbose":false,"user":"operator","pass":"%s"}` + "\r\nPING\r\n"
	if _, err := fmt.Fprintf(conn, operator, p.secret("nats-operator")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || answer != "PONG\r\n" {
		return fmt.Errorf("%w: %q %v", errAnswer, answer, err)
	}
	return nil
}

// hello begins the handshake of a plane between processes as a node, and waits for the challenge, in which the
// other side may say that it wants to hear nothing from that node: whoever gets so far has been let in by TLS.
func (c *container) hello(address string, node uint8) func(ctx context.Context, config *tls.Config) error {
	return func(ctx context.Context, config *tls.Config) error {
		conn, err := c.dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		end, _ := ctx.Deadline()
		_ = conn.SetDeadline(end)
		if config != nil {
			config = config.Clone()
			config.NextProtos = []string{wire.ReplicaALPN}
			secure := tls.Client(conn, config)
			if err := secure.HandshakeContext(ctx); err != nil {
				return err
			}
			conn = secure
		}
		h := wire.HandshakeHeader{Nonce: [wire.NonceSize]byte{1}}
		h.Cluster, h.Command, h.Replica, h.Size = wire.ClusterID("whippet"), wire.CommandReplicaHello, node, wire.HeaderSize
		frame := make([]byte, wire.HeaderSize)
		h.Put(frame)
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, frame); err != nil {
			return err
		}
		if err := h.Decode(frame); err != nil || h.Command != wire.CommandReplicaChallenge {
			return fmt.Errorf("%w: %v", errAnswer, err)
		}
		return nil
	}
}
