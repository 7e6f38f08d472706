package httpapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func mustTokens(t *testing.T, change func(*JWT)) *tokens {
	t.Helper()
	cfg := testJWT()
	if change != nil {
		change(&cfg)
	}
	tokens, err := newTokens(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

var noon = time.Unix(1_790_000_000, 0)

// sevenClaims are those of a good token at noon.
func sevenClaims() jwt.MapClaims {
	return jwt.MapClaims{
		"jti": "018f", "iss": "iggy.apache.org", "aud": "iggy.apache.org", "sub": "7",
		"iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Add(time.Minute).Unix(),
	}
}

func signed(t *testing.T, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOwnTokens(t *testing.T) {
	tokens := mustTokens(t, nil)
	good := func(c jwt.MapClaims) string { return signed(t, jwt.SigningMethodHS256, []byte(testSecret), "", c) }
	with := func(name string, value any) string {
		c := sevenClaims()
		if value == nil {
			delete(c, name)
		} else {
			c[name] = value
		}
		return good(c)
	}
	accepted := map[string]string{
		"seven claims": good(sevenClaims()), "audiences": with("aud", []string{"other", "iggy.apache.org"}),
		"issued ahead": with("iat", noon.Add(time.Hour).Unix()), "any id": with("jti", "x"), "more": with("color", "red"),
		"expired within the leeway": with("exp", noon.Add(-5*time.Second).Unix()), "early within the leeway": with("nbf", noon.Add(5*time.Second).Unix()),
	}
	for name, text := range accepted {
		if who, ok := tokens.own(text, noon); !ok || who.user != 7 {
			t.Errorf("%s: refused", name)
		}
	}
	refused := map[string]string{
		"no text": "", "three dots": "a.b.c", "other key": signed(t, jwt.SigningMethodHS256, []byte("other"), "", sevenClaims()),
		"HS512": signed(t, jwt.SigningMethodHS512, []byte(testSecret), "", sevenClaims()), "none": signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", sevenClaims()),
		"numeric subject": with("sub", 7), "subject too large": with("sub", "4294967296"), "subject a name": with("sub", "root"), "signed subject": with("sub", "+7"),
		"expired": with("exp", noon.Add(-6*time.Second).Unix()), "early": with("nbf", noon.Add(6*time.Second).Unix()),
		"other issuer": with("iss", "someone"), "other audience": with("aud", "someone"), "no audience": with("aud", []string{}),
	}
	for name := range sevenClaims() {
		refused["without "+name] = with(name, nil)
	}
	for name, text := range refused {
		if _, ok := tokens.own(text, noon); ok {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestIssuedTokens(t *testing.T) {
	tokens := mustTokens(t, nil)
	text, expiry := tokens.issue(7, 123, noon)
	if expiry != noon.Add(time.Hour).Unix() {
		t.Errorf("expiry %d", expiry)
	}
	if who, ok := tokens.own(text, noon); !ok || who.user != 7 || who.born != 123 || who.issued != uint64(noon.Unix()) {
		t.Errorf("%+v %v", who, ok)
	}
	if again, _ := tokens.issue(7, 123, noon); again == text {
		t.Error("two tokens are the same")
	}
	var claims jwt.MapClaims
	if _, _, err := jwt.NewParser().ParseUnverified(text, &claims); err != nil {
		t.Fatal(err)
	}
	if claims["aud"] != "iggy.apache.org" || claims["sub"] != "7" || claims["jti"] == "" {
		t.Errorf("claims %v", claims)
	}
	if _, expiry := mustTokens(t, func(c *JWT) { c.Expiry = 0 }).issue(7, 123, noon); expiry != noon.Unix()+1_000_000_000 {
		t.Errorf("a token that never expires has %d", expiry)
	}
}

// Front-doors of one cluster take each other's tokens, others do not.
func TestKeys(t *testing.T) {
	cluster := func(secret string) *tokens {
		return mustTokens(t, func(c *JWT) { c.EncodingSecret, c.ClusterSecret = "", secret })
	}
	text, _ := cluster("one").issue(7, 1, noon)
	if _, ok := cluster("one").own(text, noon); !ok {
		t.Error("a token of the same cluster is refused")
	}
	if _, ok := cluster("two").own(text, noon); ok {
		t.Error("a token of another cluster is accepted")
	}
	random := func() *tokens { return mustTokens(t, func(c *JWT) { c.EncodingSecret = "" }) }
	text, _ = random().issue(7, 1, noon)
	if _, ok := random().own(text, noon); ok {
		t.Error("a token of another start is accepted")
	}
	coded := mustTokens(t, func(c *JWT) {
		c.EncodingSecret, c.DecodingSecret, c.Base64Secrets = "", base64.StdEncoding.EncodeToString([]byte(testSecret)), true
	})
	text, _ = mustTokens(t, nil).issue(7, 1, noon)
	if _, ok := coded.own(text, noon); !ok {
		t.Error("the same key as base64 is another")
	}
	for _, bad := range []func(*JWT){
		func(c *JWT) { c.Algorithm = "RS256" }, func(c *JWT) { c.Base64Secrets, c.EncodingSecret = true, "?" },
		func(c *JWT) { c.TrustedIssuers = []TrustedIssuer{{Issuer: "x"}} },
	} {
		cfg := testJWT()
		bad(&cfg)
		if _, err := newTokens(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestTrustedIssuers(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	point, err := ecKey.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{
		{"kid": "r", "kty": "RSA", "use": "sig", "alg": "RS256", "n": text(rsaKey.N), "e": "AQAB"},
		{"kid": "e", "kty": "EC", "crv": "P-256", "x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])},
		{"kid": "enc", "kty": "RSA", "use": "enc", "n": text(rsaKey.N), "e": "AQAB"},
		{"kid": "odd", "kty": "oct", "k": "AAAA"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var fetches atomic.Int32
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		_, _ = w.Write(set)
	}))
	defer keys.Close()
	tokens := mustTokens(t, func(c *JWT) {
		c.TrustedIssuers = []TrustedIssuer{{Issuer: "https://Login.Example.com/a", Audience: "broker", KeysURL: keys.URL, User: 9}}
	})
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := sevenClaims()
		c["iss"], c["aud"], c["sub"] = "https://login.example.com/a", "broker", "anybody"
		if change != nil {
			change(c)
		}
		return c
	}
	for name, text := range map[string]string{
		"RS256":     signed(t, jwt.SigningMethodRS256, rsaKey, "r", claims(nil)),
		"ES256":     signed(t, jwt.SigningMethodES256, ecKey, "e", claims(nil)),
		"audiences": signed(t, jwt.SigningMethodRS256, rsaKey, "r", claims(func(c jwt.MapClaims) { c["aud"] = []string{"x", "broker"} })),
	} {
		if who, ok := tokens.resolve(context.Background(), text, noon); !ok || who.user != 9 {
			t.Errorf("%s: refused", name)
		}
	}
	for name, text := range map[string]string{
		"unknown issuer":   signed(t, jwt.SigningMethodRS256, rsaKey, "r", claims(func(c jwt.MapClaims) { c["iss"] = "https://login.example.com/b" })),
		"audience":         signed(t, jwt.SigningMethodRS256, rsaKey, "r", claims(func(c jwt.MapClaims) { c["aud"] = "x" })),
		"expired":          signed(t, jwt.SigningMethodRS256, rsaKey, "r", claims(func(c jwt.MapClaims) { c["exp"] = noon.Add(-time.Minute).Unix() })),
		"three claims":     signed(t, jwt.SigningMethodRS256, rsaKey, "r", jwt.MapClaims{"iss": "https://login.example.com/a", "aud": "broker", "exp": noon.Add(time.Minute).Unix()}),
		"no kid":           signed(t, jwt.SigningMethodRS256, rsaKey, "", claims(nil)),
		"unknown kid":      signed(t, jwt.SigningMethodRS256, rsaKey, "x", claims(nil)),
		"encryption key":   signed(t, jwt.SigningMethodRS256, rsaKey, "enc", claims(nil)),
		"other algorithm":  signed(t, jwt.SigningMethodRS512, rsaKey, "r", claims(nil)),
		"HS256 by the key": signed(t, jwt.SigningMethodHS256, []byte(text(rsaKey.N)), "r", claims(nil)),
		"HS256 by ours":    signed(t, jwt.SigningMethodHS256, []byte(testSecret), "r", claims(nil)),
		"other key":        signed(t, jwt.SigningMethodES256, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "e", claims(nil)),
	} {
		if _, ok := tokens.resolve(context.Background(), text, noon); ok {
			t.Errorf("%s: accepted", name)
		}
	}
	if n := fetches.Load(); n != 1 {
		t.Errorf("%d fetches within ten seconds", n)
	}
	tokens.resolve(context.Background(), signed(t, jwt.SigningMethodRS256, rsaKey, "x", claims(nil)), noon.Add(keysEvery))
	if n := fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want another after ten seconds", n)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
