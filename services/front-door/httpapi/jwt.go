package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"lukechampine.com/blake3"
)

// JWT says how bearer tokens are signed and which are accepted.
type JWT struct {
	Algorithm      string // HS256, HS384 or HS512
	Issuer         string // of own tokens
	Audience       string
	ValidIssuers   []string
	ValidAudiences []string
	Expiry         time.Duration // 0: never
	Skew           time.Duration // tolerated difference of clocks
	NotBefore      time.Duration // a new token counts after this
	EncodingSecret string        // one of the two stands for both; none: from ClusterSecret, else random
	DecodingSecret string
	Base64Secrets  bool
	ClusterSecret  string // with it every front-door of a cluster signs with the same key
	TrustedIssuers []TrustedIssuer
}

// never is how long a token lives whose expiry is off.
const never = 1_000_000_000 * time.Second

// subject is whom a token names.
type subject struct {
	id     string // jti
	user   uint32
	issued uint64 // unix seconds
	born   uint64 // when the user was made, µs; 0: the token does not say
}

// tokens issues and verifies bearer tokens.
type tokens struct {
	cfg          JWT
	method       jwt.SigningMethod
	sign, verify []byte
	parser       *jwt.Parser
	trusted      *trusted
}

// claims are those of a token: seven, and when its user was made.
type claims struct {
	jwt.RegisteredClaims
	Born uint64 `json:"user_created_at,omitempty"`
}

func newTokens(cfg JWT) (*tokens, error) {
	t := &tokens{cfg: cfg, method: jwt.GetSigningMethod(cfg.Algorithm)}
	if _, ok := t.method.(*jwt.SigningMethodHMAC); !ok {
		return nil, fmt.Errorf("http.jwt.algorithm %q is none of HS256, HS384, HS512", cfg.Algorithm)
	}
	var err error
	if t.sign, t.verify, err = cfg.keys(); err != nil {
		return nil, err
	}
	t.parser = jwt.NewParser(jwt.WithValidMethods([]string{cfg.Algorithm}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	t.trusted, err = newTrusted(cfg.TrustedIssuers)
	return t, err
}

// keyContext separates the signing key from every other use of the cluster secret.
const keyContext = "apache-iggy server http-jwt v1 psk->hs256-key"

func (cfg *JWT) keys() (sign, verify []byte, err error) {
	enc, dec := cfg.EncodingSecret, cfg.DecodingSecret
	switch {
	case enc == "" && dec == "" && cfg.ClusterSecret != "":
		var key [32]byte
		blake3.DeriveKey(key[:], keyContext, []byte(cfg.ClusterSecret))
		text := []byte(hex.EncodeToString(key[:]))
		return text, text, nil
	case enc == "" && dec == "":
		key := make([]byte, 64)
		_, err := rand.Read(key)
		return key, key, err
	case enc == "":
		enc = dec
	case dec == "":
		dec = enc
	}
	if !cfg.Base64Secrets {
		return []byte(enc), []byte(dec), nil
	}
	sign, err = base64.StdEncoding.DecodeString(enc)
	verify, err2 := base64.StdEncoding.DecodeString(dec)
	if err = errors.Join(err, err2); err != nil {
		return nil, nil, errors.New("http.jwt secrets are not base64 text")
	}
	return sign, verify, nil
}

// issue makes a token for a user made at born (µs). expiry is in unix seconds.
func (t *tokens) issue(user uint32, born uint64, now time.Time) (token string, expiry int64) {
	life := t.cfg.Expiry
	if life <= 0 {
		life = never
	}
	expiry = now.Add(life).Unix()
	signed, err := jwt.NewWithClaims(t.method, jwt.MapClaims{
		"jti": newID(now), "iss": t.cfg.Issuer, "aud": t.cfg.Audience, "sub": strconv.FormatUint(uint64(user), 10),
		"iat": now.Unix(), "nbf": now.Add(t.cfg.NotBefore).Unix(), "exp": expiry, "user_created_at": born,
	}).SignedString(t.sign)
	if err != nil {
		panic("httpapi: a token that cannot be signed: " + err.Error())
	}
	return signed, expiry
}

// newID is a UUID of version 7.
func newID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// own verifies a token that this cluster issued.
func (t *tokens) own(text string, now time.Time) (subject, bool) {
	var c claims
	if _, err := t.parser.ParseWithClaims(text, &c, func(*jwt.Token) (any, error) { return t.verify, nil }); err != nil {
		return subject{}, false
	}
	user, err := strconv.ParseUint(c.Subject, 10, 32)
	if err != nil || !c.complete() || !c.within(now, t.cfg.Skew) || !listed(t.cfg.ValidIssuers, c.Issuer) {
		return subject{}, false
	}
	for _, audience := range c.Audience {
		if listed(t.cfg.ValidAudiences, audience) {
			return subject{id: c.ID, user: uint32(user), issued: uint64(max(0, c.IssuedAt.Unix())), born: c.Born}, true
		}
	}
	return subject{}, false
}

// complete reports whether all seven claims are there.
func (c *claims) complete() bool {
	return c.ID != "" && c.Issuer != "" && len(c.Audience) > 0 && c.Subject != "" && c.IssuedAt != nil && c.ExpiresAt != nil && c.NotBefore != nil
}

func (c *claims) within(now time.Time, skew time.Duration) bool {
	return now.Unix() <= c.ExpiresAt.Add(skew).Unix() && now.Add(skew).Unix() >= c.NotBefore.Unix()
}

// resolve finds the subject of a token, ours or of a trusted issuer.
func (t *tokens) resolve(ctx context.Context, text string, now time.Time) (subject, bool) {
	if who, ok := t.own(text, now); ok {
		return who, true
	}
	return t.trusted.resolve(ctx, text, now, t.cfg.Skew)
}

func listed(list []string, text string) bool {
	for _, item := range list {
		if item == text {
			return true
		}
	}
	return false
}
