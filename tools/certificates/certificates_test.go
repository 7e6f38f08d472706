package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
)

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// verify holds a certificate of dir against a name.
func verify(t *testing.T, dir string, p Purpose, name string) error {
	t.Helper()
	pair, err := tls.X509KeyPair(read(t, dir, string(p)+".pem"), read(t, dir, string(p)+"-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read(t, dir, Authority+".pem"))
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
	return err
}

func TestEachIsGoodForItsNamesOnly(t *testing.T) {
	dir := t.TempDir()
	written, err := Issue(dir, []string{"broker.example", "192.0.2.7"})
	if err != nil || len(written) != 4 {
		t.Fatalf("%v, %v", written, err)
	}
	for _, c := range []struct {
		purpose Purpose
		name    string
		good    bool
	}{
		{Server, "localhost", true},
		{Server, "127.0.0.1", true},
		{Server, "broker.example", true},
		{Server, "192.0.2.7", true},
		{Server, "elsewhere.example", false},
		{Server, link.PeerName, false},
		{Peer, link.PeerName, true},
		{Peer, "localhost", false},
		{NATS, "nats", true},
		{NATS, link.PeerName, false},
	} {
		if err := verify(t, dir, c.purpose, c.name); (err == nil) != c.good {
			t.Errorf("%s for %s: %v", c.purpose, c.name, err)
		}
	}
	if _, err := link.NewTLS(read(t, dir, "peer.pem"), read(t, dir, "peer-key.pem"), read(t, dir, "ca.pem")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsThereStays(t *testing.T) {
	dir := t.TempDir()
	if _, err := Issue(dir, nil); err != nil {
		t.Fatal(err)
	}
	before := read(t, dir, "server.pem")
	if err := os.Remove(filepath.Join(dir, "peer.pem")); err != nil {
		t.Fatal(err)
	}
	written, err := Issue(dir, nil)
	if err != nil || len(written) != 1 || filepath.Base(written[0]) != "peer.pem" {
		t.Errorf("%v, %v", written, err)
	}
	if string(read(t, dir, "server.pem")) != string(before) {
		t.Error("a certificate was replaced")
	}
	if err := verify(t, dir, Peer, link.PeerName); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := Issue(dir, nil); err == nil {
		t.Error("certificates of an authority without a key")
	}
	if mode := stat(t, dir).Mode().Perm(); mode != 0o700 {
		t.Errorf("the directory is open: %v", mode)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
