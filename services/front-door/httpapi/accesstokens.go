package httpapi

import (
	"math"

	"github.com/whippet-mq/whippet/libs/wire"
)

type tokenJSON struct {
	Name     string  `json:"name"`
	ExpiryAt *uint64 `json:"expiry_at"` // µs; null is never
}

type rawTokenJSON struct {
	Token string `json:"token"`
}

// Bounds of a token's name in bytes.
const minTokenName, maxTokenName = 3, 30

// getTokens serves GET /personal-access-tokens: the caller's own.
func getTokens(c *call) error {
	if err := c.plain(); err != nil {
		return err
	}
	return c.read(wire.CmdGetTokens, nil, func(b []byte) error {
		list, err := wire.DecodeTokens(b)
		if err != nil {
			return err
		}
		out := make([]tokenJSON, len(list))
		for i, t := range list {
			out[i].Name = t.Name
			if t.ExpiryAt != 0 {
				out[i].ExpiryAt = &t.ExpiryAt
			}
		}
		return c.json(out)
	})
}

// createToken serves POST /personal-access-tokens.
func createToken(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	var q wire.CreateTokenRequest
	b.record([]string{"name", "expiry"}, 2, func(i int) {
		if i == 0 {
			q.Name = b.str()
		} else {
			q.Expiry = b.uint(math.MaxUint64)
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	if len(q.Name) < minTokenName || len(q.Name) > maxTokenName {
		return refusal(wire.CodeInvalidPersonalAccessTokenName)
	}
	return c.write(wire.OpCreateToken, q.Append(nil), func(answer []byte) error {
		token, err := wire.DecodeRawToken(answer)
		if err != nil {
			return err
		}
		return c.json(rawTokenJSON{Token: token})
	})
}

// deleteToken serves DELETE /personal-access-tokens/{name}.
func deleteToken(c *call) error {
	name := c.params[0]
	if len(name) < minTokenName || len(name) > maxTokenName {
		return refusal(wire.CodeInvalidPersonalAccessTokenName)
	}
	return c.write(wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte(name)}.Append(nil), c.noContent)
}
