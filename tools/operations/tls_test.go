package operations

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/client"
)

// issue makes a certificate for template, signed by parent, and its key. Both are PEM files in dir.
func issue(t *testing.T, dir, name string, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, by = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + "-key.pem": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// Clients that know the authority of the server's certificate work over TLS; others, and those that
// speak in plain, get nowhere.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	authority, by := issue(t, dir, "authority", &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	issue(t, dir, "server", &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, by)
	s := start(t, t.TempDir(), map[string]string{
		"IGGY_TCP_TLS_ENABLED": "true", "IGGY_TCP_TLS_CERT_FILE": filepath.Join(dir, "server.pem"), "IGGY_TCP_TLS_KEY_FILE": filepath.Join(dir, "server-key.pem"),
	})
	dial := func(config *tls.Config) (*client.Client, error) {
		return client.Dial(context.Background(), client.Options{
			Address: s.Address(), Username: "iggy", Password: "iggy", Timeout: 10 * time.Second, TLS: config,
		})
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	c, err := dial(&tls.Config{RootCAs: roots, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill(t, c, 100)
	expect(t, c, 100)
	var unknown x509.UnknownAuthorityError
	if _, err := dial(&tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}); !errors.As(err, &unknown) {
		t.Errorf("an unknown authority: %v", err)
	}
	if _, err := dial(&tls.Config{RootCAs: roots, ServerName: "elsewhere"}); err == nil {
		t.Error("the certificate is good for every name")
	}
	if _, err := dial(nil); err == nil {
		t.Error("a login in plain went through")
	}
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	if c, err = dial(&tls.Config{RootCAs: roots, ServerName: "localhost"}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	expect(t, c, 100)
}
