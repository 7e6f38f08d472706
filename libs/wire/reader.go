package wire

import "unicode/utf8"

// reader walks a body front to back. The first read past the end or of a bad value sets bad and
// empties the rest, so decoders read all their fields and ask once at the end. Slices alias the body.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) fail() {
	r.rest, r.bad = nil, true
}

// err is CodeInvalidCommand when any read failed.
func (r *reader) err() error {
	if r.bad {
		return CodeInvalidCommand
	}
	return nil
}

// end is err that refuses unread bytes too.
func (r *reader) end() error {
	if len(r.rest) > 0 {
		r.fail()
	}
	return r.err()
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail()
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

func (r *reader) u128() U128 {
	if b := r.take(16); b != nil {
		return DecodeU128(b)
	}
	return U128{}
}

// flag reads a boolean: any non-zero byte is true.
func (r *reader) flag() bool { return r.u8() != 0 }

// text fails unless b is UTF-8.
func (r *reader) text(b []byte) []byte {
	if !utf8.Valid(b) {
		r.fail()
		return nil
	}
	return b
}

// str8 reads len:u8 (0..255) and that much UTF-8.
func (r *reader) str8() []byte { return r.text(r.take(int(r.u8()))) }

// name8 reads len:u8 (1..255) and that much UTF-8.
func (r *reader) name8() []byte {
	name := r.str8()
	if len(name) == 0 {
		r.fail()
	}
	return name
}

// blk32 reads len:u32 and that many bytes.
func (r *reader) blk32() []byte { return r.take(int(r.u32())) }

// str32 reads len:u32 and that much UTF-8.
func (r *reader) str32() []byte { return r.text(r.blk32()) }

func appendU16(dst []byte, v uint16) []byte { return le.AppendUint16(dst, v) }
func appendU32(dst []byte, v uint32) []byte { return le.AppendUint32(dst, v) }
func appendU64(dst []byte, v uint64) []byte { return le.AppendUint64(dst, v) }

func appendU128(dst []byte, v U128) []byte {
	return le.AppendUint64(le.AppendUint64(dst, v.Lo), v.Hi)
}

func appendFlag(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// appendStr8 writes len:u8 and s, which the caller has bounded to 255 bytes.
func appendStr8[T ~[]byte | ~string](dst []byte, s T) []byte {
	return append(append(dst, byte(len(s))), s...)
}

// appendStr32 writes len:u32 and s.
func appendStr32[T ~[]byte | ~string](dst []byte, s T) []byte {
	return append(appendU32(dst, uint32(len(s))), s...)
}

// repeat reads count records. It grows its result as it reads, so a count that the body does not
// bear out costs nothing.
func repeat[T any](r *reader, count uint32, record func(*reader) T) []T {
	var records []T
	for ; count > 0 && !r.bad; count-- {
		records = append(records, record(r))
	}
	return records
}

// appendAll writes records behind dst.
func appendAll[T interface{ Append([]byte) []byte }](dst []byte, records []T) []byte {
	for _, record := range records {
		dst = record.Append(dst)
	}
	return dst
}

// decodeAll reads records to the end of b.
func decodeAll[T any](b []byte, record func(*reader) T) ([]T, error) {
	r := reader{rest: b}
	var records []T
	for len(r.rest) > 0 {
		records = append(records, record(&r))
	}
	return records, r.err()
}
