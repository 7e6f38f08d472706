package wire

import "strconv"

//go:generate go run ./internal/gencodes

// Code is a protocol error code as it travels in a reply's status field or result section. It is an
// error value of its own; 0 means success and is never returned as an error.
type Code uint32

// Error names the code and says what it means.
func (c Code) Error() string {
	name, meaning, ok := lookupCode(c)
	if !ok {
		return "code " + c.number()
	}
	return name + " (" + c.number() + "): " + meaning
}

func (c Code) number() string { return strconv.FormatUint(uint64(c), 10) }

// Name is the code's name in the protocol, or "" for a number without one.
func (c Code) Name() string {
	name, _, _ := lookupCode(c)
	return name
}

// Meaning says in a few words what the code means, or "" for a number without a name.
func (c Code) Meaning() string {
	_, meaning, _ := lookupCode(c)
	return meaning
}

// Known reports whether c has a name.
func (c Code) Known() bool {
	_, _, ok := lookupCode(c)
	return ok
}

// IsTransient reports whether the request may be repeated: 57 with the same number, 58 anywhere.
func (c Code) IsTransient() bool {
	return c == CodeTransientNotCommitted || c == CodeTransientNotAccepted
}
