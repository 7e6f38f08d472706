package frontdoor

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"

	"lukechampine.com/blake3"
)

// tokenBytes is the number of random bytes in a personal access token; its text has 68 characters.
const tokenBytes = 50

// newToken makes the raw text of a personal access token.
func newToken() string {
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// hashToken is what the cluster stores of a token: lower-case hex of BLAKE3 over its raw text.
func hashToken(raw []byte) string {
	sum := blake3.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
