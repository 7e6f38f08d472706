package wire

import "unicode/utf8"

// IdentifierKind says how an Identifier names its object.
type IdentifierKind uint8

// Identifier kinds.
const (
	IdentifierNumeric IdentifierKind = 1
	IdentifierNamed   IdentifierKind = 2
)

// Identifier addresses a stream, topic, group, user or consumer by number or by name. Ids start at
// 0. A name of digits is still a name. Name aliases the body it was decoded from.
// Layout: kind:u8 len:u8 value (client-wire §8).
type Identifier struct {
	Kind IdentifierKind
	ID   uint32 // with IdentifierNumeric
	Name []byte // with IdentifierNamed: 1..255 bytes of UTF-8
}

// NumericID is the identifier of number id.
func NumericID(id uint32) Identifier { return Identifier{Kind: IdentifierNumeric, ID: id} }

// NamedID is the identifier of name, which must be 1..255 bytes of UTF-8.
func NamedID(name string) Identifier {
	return Identifier{Kind: IdentifierNamed, Name: []byte(name)}
}

// IsNamed reports whether id names its object by name.
func (id Identifier) IsNamed() bool { return id.Kind == IdentifierNamed }

// Append writes id's wire form behind dst.
func (id Identifier) Append(dst []byte) []byte {
	if id.Kind == IdentifierNamed {
		return append(append(dst, byte(IdentifierNamed), byte(len(id.Name))), id.Name...)
	}
	return appendU32(append(dst, byte(IdentifierNumeric), 4), id.ID)
}

// Size is the length of id's wire form in bytes.
func (id Identifier) Size() int {
	if id.Kind == IdentifierNamed {
		return 2 + len(id.Name)
	}
	return 6
}

func (r *reader) identifier() Identifier {
	kind := IdentifierKind(r.u8())
	value := r.take(int(r.u8()))
	switch {
	case kind == IdentifierNumeric && len(value) == 4:
		return Identifier{Kind: kind, ID: le.Uint32(value)}
	case kind == IdentifierNamed && len(value) > 0 && utf8.Valid(value):
		return Identifier{Kind: kind, Name: value}
	}
	r.fail()
	return Identifier{}
}

// DecodeIdentifier reads one identifier and returns the bytes behind it.
func DecodeIdentifier(b []byte) (id Identifier, rest []byte, err error) {
	r := reader{rest: b}
	id = r.identifier()
	return id, r.rest, r.err()
}
