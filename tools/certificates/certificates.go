package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
)

// Authority is the file name of the authority's certificate, without .pem. Its key is in the file with -key.
const Authority = "ca"

// Purpose is what a certificate is for, and its file name without .pem.
type Purpose string

// Purposes of the certificates of a cluster.
const (
	Peer   Purpose = "peer"   // processes of the cluster prove themselves to each other, on both sides
	Server Purpose = "server" // front-doors prove themselves to clients
	NATS   Purpose = "nats"   // the control plane proves itself to processes
)

// age is how long certificates are good for. Processes in containers live as long as their images, and nobody is
// reminded of a local cluster.
const age = 10 * 365 * 24 * time.Hour

// names are those a purpose's certificate is for beside the hosts asked for.
func (p Purpose) names() []string {
	switch p {
	case Peer:
		return []string{link.PeerName}
	case NATS:
		return []string{"nats", "localhost", "127.0.0.1", "::1"}
	}
	return []string{"localhost", "127.0.0.1", "::1"}
}

// Issue writes what is missing in dir: the authority, and a certificate with its key for each purpose. Clients
// reach the front-doors under hosts, names or addresses, beside localhost. It closes dir to everybody but its
// owner, and returns the certificates it wrote.
func Issue(dir string, hosts []string) (written []string, err error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return nil, err
	}
	authority, made, err := authority(dir)
	if err != nil {
		return nil, err
	}
	if made {
		written = append(written, filepath.Join(dir, Authority+".pem"))
	}
	for _, p := range []Purpose{Peer, Server, NATS} {
		path := filepath.Join(dir, string(p)+".pem")
		if there(path) {
			continue
		}
		names := p.names()
		if p == Server {
			names = append(names, hosts...)
		}
		if err := authority.issue(dir, p, names); err != nil {
			return written, fmt.Errorf("%s: %w", path, err)
		}
		written = append(written, path)
	}
	return written, nil
}

// signer is a certificate that signs others, with its key.
type signer struct {
	certificate *x509.Certificate
	key         any
}

// authority opens the one in dir, or makes it.
func authority(dir string) (_ *signer, made bool, err error) {
	path, keyPath := filepath.Join(dir, Authority+".pem"), filepath.Join(dir, Authority+"-key.pem")
	if there(path) {
		pair, err := tls.LoadX509KeyPair(path, keyPath)
		if err != nil {
			return nil, false, fmt.Errorf("authority %s: %w", path, err)
		}
		return &signer{pair.Leaf, pair.PrivateKey}, false, nil
	}
	template := template("Whippet cluster authority")
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	certificate, key, err := sign(template, nil)
	if err != nil {
		return nil, false, err
	}
	return &signer{certificate, key}, true, write(path, keyPath, 0o600, certificate, key)
}

// issue makes the certificate of a purpose.
func (s *signer) issue(dir string, p Purpose, names []string) error {
	template := template("Whippet " + string(p))
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if p == Peer {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	certificate, key, err := sign(template, s)
	if err != nil {
		return err
	}
	base := filepath.Join(dir, string(p))
	// The directory keeps others away; in it a key is readable, because users in containers are others too.
	return write(base+".pem", base+"-key.pem", 0o444, certificate, key)
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(age), BasicConstraintsValid: true,
	}
}

// sign makes a certificate and its key, P-256: clients over QUIC take no other. Without a signer it signs itself.
func sign(template *x509.Certificate, by *signer) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if by == nil {
		by = &signer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

// write puts the key down first: a certificate without its key would be taken for done.
func write(path, keyPath string, keyMode fs.FileMode, certificate *x509.Certificate, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		put(keyPath, keyMode, "PRIVATE KEY", secret),
		put(path, 0o444, "CERTIFICATE", certificate.Raw),
	)
}

func put(path string, mode fs.FileMode, kind string, bytes []byte) error {
	beside := path + ".new"
	if err := os.WriteFile(beside, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(beside, mode); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
