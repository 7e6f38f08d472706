package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// PeerName is the DNS name that every certificate of a cluster carries. Peers are verified against it
// and the cluster's authority, not against addresses, which change.
const PeerName = "whippet-peer"

// TLS is how processes of a cluster encrypt: version 1.3.
type TLS struct {
	client, server *tls.Config
	byAddress      bool // servers are verified against the host that was dialed
}

// NewTLS makes the configuration of a native cluster from PEM: a certificate chain with its key, and the
// authorities that sign the certificates of the cluster. Both sides show one.
func NewTLS(certPEM, keyPEM, caPEM []byte) (*TLS, error) {
	t, roots, err := parseTLS(certPEM, keyPEM, caPEM)
	if err != nil {
		return nil, err
	}
	t.client.ServerName = PeerName
	t.server.ClientCAs, t.server.ClientAuth = roots, tls.RequireAndVerifyClientCert
	t.server.VerifyConnection = func(s tls.ConnectionState) error {
		return s.PeerCertificates[0].VerifyHostname(PeerName)
	}
	return t, nil
}

// NewMixedTLS is NewTLS by the rules of reference nodes (replica-wire.md §3.5): a node is verified against
// the address it was dialed at, and who dials shows no certificate.
func NewMixedTLS(certPEM, keyPEM, caPEM []byte) (*TLS, error) {
	t, _, err := parseTLS(certPEM, keyPEM, caPEM)
	if err != nil {
		return nil, err
	}
	t.byAddress, t.client.Certificates = true, nil
	return t, nil
}

func parseTLS(certPEM, keyPEM, caPEM []byte) (*TLS, *x509.CertPool, error) {
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("peer certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caPEM) {
		return nil, nil, errors.New("peer authorities: no certificate in it")
	}
	t := &TLS{client: baseTLS(cert), server: baseTLS(cert)}
	t.client.RootCAs = roots
	return t, roots, nil
}

// dialing is the configuration for a connection to address.
func (t *TLS) dialing(address string) *tls.Config {
	if !t.byAddress {
		return t.client
	}
	c := t.client.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address) // an address without a port was not dialed
	return c
}

// NewSelfSignedTLS encrypts with a certificate made on the spot and accepts any: the shared secret,
// whose handshake is bound to the session, alone proves a process. It needs a Secret beside it.
func NewSelfSignedTLS() (*TLS, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: PeerName}, DNSNames: []string{PeerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	t := &TLS{client: baseTLS(cert), server: baseTLS(cert)}
	t.client.InsecureSkipVerify, t.client.ServerName = true, PeerName //nolint:gosec // the MAC over the session's keying material takes its place
	return t, nil
}

func baseTLS(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{wire.ReplicaALPN},
		SessionTicketsDisabled: true,
	}
}
