package link

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/whippet-mq/whippet/libs/wire"
)

// AnyNode stands for a node id that the dialer does not know.
const AnyNode = wire.FrontDoorID

// refusal says why a connection did not get through its handshake: a label for metrics and a text.
type refusal struct {
	reason string
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(reason, format string, args ...any) error {
	return &refusal{reason: reason, err: fmt.Errorf(format, args...)}
}

// Reasons of refused connections.
const (
	refusedTLS       = "tls"
	refusedIO        = "io" // closed or silent in the middle
	refusedCommand   = "unknown_command"
	refusedCluster   = "cluster_mismatch"
	refusedDirection = "directional_rule"
	refusedNoAuth    = "auth_required"
	refusedMAC       = "mac_mismatch"
	refusedIdentity  = "identity" // first frame: another cluster uuid, mode, node
	refusedFrame     = "wrong_frame"
	refusedBusy      = "too_many"
)

var refusals = []string{
	refusedTLS, refusedIO, refusedCommand, refusedCluster, refusedDirection, refusedNoAuth, refusedMAC, refusedIdentity, refusedFrame, refusedBusy,
}

// shaker is one side of a handshake: the frames 14, 15 and 16 of replica-wire.md §3.
type shaker struct {
	conn   net.Conn
	self   *Node
	secret *Secret // nil: authentication is off, the Hello is the whole handshake
	nonce  func(*[wire.NonceSize]byte)
	script wire.Transcript
}

func newShaker(conn net.Conn, self *Node, secret *Secret) (*shaker, error) {
	s := &shaker{conn: conn, self: self, secret: secret, nonce: freshNonce}
	if t, ok := conn.(*tls.Conn); ok {
		state := t.ConnectionState()
		key, err := state.ExportKeyingMaterial(wire.ExporterLabel, nil, wire.ExporterSize)
		if err != nil {
			return nil, refuse(refusedTLS, "no keying material of the TLS session: %w", err)
		}
		s.script.TLS, s.script.Exporter = true, [wire.ExporterSize]byte(key)
	}
	return s, nil
}

// dial proves this process to the other side and checks that it is node expect, or any node. It returns
// the id that was proved; without authentication that is expect.
func (s *shaker) dial(expect uint8) (peer uint8, err error) {
	if s.secret == nil {
		return expect, s.send(wire.CommandReplicaHello, nil, nil, 0)
	}
	s.nonce(&s.script.NonceD)
	if err := s.send(wire.CommandReplicaHello, &s.script.NonceD, nil, 0); err != nil {
		return 0, err
	}
	var challenge wire.HandshakeHeader
	if err := s.receive(&challenge, wire.CommandReplicaChallenge); err != nil {
		return 0, err
	}
	if challenge.Status != wire.HandshakeOk {
		return 0, refused(challenge.Status)
	}
	peer = challenge.Replica
	if expect != AnyNode && peer != expect {
		return 0, refuse(refusedIdentity, "the process there is node %d, not %d", peer, expect)
	}
	s.script.Cluster, s.script.Dialer, s.script.Acceptor, s.script.NonceA = s.self.Cluster, s.self.ID, peer, challenge.Nonce
	if !s.secret.accepts(challenge.MAC, s.script.AcceptorMAC) {
		return 0, refuse(refusedMAC, "node %d does not have this cluster's secret", peer)
	}
	mac := s.script.DialerMAC(&s.secret.sign)
	return peer, s.send(wire.CommandReplicaFinish, nil, &mac, 0)
}

func refused(status wire.HandshakeStatus) error {
	switch status {
	case wire.HandshakeClusterMismatch:
		return refuse(refusedCluster, "refused: the cluster there has another name")
	case wire.HandshakeDirectionalRule:
		return refuse(refusedDirection, "refused: this node's id may not dial that node, or is not known there")
	case wire.HandshakeAuthRequired:
		return refuse(refusedNoAuth, "refused: authentication required")
	case wire.HandshakeMACMismatch:
		return refuse(refusedMAC, "refused: wrong secret")
	}
	return refuse(refusedCommand, "refused: status %d", status)
}

// accept lets the other side prove itself. may says which node ids may dial here. A refusing frame is
// sent only to who seems to speak the protocol with authentication on.
func (s *shaker) accept(may func(dialer uint8) bool) (peer uint8, err error) {
	var hello wire.HandshakeHeader
	status, err := s.judge(&hello, may)
	hasNonce := hello.Nonce != [wire.NonceSize]byte{}
	switch {
	case err != nil && status != wire.HandshakeOk && s.secret != nil && hasNonce:
		_ = s.send(wire.CommandReplicaChallenge, nil, nil, status) // the connection ends either way
		return 0, err
	case err != nil:
		return 0, err
	case s.secret == nil:
		return hello.Replica, nil
	case !hasNonce:
		return 0, refuse(refusedNoAuth, "node %d did not authenticate", hello.Replica)
	}
	s.script.Cluster, s.script.Dialer, s.script.Acceptor, s.script.NonceD = s.self.Cluster, hello.Replica, s.self.ID, hello.Nonce
	s.nonce(&s.script.NonceA)
	mac := s.script.AcceptorMAC(&s.secret.sign)
	if err := s.send(wire.CommandReplicaChallenge, &s.script.NonceA, &mac, 0); err != nil {
		return 0, err
	}
	var finish wire.HandshakeHeader
	if err := s.receive(&finish, wire.CommandReplicaFinish); err != nil {
		return 0, err
	}
	if !s.secret.accepts(finish.MAC, s.script.DialerMAC) {
		return 0, refuse(refusedMAC, "node %d does not have this cluster's secret", hello.Replica)
	}
	return hello.Replica, nil
}

// judge reads and checks the Hello. status is HandshakeOk when the error is not for the other side to know.
func (s *shaker) judge(hello *wire.HandshakeHeader, may func(uint8) bool) (wire.HandshakeStatus, error) {
	err := s.receive(hello, wire.CommandReplicaHello)
	var r *refusal
	switch {
	case errors.As(err, &r) && r.reason == refusedCommand:
		return wire.HandshakeUnknownCommand, err
	case err != nil:
		return wire.HandshakeOk, err
	case hello.Cluster != s.self.Cluster:
		return wire.HandshakeClusterMismatch, refuse(refusedCluster, "node %d belongs to a cluster of another name", hello.Replica)
	case !may(hello.Replica):
		return wire.HandshakeDirectionalRule, refuse(refusedDirection, "node %d may not dial this node", hello.Replica)
	}
	return wire.HandshakeOk, nil
}

func freshNonce(n *[wire.NonceSize]byte) {
	_, _ = rand.Read(n[:]) // never fails: the runtime ends the process instead
}

func (s *shaker) send(c wire.Command, nonce, mac *[32]byte, status wire.HandshakeStatus) error {
	h := wire.HandshakeHeader{Preamble: wire.Preamble{Cluster: s.self.Cluster, Command: c, Replica: s.self.ID}, Status: status}
	if nonce != nil {
		h.Nonce = *nonce
	}
	if mac != nil {
		h.MAC = *mac
	}
	var b [wire.HeaderSize]byte
	h.Put(b[:])
	if _, err := s.conn.Write(b[:]); err != nil {
		return refuse(refusedIO, "handshake: %w", err)
	}
	return nil
}

// receive reads one frame and nothing behind it.
func (s *shaker) receive(h *wire.HandshakeHeader, c wire.Command) error {
	var b [wire.HeaderSize]byte
	if _, err := io.ReadFull(s.conn, b[:]); err != nil {
		return refuse(refusedIO, "handshake: %w", err)
	}
	err := h.Decode(b[:])
	if err == nil && h.Command != c {
		err = wire.ErrCommand
	}
	if err != nil {
		return refuse(refusedCommand, "handshake: %v where %v was due: %w", wire.Command(b[60]), c, err)
	}
	return nil
}
