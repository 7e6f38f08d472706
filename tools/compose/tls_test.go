package compose

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/tools/certificates"
	"github.com/whippet-mq/whippet/tools/client"
)

const answerTime = 20 * time.Second // for one question, on busy machines

// TestTLS: with all planes encrypted, plain text gets nowhere on any of them. Clients turn away a server of
// another authority; processes turn away who shows a certificate of another authority, or none.
func TestTLS(t *testing.T) {
	t.Parallel() // most of its time it waits for containers
	p := newProject(t, "tls")
	p.up(oldVersion)
	ours, elsewhere := p.knob("CERTIFICATES"), t.TempDir()
	if _, err := certificates.Issue(elsewhere, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%-32s | right certificates | plain text | another authority | no certificate", "")
	for _, l := range p.listeners() {
		right, wrong := clientConfig(t, ours), clientConfig(t, elsewhere)
		bare := "-"
		if l.mutual {
			right, wrong = peerConfig(t, ours, ours), peerConfig(t, elsewhere, ours)
			err := l.within(t, peerConfig(t, "", ours))
			if bare = outcome(err); err == nil {
				t.Errorf("%s: who shows no certificate is served", l.name)
			}
		}
		secure, foreign := l.within(t, right), l.within(t, wrong)
		plain := "has none"
		if !l.onlyTLS {
			err := l.within(t, nil)
			if plain = outcome(err); err == nil {
				t.Errorf("%s: plain text is served", l.name)
			}
		}
		t.Logf("%-32s | %s | %s | %s | %s", l.name, outcome(secure), plain, outcome(foreign), bare)
		if secure != nil {
			t.Errorf("%s: with the right certificates: %v", l.name, secure)
		}
		if foreign == nil {
			t.Errorf("%s: another authority is good enough", l.name)
		}
	}
	p.serves(ours)
}

func outcome(err error) string {
	if err == nil {
		return "served"
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return "refused: unknown authority"
	}
	return "refused: " + err.Error()
}

// serves: a client sends and reads, so the processes do get along with each other.
func (p *project) serves(certificates string) {
	p.t.Helper()
	c, err := client.Dial(p.t.Context(), client.Options{
		Address: p.address("FRONT_DOOR_1_TCP"), Username: "iggy", Password: password, TLS: clientConfig(p.t, certificates),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CreateStream("s"); err != nil {
		p.t.Fatal(err)
	}
	p.sendAndPoll(c, "s")
}

// knob is what this project says of a knob.
func (p *project) knob(name string) string {
	for _, kv := range p.env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// clientConfig trusts the authority of a directory.
func clientConfig(t *testing.T, dir string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, certificates.Authority+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no authority in %s", dir)
	}
	return &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// peerConfig comes as a process of the cluster with the certificate of one directory, "" for none, and trusts the
// authority of another.
func peerConfig(t *testing.T, mine, trusted string) *tls.Config {
	t.Helper()
	c := clientConfig(t, trusted)
	c.ServerName, c.MinVersion = link.PeerName, tls.VersionTLS13
	if mine == "" {
		return c
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(mine, "peer.pem"), filepath.Join(mine, "peer-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil } // whoever asks for it
	return c
}

// within asks a listener, for a while.
func (l *listener) within(t *testing.T, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	return l.ask(ctx, config)
}
