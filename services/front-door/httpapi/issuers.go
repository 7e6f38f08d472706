package httpapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TrustedIssuer is an identity provider whose tokens are accepted: they act as one user.
type TrustedIssuer struct {
	Issuer   string
	Audience string
	KeysURL  string // of the JSON Web Key Set
	User     uint32 // never root
}

// Limits of key set fetches.
const (
	keysEvery = 10 * time.Second // at most one fetch of an issuer's keys
	keysLimit = 5 * time.Second  // for one fetch
	keysSize  = 1 << 20          // bytes of a key set
)

// trusted verifies tokens of other issuers.
type trusted struct {
	issuers map[string]*issuer // by normalized name
	parser  *jwt.Parser
	client  *http.Client
}

// issuer is one identity provider with the keys last fetched.
type issuer struct {
	TrustedIssuer

	mu      sync.Mutex // held during a fetch: concurrent misses share it
	keys    map[string]key
	fetched time.Time
}

// key is a public key and the algorithms it verifies.
type key struct {
	public any
	algs   []string
}

func newTrusted(list []TrustedIssuer) (*trusted, error) {
	t := &trusted{
		issuers: make(map[string]*issuer), client: &http.Client{Timeout: keysLimit},
		parser: jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()),
	}
	for _, one := range list {
		if one.User == 0 {
			return nil, fmt.Errorf("http.jwt.trusted_issuers: %s must not act as root", one.Issuer)
		}
		t.issuers[normalized(one.Issuer)] = &issuer{TrustedIssuer: one}
	}
	return t, nil
}

// normalized lowers scheme and host of an issuer that is a URL; nothing else of it is loose.
func normalized(name string) string {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		return name
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return u.String()
}

var errKey = errors.New("httpapi: no key for the token")

// resolve verifies a token of a trusted issuer.
func (t *trusted) resolve(ctx context.Context, text string, now time.Time, skew time.Duration) (subject, bool) {
	if len(t.issuers) == 0 {
		return subject{}, false
	}
	var c claims
	if _, _, err := t.parser.ParseUnverified(text, &c); err != nil {
		return subject{}, false
	}
	from := t.issuers[normalized(c.Issuer)]
	if from == nil || !c.complete() || !listed(c.Audience, from.Audience) || !c.within(now, skew) {
		return subject{}, false
	}
	_, err := t.parser.Parse(text, func(token *jwt.Token) (any, error) {
		id, _ := token.Header["kid"].(string)
		k, ok := t.key(ctx, from, id, now)
		if !ok || id == "" || !listed(k.algs, token.Method.Alg()) {
			return nil, errKey
		}
		return k.public, nil
	})
	if err != nil {
		return subject{}, false
	}
	// The mapped user is what the configuration says at this time, whoever it is.
	return subject{id: from.Issuer + " " + c.ID, user: from.User, issued: ^uint64(0)}, true
}

// key returns an issuer's key, fetching the set again when it does not hold it.
func (t *trusted) key(ctx context.Context, from *issuer, id string, now time.Time) (key, bool) {
	from.mu.Lock()
	defer from.mu.Unlock()
	k, ok := from.keys[id]
	if ok || now.Sub(from.fetched) < keysEvery {
		return k, ok
	}
	from.fetched = now
	if keys, err := t.fetch(ctx, from.KeysURL); err == nil {
		from.keys = keys
	}
	k, ok = from.keys[id]
	return k, ok
}

func (t *trusted) fetch(ctx context.Context, from string) (map[string]key, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	resp, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var set struct {
		Keys []webKey `json:"keys"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, keysSize)).Decode(&set); err != nil {
		return nil, err
	}
	keys := make(map[string]key)
	for _, w := range set.Keys {
		if k, ok := w.key(); ok && w.ID != "" {
			keys[w.ID] = k
		}
	}
	return keys, nil
}

// webKey is a JSON Web Key (RFC 7517) of the two kinds that verify tokens here.
type webKey struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	N     string `json:"n"`
	E     string `json:"e"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

func (w *webKey) key() (k key, ok bool) {
	switch {
	case w.Use != "" && w.Use != "sig":
		return k, false
	case w.Type == "RSA":
		k.algs = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		k.public, ok = w.rsa()
	case w.Type == "EC":
		k, ok = w.ec()
	}
	if w.Alg != "" {
		ok = ok && listed(k.algs, w.Alg)
		k.algs = []string{w.Alg}
	}
	return k, ok
}

func (w *webKey) rsa() (*rsa.PublicKey, bool) {
	n, ok1 := bigText(w.N)
	e, ok2 := bigText(w.E)
	if !ok1 || !ok2 || n.BitLen() < 2048 || n.BitLen() > 16384 || e.BitLen() > 31 || e.Int64() < 3 {
		return nil, false
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, true
}

func (w *webKey) ec() (key, bool) {
	curve, alg := elliptic.Curve(nil), ""
	switch w.Curve {
	case "P-256":
		curve, alg = elliptic.P256(), "ES256"
	case "P-384":
		curve, alg = elliptic.P384(), "ES384"
	case "P-521":
		curve, alg = elliptic.P521(), "ES512"
	default:
		return key{}, false
	}
	size := (curve.Params().BitSize + 7) / 8
	x, ok1 := bigText(w.X)
	y, ok2 := bigText(w.Y)
	if !ok1 || !ok2 || x.BitLen() > 8*size || y.BitLen() > 8*size {
		return key{}, false
	}
	point := make([]byte, 1+2*size)
	point[0] = 4
	x.FillBytes(point[1 : 1+size])
	y.FillBytes(point[1+size:])
	public, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	return key{public: public, algs: []string{alg}}, err == nil
}

func bigText(text string) (*big.Int, bool) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	return new(big.Int).SetBytes(b), err == nil && len(b) > 0
}
