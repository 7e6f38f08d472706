package service

import "fmt"

// redacted stands wherever a secret would have been printed.
const redacted = "[redacted]"

// Secret is text that no formatter, encoder or logger prints. The zero value is "not given".
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text. Hand it to the one place that needs it, never to a message.
func (s Secret) Reveal() string { return s.text }

// Given reports whether there is any text.
func (s Secret) Given() bool { return s.text != "" }

// String returns "[redacted]", or "" when nothing was given.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return redacted
}

// Format keeps every verb, %#v and %x included, from the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText keeps encoders from the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
