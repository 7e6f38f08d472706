package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// authority signs certificates of a test cluster.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// tls is the configuration of a process that has a certificate of a with the given name and trusts trusted.
func (a *authority) tls(name string, trusted *authority) *TLS { return a.make(NewTLS, name, trusted) }

func (a *authority) make(config func(cert, key, ca []byte) (*TLS, error), name string, trusted *authority) *TLS {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	c, err := config(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), trusted.pem)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// TestMeshTLS: frames of all sizes pass between processes with certificates of the cluster, and between
// processes whose certificates nobody signed.
func TestMeshTLS(t *testing.T) {
	ca := newAuthority(t)
	signed := func() *TLS { return ca.tls(PeerName, ca) }
	selfSigned := func() *TLS {
		c, err := NewSelfSignedTLS()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	mixed := func() *TLS { return ca.make(NewMixedTLS, "127.0.0.1", ca) }
	for name, config := range map[string]func() *TLS{"signed": signed, "self-signed": selfSigned, "mixed": mixed} {
		with := func(c *MeshConfig) { c.TLS = config() }
		a, b := newMember(t, 1, with), newMember(t, 2, with)
		meet(a, b)
		within(t, name+" up", a.up)
		within(t, name+" up", b.up)
		for _, n := range []int{0, 10, 5000, 3 << 20} {
			if !a.mesh.Send(2, Data(1), prepareFrame(1, n), make([]byte, n), nil) {
				t.Fatalf("%s: %d bytes not sent", name, n)
			}
			if got := within(t, "frame", b.frames); len(got.body) != n {
				t.Errorf("%s: %d bytes of %d", name, len(got.body), n)
			}
		}
	}
}

// TestTLSRefusals: another authority, another name, no certificate, an older version, no TLS at all.
func TestTLSRefusals(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	good := ours.tls(PeerName, ours)
	bare := &TLS{client: good.client.Clone(), server: good.server}
	bare.client.Certificates = nil
	old := &TLS{client: good.client.Clone(), server: good.server}
	old.client.MinVersion, old.client.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	protocol := &TLS{client: good.client.Clone(), server: good.server}
	protocol.client.NextProtos = []string{"h2"}
	trusting := func(c *TLS) *TLS { // believes any server, so that the server has to refuse
		c.client = c.client.Clone()
		c.client.InsecureSkipVerify = true
		return c
	}
	for name, c := range map[string]struct{ dialer, acceptor *TLS }{
		"server of another address":   {ours.make(NewMixedTLS, "127.0.0.1", ours), ours.make(NewMixedTLS, "127.0.0.2", ours)},
		"server of another authority": {good, other.tls(PeerName, ours)},
		"server with another name":    {good, ours.tls("somebody", ours)},
		"client of another authority": {trusting(other.tls(PeerName, ours)), good},
		"client with another name":    {trusting(ours.tls("somebody", ours)), good},
		"client without certificate":  {bare, good},
		"TLS 1.2":                     {old, good},
		"another protocol":            {protocol, good},
		"plaintext client":            {nil, good},
		"plaintext server":            {good, nil},
	} {
		accepting, _ := testOptions(t, 3)
		accepting.TLS, accepting.Grace = c.acceptor, 2*time.Second
		accepting.fill()
		accepted := make(chan error, 1)
		address := serve(t, func(l net.Listener) error {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			_, _, _, err = accepting.admit(conn, func(uint8) bool { return true })
			conn.Close()
			accepted <- err
			return nil
		})
		dialing, _ := testOptions(t, 1)
		dialing.TLS, dialing.Grace = c.dialer, 2*time.Second
		dialing.fill()
		conn, _, err := dialing.dial(t.Context(), address, 3, 0)
		if err == nil {
			conn.Close()
			t.Errorf("%s: let in", name)
		}
		if err := within(t, "verdict", accepted); err == nil {
			t.Errorf("%s: let in by the acceptor", name)
		}
	}
}

// TestMiddleman: without an authority the secret stands alone; a process that decrypts between two others and
// passes everything on, handshake included, gets nowhere.
func TestMiddleman(t *testing.T) {
	config := func() *TLS {
		c, err := NewSelfSignedTLS()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), func(c *ServerConfig) { c.TLS = config() })
	middle := config()
	address := serve(t, func(l net.Listener) error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			go func() {
				in := tls.Server(conn, middle.server)
				out, err := tls.Dial("tcp", p.address, middle.client)
				if err != nil {
					conn.Close()
					return
				}
				go func() { _, _ = io.Copy(in, out); in.Close() }()
				_, _ = io.Copy(out, in)
				out.Close()
			}()
		}
	})
	o, _ := testOptions(t, wire.FrontDoorID)
	o.TLS = config()
	o.fill()
	if _, _, err := o.dial(t.Context(), address, 3, 0); label(err) != refusedMAC {
		t.Errorf("through the middle: %v", err)
	}
	conn, _, err := o.dial(t.Context(), p.address, 3, 0)
	if err != nil {
		t.Fatalf("directly: %v", err)
	}
	conn.Close()
}

func TestTLSNeedsFiles(t *testing.T) {
	if _, err := NewTLS(nil, nil, nil); err == nil {
		t.Error("made of nothing")
	}
}
