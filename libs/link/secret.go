package link

import (
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Secret is the shared secret by which processes of a cluster prove themselves to each other. It is
// changed without downtime: (current old, previous new) everywhere, then (new, old), then (new, none).
type Secret struct {
	sign   wire.HandshakeKey
	accept []wire.HandshakeKey // sign first
}

// NewSecret makes a secret of the configured text, taken as it is: at least wire.MinSecret bytes.
// previous is accepted from others and never used to sign; it may be empty and must differ from current.
func NewSecret(current, previous string) (*Secret, error) {
	if len(current) < wire.MinSecret {
		return nil, fmt.Errorf("shared secret: %d bytes, at least %d are needed", len(current), wire.MinSecret)
	}
	s := &Secret{sign: wire.DeriveHandshakeKey([]byte(current))}
	s.accept = append(s.accept, s.sign)
	switch {
	case previous == "":
		return s, nil
	case len(previous) < wire.MinSecret:
		return nil, fmt.Errorf("previous shared secret: %d bytes, at least %d are needed", len(previous), wire.MinSecret)
	case previous == current:
		return nil, errors.New("previous shared secret: the same as the current one")
	}
	s.accept = append(s.accept, wire.DeriveHandshakeKey([]byte(previous)))
	return s, nil
}

// accepts reports whether mac is what one of the keys makes. All keys are tried, in constant time each.
func (s *Secret) accepts(mac [wire.MACSize]byte, of func(*wire.HandshakeKey) [wire.MACSize]byte) bool {
	good := false
	for i := range s.accept {
		good = wire.EqualMAC(of(&s.accept[i]), mac) || good
	}
	return good
}
