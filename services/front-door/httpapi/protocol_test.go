package httpapi

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCORS(t *testing.T) {
	cors := CORS{Enabled: true, AllowedMethods: []string{"GET", " ", "PUT"}, AllowedOrigins: []string{"http://a", "http://b"}, AllowedHeaders: []string{"x"}, ExposedHeaders: []string{"iggy-view"}, AllowCredentials: true, AllowPrivateNetwork: true}
	w := start(t, func(c *Config) { c.CORS = cors })
	ask := func(method, origin string) http.Header {
		r, _ := http.NewRequest(method, w.base+"/ping", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Private-Network", "true")
		return w.send(r).want(t, 200).Header
	}
	h := ask("OPTIONS", "http://b")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "http://b", "Access-Control-Allow-Methods": "GET,PUT", "Access-Control-Allow-Headers": "x",
		"Access-Control-Allow-Credentials": "true", "Access-Control-Allow-Private-Network": "true", "Vary": "origin", "Access-Control-Expose-Headers": "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("preflight %s: %q, want %q", name, got, want)
		}
	}
	h = ask("GET", "http://c")
	if h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "origin" || h.Get("Access-Control-Expose-Headers") != "iggy-view" {
		t.Errorf("an unlisted origin gets %v", h)
	}
	for _, bad := range []CORS{
		{AllowedOrigins: []string{"http://a", "*"}}, {AllowedOrigins: []string{"*"}, AllowCredentials: true}, {AllowedHeaders: []string{"*"}, AllowCredentials: true},
	} {
		if err := bad.trim(); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// raw sends bytes as they are and returns what comes back until the server is done.
func (w *world) raw(text string) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.api.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Logf("read: %v", err)
	}
	return string(b)
}

func TestOldAndOddRequests(t *testing.T) {
	w := start(t, nil)
	if got := w.raw("GET /ping HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 200") || !strings.HasSuffix(got, "pong") {
		t.Errorf("HTTP/1.0: %q", got)
	}
	if got := w.raw("nothing but garbage\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("garbage: %q", got)
	}
	for path, status := range map[string]int{
		"/streams//topics": 400, "/streams/%FF": 400, "/streams/": 404, "//ping": 404, "/streams/%2F": 404, "/./ping": 404, "/streams/../ping": 404,
		"/streams/4294967296": 404, "/streams/" + strings.Repeat("x", 256): 400,
	} {
		r, _ := http.NewRequest("GET", w.base, nil)
		r.URL.Opaque = path
		w.root("GET", "/ping", "")
		r.Header.Set("Authorization", "Bearer "+w.token)
		w.send(r).want(t, status)
	}
}

// Bodies: chunked ones are bounded like others, the client that asks first is told, cut ones are not
// performed.
func TestBodies(t *testing.T) {
	w := start(t, func(c *Config) { c.MaxRequestSize = 100 })
	w.root("GET", "/ping", "")
	chunked := func(size int) answer {
		r, _ := http.NewRequest("POST", w.base+"/streams", io.MultiReader(strings.NewReader(`{"name":"c"}`), strings.NewReader(strings.Repeat(" ", size-12))))
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "application/json")
		return w.send(r)
	}
	chunked(101).want(t, 413)
	chunked(100).want(t, 200)
	head := "POST /streams HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer " + w.token + "\r\n"
	if got := w.raw(head + "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n" + `{"name":"e"}`); !strings.HasPrefix(got, "HTTP/1.1 100") || !strings.Contains(got, "HTTP/1.1 200") {
		t.Errorf("expect: %q", got)
	}
	c, err := net.Dial("tcp", w.api.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, head+"Content-Length: 13\r\n\r\n"+`{"name":"f"}`)
	_ = c.(*net.TCPConn).CloseWrite()
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && resp.StatusCode != 400 {
		t.Errorf("a cut body: status %d", resp.StatusCode)
	}
	_ = c.Close()
	w.root("GET", "/streams/f", "").want(t, 404)
}

// Plain: HTTP/2 by prior knowledge. TLS: HTTP/2 by ALPN.
func TestHTTP2(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	writeCertificate(t, cert, key)
	plain := start(t, nil)
	secured := start(t, func(c *Config) { c.CertFile, c.KeyFile = cert, key })
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	for url, transport := range map[string]*http.Transport{
		plain.base: {Protocols: &only},
		strings.Replace(secured.base, "http:", "https:", 1): {ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	} {
		client := http.Client{Transport: transport}
		resp, err := client.Get(url + "/ping")
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if resp.ProtoMajor != 2 {
			t.Errorf("%s: %s", url, resp.Proto)
		}
		_ = resp.Body.Close()
		client.CloseIdleConnections()
	}
}

func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Connections beyond the bound are closed; a place that becomes free is given away again.
func TestConnectionBound(t *testing.T) {
	w := start(t, func(c *Config) { c.MaxConnections = 1 })
	first, err := net.Dial("tcp", w.api.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(first, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", w.api.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = second.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := second.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a second connection is kept: %v", err)
	}
	_ = second.Close()
	_ = first.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if resp, err := http.Get(w.base + "/ping"); err == nil {
			_ = resp.Body.Close()
			return
		}
	}
	t.Error("the place of a closed connection is lost")
}

// A new certificate counts for new connections; files that cannot be read change nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	writeCertificate(t, cert, key)
	w := start(t, func(c *Config) { c.CertFile, c.KeyFile = cert, key })
	shown := func() string {
		c, err := tls.Dial("tcp", w.api.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return string(c.ConnectionState().PeerCertificates[0].Raw)
	}
	first := shown()
	writeCertificate(t, cert, key)
	if shown() != first {
		t.Error("a new file counts without a reload")
	}
	if err := w.api.Reload(); err != nil {
		t.Fatal(err)
	}
	second := shown()
	if second == first {
		t.Error("the old certificate after the reload")
	}
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Reload(); err == nil || shown() != second {
		t.Errorf("a bad key file: %v", err)
	}
}
