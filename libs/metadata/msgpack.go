package metadata

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ErrSnapshot is what DecodeSnapshot wraps for bytes that are no snapshot this package can take.
var ErrSnapshot = errors.New("metadata: not a valid snapshot")

// decoder reads MessagePack front to back. The first failure sticks and every later read gives zero, so
// callers read a whole record and ask once. It trusts no count: what is allocated is bounded by the
// bytes that are there.
type decoder struct {
	rest   []byte
	failed bool
	what   string // where it failed first
}

func (d *decoder) fail(what string) {
	if !d.failed {
		d.failed, d.what, d.rest = true, what, nil
	}
}

func (d *decoder) check(ok bool, what string) {
	if !ok {
		d.fail(what)
	}
}

// list reads an array header; every element takes at least a byte.
func (d *decoder) list(what string) int {
	n, rest, err := msgp.ReadArrayHeaderBytes(d.rest)
	if d.failed || err != nil || uint64(n) > uint64(len(rest)) {
		d.fail(what)
		return 0
	}
	d.rest = rest
	return int(n)
}

// record reads the header of an array of at least n fields and returns how many more there are.
func (d *decoder) record(n int, what string) (extra int) {
	have := d.list(what)
	d.check(have >= n, what)
	return max(have-n, 0)
}

// skip passes over n values.
func (d *decoder) skip(n int, what string) {
	for range n {
		rest, err := msgp.Skip(d.rest)
		if d.failed || err != nil {
			d.fail(what)
			return
		}
		d.rest = rest
	}
}

// fields reads the header of a record of exactly n fields.
func (d *decoder) fields(n int, what string) {
	d.check(d.record(n, what) == 0, what)
}

// table reads a map header; every entry takes at least two bytes.
func (d *decoder) table(what string) int {
	n, rest, err := msgp.ReadMapHeaderBytes(d.rest)
	if d.failed || err != nil || uint64(n)*2 > uint64(len(rest)) {
		d.fail(what)
		return 0
	}
	d.rest = rest
	return int(n)
}

func (d *decoder) u64(what string) uint64 {
	n, rest, err := msgp.ReadUint64Bytes(d.rest)
	if d.failed || err != nil {
		d.fail(what)
		return 0
	}
	d.rest = rest
	return n
}

// bounded reads a number of at most limit.
func (d *decoder) bounded(limit uint64, what string) uint64 {
	n := d.u64(what)
	if n > limit {
		d.fail(what)
		return 0
	}
	return n
}

func (d *decoder) u32(what string) uint32 { return uint32(d.bounded(1<<32-1, what)) }

func (d *decoder) flag(what string) bool {
	b, rest, err := msgp.ReadBoolBytes(d.rest)
	if d.failed || err != nil {
		d.fail(what)
		return false
	}
	d.rest = rest
	return b
}

func (d *decoder) flags(n int, what string) (bits uint16) {
	for i := range n {
		if d.flag(what) {
			bits |= 1 << i
		}
	}
	return bits
}

// null reports and consumes a nil.
func (d *decoder) null() bool {
	if d.failed || len(d.rest) == 0 || !msgp.IsNil(d.rest) {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

// text reads UTF-8.
func (d *decoder) text(what string) string {
	s, rest, err := msgp.ReadStringZC(d.rest)
	if d.failed || err != nil || !utf8.Valid(s) {
		d.fail(what)
		return ""
	}
	d.rest = rest
	return string(s)
}

// name reads 1..255 bytes of UTF-8.
func (d *decoder) name(what string) string {
	s := d.text(what)
	d.check(len(s) >= 1 && len(s) <= wire.MaxName, what)
	return s
}

// blob reads bytes, which alias the snapshot.
func (d *decoder) blob(what string) []byte {
	b, rest, err := msgp.ReadBytesZC(d.rest)
	if d.failed || err != nil {
		d.fail(what)
		return nil
	}
	d.rest = rest
	return b
}

// u128 reads 16 bytes, big-endian.
func (d *decoder) u128(what string) wire.U128 {
	b := d.blob(what)
	if len(b) != 16 {
		d.fail(what)
		return wire.U128{}
	}
	return wire.U128{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
}

// field reads an option key or value: [kind, base64].
func (d *decoder) field(what string) (wire.ValueKind, []byte) {
	d.fields(2, what)
	kind, text := d.text(what), d.text(what)
	value, err := base64.StdEncoding.DecodeString(text)
	d.check(err == nil && len(value) >= 1 && len(value) <= wire.MaxTLVField, what)
	for i, name := range kindNames {
		if i > 0 && name == kind && !d.failed {
			return wire.ValueKind(i), value
		}
	}
	d.fail(what)
	return 0, nil
}
