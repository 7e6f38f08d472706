package service

import (
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
		c.Cluster.Auth.SharedSecret, c.Cluster.Auth.PreviousSharedSecret, c.NATS.Password, c.NATS.NKey} {
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
	secrets []*regexp.Regexp
}

// developmentPassword is published in every manual; hiding it would hide the product's own words.
const developmentPassword = "iggy"

// hide makes the redactor look for a secret as it is and in any depth of escaping.
func (r *redactor) hide(s Secret) {
	text := s.Reveal()
	if text == "" || text == developmentPassword {
		return
	}
	var pattern strings.Builder
	for _, c := range text {
		switch {
		case c == '\\':
			pattern.WriteString(`\\+`)
		case strings.ContainsRune("<>&", c): // JSON writes these by number
			fmt.Fprintf(&pattern, `(?:\\*%c|\\+u%04x)`, c, c)
		default:
			pattern.WriteString(`\\*` + regexp.QuoteMeta(string(c)))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = append(r.secrets, regexp.MustCompile(pattern.String()))
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
		clean = s.ReplaceAllLiteral(clean, []byte(redacted))
	}
	clean = secretText.ReplaceAll(clean, []byte("${1}"+redacted))
	clean = secretJSON.ReplaceAll(clean, []byte(`${1}"`+redacted+`"`))
	if _, err := r.out.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}
