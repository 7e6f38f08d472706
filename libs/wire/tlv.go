package wire

import (
	"iter"
	"unicode/utf8"
)

// ValueKind types a key or a value of a TLV block: options and user headers.
type ValueKind uint8

// Value kinds.
const (
	KindRaw     ValueKind = 1
	KindString  ValueKind = 2
	KindBool    ValueKind = 3
	KindInt8    ValueKind = 4
	KindInt16   ValueKind = 5
	KindInt32   ValueKind = 6
	KindInt64   ValueKind = 7
	KindInt128  ValueKind = 8
	KindUint8   ValueKind = 9
	KindUint16  ValueKind = 10
	KindUint32  ValueKind = 11
	KindUint64  ValueKind = 12
	KindUint128 ValueKind = 13
	KindFloat32 ValueKind = 14
	KindFloat64 ValueKind = 15
)

// Size is the length in bytes of k's values, 0 for Raw and String, which have any, and for a kind
// without a name.
func (k ValueKind) Size() int {
	switch k {
	case KindBool, KindInt8, KindUint8:
		return 1
	case KindInt16, KindUint16:
		return 2
	case KindInt32, KindUint32, KindFloat32:
		return 4
	case KindInt64, KindUint64, KindFloat64:
		return 8
	case KindInt128, KindUint128:
		return 16
	}
	return 0
}

// Check tells whether value is one of kind k, as typed readers of user headers do: an unnamed kind
// is CodeInvalidHeaderKind, a wrong length CodeInvalidHeaderValue. The broker itself never asks.
func (k ValueKind) Check(value []byte) error {
	switch {
	case k < KindRaw || k > KindFloat64:
		return CodeInvalidHeaderKind
	case k.Size() != 0 && len(value) != k.Size():
		return CodeInvalidHeaderValue
	case k == KindString && !utf8.Valid(value):
		return CodeInvalidHeaderValue
	}
	return nil
}

// Pair is one entry of a TLV block. Key and Value are 1..255 bytes and alias the block.
// Layout: key_kind:u8 key_len:u32 key value_kind:u8 value_len:u32 value (client-wire §12.1, §13.5).
type Pair struct {
	KeyKind   ValueKind
	Key       []byte
	ValueKind ValueKind
	Value     []byte
}

// Append writes p's wire form behind dst.
func (p Pair) Append(dst []byte) []byte {
	dst = appendStr32(append(dst, byte(p.KeyKind)), p.Key)
	return appendStr32(append(dst, byte(p.ValueKind)), p.Value)
}

func (r *reader) pair() Pair {
	return Pair{
		KeyKind: r.tlvKind(), Key: r.tlvField(),
		ValueKind: r.tlvKind(), Value: r.tlvField(),
	}
}

func (r *reader) tlvKind() ValueKind {
	kind := ValueKind(r.u8())
	if kind == 0 {
		r.fail()
	}
	return kind
}

func (r *reader) tlvField() []byte {
	field := r.blk32()
	if len(field) == 0 || len(field) > MaxTLVField {
		r.fail()
	}
	return field
}

// UserHeaders is a message's user headers as a TLV block. Brokers store and return them as opaque
// bytes; only readers that want pairs decode them.
type UserHeaders []byte

// DecodeUserHeaders checks that b is a whole TLV block. Its error is CodeInvalidHeaderValue.
func DecodeUserHeaders(b []byte) (UserHeaders, error) {
	r := reader{rest: b}
	for len(r.rest) > 0 {
		r.pair()
	}
	if r.bad {
		return nil, CodeInvalidHeaderValue
	}
	return b, nil
}

// All yields the pairs in order. On bytes that DecodeUserHeaders refuses it ends early.
func (h UserHeaders) All() iter.Seq[Pair] { return pairs(h) }

func pairs(block []byte) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		r := reader{rest: block}
		for len(r.rest) > 0 {
			if p := r.pair(); r.bad || !yield(p) {
				return
			}
		}
	}
}
