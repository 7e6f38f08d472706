package control

import (
	"encoding/json"
	"fmt"
)

// Encode is the payload of a message.
func (m *Message) Encode() ([]byte, error) { return json.Marshal(m) }

// Decode reads the payload of a message. One of another version is an error.
func Decode(payload []byte) (m Message, err error) {
	if err = json.Unmarshal(payload, &m); err != nil {
		return m, fmt.Errorf("control: not a message: %w", err)
	}
	if m.V != Version {
		return m, fmt.Errorf("control: a message of version %d, known is %d", m.V, Version)
	}
	return m, nil
}

// About is what is known of a kind; false for one of a later build.
func (k Kind) About() (About, bool) {
	for _, a := range Kinds {
		if a.Kind == k {
			return a, true
		}
	}
	return About{}, false
}
