package httpapi

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep values may nest.
const maxDepth = 64

// reader takes one JSON text (RFC 8259, UTF-8) apart. It allocates nothing per value: strings alias
// the text, which it owns and where it resolves escapes in place. The first fault stops it; every
// later call returns zero values, so a decoder looks at the fault once, at its end.
type reader struct {
	text  []byte
	at    int
	depth int
	fault *failure
}

// newReader starts on a text, which it may change.
func newReader(text []byte) *reader {
	r := &reader{text: text}
	if !utf8.Valid(text) {
		r.malformed("the body is not UTF-8")
	}
	return r
}

// end expects nothing but white space and returns the first fault.
func (r *reader) end() error {
	if r.fault == nil && r.next() != 0 {
		r.malformed("data after the JSON value")
	}
	if r.fault == nil && r.at < len(r.text) {
		r.malformed("data after the JSON value")
	}
	if r.fault != nil {
		return r.fault
	}
	return nil
}

func (r *reader) malformed(why string) {
	if r.fault == nil {
		r.fault = badRequest("Malformed JSON: " + why + " at byte " + strconv.Itoa(r.at) + ".")
	}
}

func (r *reader) unfit(why string) {
	if r.fault == nil {
		r.fault = unfit(why)
	}
}

// next skips white space and returns the byte there without taking it; 0 at the end or after a
// fault.
func (r *reader) next() byte {
	if r.fault != nil {
		return 0
	}
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
		case 0:
			r.malformed("unexpected byte")
			return 0
		default:
			return c
		}
	}
	return 0
}

// take takes the byte c if it is next.
func (r *reader) take(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

// record reads an object whose members are the names. member is called with the index of each that
// is present, and must read its value. Other members are skipped; a name given twice is a fault, a
// missing one among the first required names too.
func (r *reader) record(names []string, required int, member func(i int)) {
	var seen uint64
	r.object(func(key []byte) {
		i := indexOf(names, key)
		switch {
		case i < 0:
			r.skip()
		case seen&(1<<i) != 0:
			r.unfit("The field " + names[i] + " is given twice.")
		default:
			seen |= 1 << i
			member(i)
		}
	})
	if missing := (uint64(1)<<required - 1) &^ seen; missing != 0 {
		r.unfit("The field " + names[bits.TrailingZeros64(missing)] + " is missing.")
	}
}

func indexOf(names []string, key []byte) int {
	for i, name := range names {
		if string(key) == name {
			return i
		}
	}
	return -1
}

// object reads an object; member is called with each key and must read its value.
func (r *reader) object(member func(key []byte)) {
	if r.enter('{', "an object") {
		for more := !r.take('}'); more && r.fault == nil; {
			if r.next() != '"' {
				r.malformed("a member name was expected")
				return
			}
			key := r.str()
			if !r.take(':') {
				r.malformed("a colon was expected")
				return
			}
			member(key)
			more = r.more('}')
		}
		r.depth--
	}
}

// list reads an array; item is called for each element and must read it.
func (r *reader) list(item func()) {
	if r.enter('[', "an array") {
		for more := !r.take(']'); more && r.fault == nil; {
			item()
			more = r.more(']')
		}
		r.depth--
	}
}

// enter takes the opening byte of a container.
func (r *reader) enter(open byte, what string) bool {
	if !r.take(open) {
		r.wrong(what)
		return false
	}
	if r.depth++; r.depth > maxDepth {
		r.malformed("nested too deep")
		return false
	}
	return true
}

// more takes what follows an element: a comma, then there is another, or the closing byte.
func (r *reader) more(closing byte) bool {
	switch {
	case r.fault != nil || r.take(closing):
		return false
	case r.take(','):
		return true
	}
	r.malformed("a comma or the end was expected")
	return false
}

// wrong is the fault of finding something other than what.
func (r *reader) wrong(what string) {
	if r.next() == 0 {
		r.malformed("the text ends early")
		return
	}
	at, fault := r.at, r.fault
	if r.skip(); r.fault != fault {
		return // not JSON at all
	}
	r.at = at
	r.unfit("Expected " + what + ".")
}

// null takes a null if it is next.
func (r *reader) null() bool {
	if r.next() != 'n' {
		return false
	}
	return r.word("null")
}

func (r *reader) word(word string) bool {
	if !bytes.HasPrefix(r.text[r.at:], []byte(word)) {
		r.malformed("unknown word")
		return false
	}
	r.at += len(word)
	return true
}

// boolean reads true or false.
func (r *reader) boolean() bool {
	switch r.next() {
	case 't':
		return r.word("true")
	case 'f':
		r.word("false")
		return false
	}
	r.wrong("a boolean")
	return false
}

// uint reads an integer of at most limit, without sign, fraction and exponent.
func (r *reader) uint(limit uint64) uint64 {
	c := r.next()
	if c != '-' && (c < '0' || c > '9') {
		r.wrong("a number")
		return 0
	}
	n, err := strconv.ParseUint(string(r.number()), 10, 64)
	if err != nil || n > limit {
		r.unfit("Expected a whole number of at most " + strconv.FormatUint(limit, 10) + ".")
		return 0
	}
	return n
}

// number takes a number and returns its text.
func (r *reader) number() []byte {
	start := r.at
	r.at += digitsSign(r.text[r.at:])
	whole := r.digits()
	if whole == 0 || whole > 1 && r.text[r.at-whole] == '0' {
		r.malformed("bad number")
		return nil
	}
	if r.at < len(r.text) && r.text[r.at] == '.' {
		r.at++
		if r.digits() == 0 {
			r.malformed("bad number")
			return nil
		}
	}
	if r.at < len(r.text) && r.text[r.at]|0x20 == 'e' {
		r.at++
		if r.at < len(r.text) && (r.text[r.at] == '+' || r.text[r.at] == '-') {
			r.at++
		}
		if r.digits() == 0 {
			r.malformed("bad number")
			return nil
		}
	}
	return r.text[start:r.at]
}

func digitsSign(b []byte) int {
	if len(b) > 0 && b[0] == '-' {
		return 1
	}
	return 0
}

// digits takes digits and returns how many.
func (r *reader) digits() int {
	start := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	return r.at - start
}

// str reads a string.
func (r *reader) str() []byte {
	if !r.take('"') {
		r.wrong("a string")
		return nil
	}
	start := r.at
	if end := bytes.IndexByte(r.text[start:], '"'); end >= 0 {
		if plain := r.text[start : start+end]; bytes.IndexByte(plain, '\\') < 0 && !hasControl(plain) {
			r.at = start + end + 1
			return plain
		}
	}
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return r.text[start : r.at-1]
		case c == '\\':
			return r.escaped(start)
		case c < 0x20:
			r.malformed("control character in a string")
			return nil
		}
	}
	r.malformed("the text ends early")
	return nil
}

