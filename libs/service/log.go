package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// NewLogger returns the process's logger: one line per event on out, in the form and at the level
// of system.logging. Three guards keep secrets out: Secret prints as "[redacted]"; the value of a
// key that ends in password, secret or token is replaced; and so are the configured secrets
// themselves wherever they stand in a line. The development password "iggy" is no secret.
func NewLogger(c *Config, name string, out io.Writer) hclog.Logger {
	guard := &redactor{out: out}
	for _, s := range []Secret{c.Root.Password, c.HTTP.JWT.EncodingSecret, c.HTTP.JWT.DecodingSecret, c.System.Encryption.Key,
		c.Cluster.Auth.SharedSecret, c.Cluster.Auth.PreviousSharedSecret} {
		guard.hide(s)
	}
	return hclog.New(&hclog.LoggerOptions{
		Name:       name,
		Level:      hclog.LevelFromString(c.System.Logging.Level),
		Output:     guard,
		JSONFormat: c.System.Logging.Format == "json",
		TimeFormat: "2006-01-02T15:04:05.000Z0700",
	})
}

// redactor replaces secrets in the lines that pass through it. hclog hands over whole records.
type redactor struct {
	mu      sync.Mutex
	out     io.Writer
	secrets [][]byte
}

// developmentPassword is published in every manual; hiding it would hide the product's own words.
const developmentPassword = "iggy"

func (r *redactor) hide(s Secret) {
	text := s.Reveal()
	if text == "" || text == developmentPassword {
		return
	}
	quoted, _ := json.Marshal(text) // a text always marshals
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, form := range []string{text, strings.Trim(string(quoted), `"`), strings.Trim(fmt.Sprintf("%q", text), `"`)} {
		r.secrets = append(r.secrets, []byte(form))
	}
}

var (
	secretText = regexp.MustCompile(`(?i)([\w-]*(?:password|secret|token)=)(?:"(?:[^"\\]|\\.)*"|\n(?:[ \t]*\|[^\n]*\n?)+|[^\s"]\S*)`)
	secretJSON = regexp.MustCompile(`(?i)("[\w-]*(?:password|secret|token)":)(?:"(?:[^"\\]|\\.)*"|[^",}\s]+)`)
)

func (r *redactor) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clean := line
	for _, s := range r.secrets {
		clean = bytes.ReplaceAll(clean, s, []byte(redacted))
	}
	clean = secretText.ReplaceAll(clean, []byte("${1}"+redacted))
	clean = secretJSON.ReplaceAll(clean, []byte(`${1}"`+redacted+`"`))
	if _, err := r.out.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}
