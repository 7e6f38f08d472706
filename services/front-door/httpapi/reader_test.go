package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// value reads any JSON value the way encoding/json shows it.
func (r *reader) value() any {
	switch c := r.next(); {
	case c == '{':
		m := map[string]any{}
		r.object(func(key []byte) {
			name := string(key)
			m[name] = r.value()
		})
		return m
	case c == '[':
		list := []any{}
		r.list(func() { list = append(list, r.value()) })
		return list
	case c == '"':
		return string(r.str())
	case c == 't' || c == 'f':
		return r.boolean()
	case c == 'n':
		r.null()
		return nil
	case c == '-' || c >= '0' && c <= '9':
		return json.Number(r.number())
	}
	r.skip()
	return nil
}

// FuzzReader compares with encoding/json: both accept the same texts and read the same values, but
// for what is stricter here on purpose.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` { "a" : [ 1 , -2.5e+3 , true , false , null , "x" ] } `, `"\u00e9\ud83d\ude00\n\/\\"`, `01`, `1.`, `-`, `1e`, `"\ud800"`,
		`"\ud83dx"`, `{"a":1,}`, `[1 2]`, `{"a" 1}`, `nul`, "\"\x01\"", "\xff", `{"a":{"a":{}}}`, `[[[[]]]]`, `0`, `-0`, `"`, `"\`, `"\u12`, "",
		"\x00", "1\x00", `{"a":1}x`, "\ufeff{}", `"a\"b\\c"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		valid := json.Valid(text) && d.Decode(&want) == nil
		skipped := newReader(bytes.Clone(text))
		skipped.skip()
		r := newReader(bytes.Clone(text))
		got := r.value()
		err := r.end()
		if (err == nil) != (skipped.end() == nil) {
			t.Fatalf("%q: read says %v, skip says %v", text, err, skipped.fault)
		}
		switch {
		case err == nil && !valid:
			t.Fatalf("%q is accepted", text)
		case err != nil && valid && utf8.Valid(text) && !loneSurrogate(text) && depth(text) <= maxDepth:
			t.Fatalf("%q is refused: %v", text, err)
		case err == nil && !reflect.DeepEqual(got, want):
			t.Fatalf("%q is %#v, want %#v", text, got, want)
		}
	})
}

// loneSurrogate finds what encoding/json replaces and this reader refuses.
func loneSurrogate(text []byte) bool {
	return bytes.Contains(bytes.ToLower(text), []byte(`\ud`))
}

func depth(text []byte) (deepest int) {
	at := 0
	for _, c := range text {
		switch c {
		case '{', '[':
			at++
			deepest = max(deepest, at)
		case '}', ']':
			at--
		}
	}
	return deepest
}

func TestReaderFaults(t *testing.T) {
	for _, test := range []struct {
		text   string
		status int
	}{
		{`{"name":"x","count":1}`, 0},
		{` {"count":1 , "name":"x", "more":{"deep":[1,{}]}} `, 0},
		{`{"name":"x"}`, 422},             // missing
		{`{"name":"x","count":"1"}`, 422}, // quoted
		{`{"name":"x","count":-1}`, 422},  // signed
		{`{"name":"x","count":1.0}`, 422}, // fraction
		{`{"name":"x","count":1e1}`, 422}, // exponent
		{`{"name":"x","count":256}`, 422}, // beyond the limit
		{`{"name":"x","count":18446744073709551616}`, 422},
		{`{"name":null,"count":1}`, 422},
		{`{"name":"x","name":"y","count":1}`, 422}, // twice
		{`["x",1]`, 422},                           // an array for an object
		{`"x"`, 422},
		{`{"name":"x","count":1`, 400},
		{`{"name":"x","count":1}}`, 400},
		{`{"name":"x","count":}`, 400},
		{`{"name":"x","count":01}`, 400},
		{`{"name":tru,"count":1}`, 400},
		{`{name:"x","count":1}`, 400},
		{``, 400},
		{`not json`, 400},
		{"{\"name\":\"\xff\",\"count\":1}", 400},
		{`{"name":"x","count":1,"more":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, 400},
	} {
		r := newReader([]byte(test.text))
		r.record([]string{"name", "count"}, 2, func(i int) {
			if i == 0 {
				r.str()
			} else {
				r.uint(255)
			}
		})
		status := 0
		if err := r.end(); err != nil {
			status = err.(*failure).status
		}
		if status != test.status {
			t.Errorf("%s: status %d, want %d", test.text, status, test.status)
		}
	}
}

// What is read keeps its value while later strings are resolved in place.
func TestReaderAliases(t *testing.T) {
	r := newReader([]byte(`["a\u0062c","\\\"\/","\ud83d\ude00é"]`))
	var got []string
	var raw [][]byte
	r.list(func() { raw = append(raw, r.str()) })
	for _, b := range raw {
		got = append(got, string(b))
	}
	if err := r.end(); err != nil || !reflect.DeepEqual(got, []string{"abc", `\"/`, "😀é"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func BenchmarkReaderString(b *testing.B) {
	text := []byte(strconv.Quote(strings.Repeat("QUJD", 1<<16)))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := newReader(text)
		r.str()
	}
}