// hasControl finds a control character, eight bytes at a time: in a word less 0x20 in every byte, the
// high bit of a byte that did not have it before is a borrow.
func hasControl(b []byte) bool {
	const each = ^uint64(0) / 255
	for ; len(b) >= 8; b = b[8:] {
		if w := binary.LittleEndian.Uint64(b); (w-each*0x20)&^w&(each*0x80) != 0 {
			return true
		}
	}
	for _, c := range b {
		if c < 0x20 {
			return true
		}
	}
	return false
}

// escaped goes on with a string that began at start, from its first backslash on. What an escape
// stands for is never longer than the escape.
func (r *reader) escaped(start int) []byte {
	out := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		switch {
		case c == '"':
			return r.text[start:out]
		case c < 0x20:
			r.malformed("control character in a string")
			return nil
		case c != '\\':
			r.text[out] = c
			out++
		default:
			n, ok := r.escape(out)
			if !ok {
				r.malformed("bad escape")
				return nil
			}
			out = n
		}
	}
	r.malformed("the text ends early")
	return nil
}

// escape resolves the escape behind a backslash into the text at out and returns the place after it.
func (r *reader) escape(out int) (int, bool) {
	if r.at >= len(r.text) {
		return out, false
	}
	c := r.text[r.at]
	r.at++
	if c == 'u' {
		return r.unicode(out)
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := bytes.IndexByte([]byte(from), c)
	if i < 0 {
		return out, false
	}
	r.text[out] = to[i]
	return out + 1, true
}

// unicode resolves \uXXXX, and a surrogate pair of two; half a pair is a fault.
func (r *reader) unicode(out int) (int, bool) {
	first, ok := r.hex4()
	if !ok {
		return out, false
	}
	if utf16.IsSurrogate(first) {
		if !bytes.HasPrefix(r.text[r.at:], []byte(`\u`)) {
			return out, false
		}
		r.at += 2
		second, ok := r.hex4()
		if first = utf16.DecodeRune(first, second); !ok || first == utf8.RuneError {
			return out, false
		}
	}
	return out + utf8.EncodeRune(r.text[out:], first), true
}

func (r *reader) hex4() (rune, bool) {
	if len(r.text)-r.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.text[r.at:r.at+4]), 16, 16)
	if err != nil {
		return 0, false
	}
	r.at += 4
	return rune(n), true
}

// skip reads a value of any kind.
func (r *reader) skip() {
	switch c := r.next(); {
	case c == 0:
		r.malformed("the text ends early")
	case c == '{':
		r.object(func([]byte) { r.skip() })
	case c == '[':
		r.list(r.skip)
	case c == '"':
		r.str()
	case c == 't':
		r.word("true")
	case c == 'f':
		r.word("false")
	case c == 'n':
		r.word("null")
	case c == '-' || c >= '0' && c <= '9':
		r.number()
	default:
		r.malformed("unexpected character")
	}
}
