package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
)

// clientVector is one golden entry of testdata/client-wire.json.
type clientVector struct {
	Name   string
	Area   string
	Hex    string
	Expect struct {
		Error        string
		Length       int
		ServerStatus Code `json:"server_status"`
	}
	bytes []byte
}

// vectorCheck judges the bytes of one vector.
type vectorCheck func(t *testing.T, b []byte)

func loadClientVectors(t testing.TB) map[string]clientVector {
	t.Helper()
	file, err := os.ReadFile("testdata/client-wire.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []clientVector
	if err := json.Unmarshal(file, &list); err != nil {
		t.Fatal(err)
	}
	vectors := map[string]clientVector{}
	for _, v := range list {
		if v.bytes, err = hex.DecodeString(v.Hex); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		vectors[v.Name] = v
	}
	return vectors
}

// vectorBytes returns the bytes of a vector that another one is built on.
func vectorBytes(t testing.TB, name string) []byte {
	t.Helper()
	v, found := loadClientVectors(t)[name]
	if !found {
		t.Fatalf("no vector %s", name)
	}
	return v.bytes
}

func TestClientVectors(t *testing.T) {
	vectors := loadClientVectors(t)
	if len(vectors) != 172 {
		t.Fatalf("%d vectors, want 172", len(vectors))
	}
	checks := map[string]vectorCheck{}
	for _, area := range []map[string]vectorCheck{
		hashVectors(vectors), primitiveVectors(), requestVectors(), replyVectors(), batchVectors(), headerVectors(),
	} {
		for name := range area {
			if checks[name] != nil {
				t.Errorf("%s is checked twice", name)
			}
		}
		maps.Copy(checks, area)
	}
	for name, v := range vectors {
		check := checks[name]
		if check == nil {
			t.Errorf("%s (%s) has no check", name, v.Area)
			continue
		}
		delete(checks, name)
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			if len(v.bytes) != v.Expect.Length {
				t.Errorf("%d bytes, want %d", len(v.bytes), v.Expect.Length)
			}
			check(t, v.bytes)
		})
	}
	for name := range checks {
		t.Errorf("%s is checked but no vector", name)
	}
}

// appender is what every body of the package can do.
type appender interface{ Append([]byte) []byte }

// body checks that b decodes to want, and that want encodes to b behind other bytes.
func body[T appender](decode func([]byte) (T, error), want T) vectorCheck {
	return func(t *testing.T, b []byte) {
		t.Helper()
		got, err := decode(b)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded\n %+v, want\n %+v", got, want)
		}
		front := []byte("front")
		if enc := want.Append(front); !bytes.Equal(enc, append(front, b...)) {
			t.Errorf("encoded\n %x, want\n %x", enc[len(front):], b)
		}
	}
}

// framed is body behind a result section of success.
func framed[T appender](decode func([]byte) (T, error), want T) vectorCheck {
	return func(t *testing.T, b []byte) {
		payload, err := DecodeResult(b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(AppendSuccess(nil), b[:len(b)-len(payload)]) {
			t.Errorf("result section %x", b[:len(b)-len(payload)])
		}
		body(decode, want)(t, payload)
	}
}

// list checks that b decodes to want and that the records of want encode to b.
func list[T appender](decode func([]byte) ([]T, error), want ...T) vectorCheck {
	return func(t *testing.T, b []byte) {
		got, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded\n %+v, want\n %+v", got, want)
		}
		var enc []byte
		for _, record := range want {
			enc = record.Append(enc)
		}
		if !bytes.Equal(enc, b) {
			t.Errorf("encoded\n %x, want\n %x", enc, b)
		}
	}
}

// refused checks that b does not decode, with the code that its command answers.
func refused[T any](decode func([]byte) (T, error), want Code) vectorCheck {
	return func(t *testing.T, b []byte) {
		if got, err := decode(b); err != want {
			t.Errorf("decoded to %+v, %v; want %v", got, err, want)
		}
	}
}

// whole makes a decoder of a reader method that must use up its bytes.
func whole[T any](read func(*reader) T) func([]byte) (T, error) {
	return func(b []byte) (T, error) {
		r := reader{rest: b}
		value := read(&r)
		return value, r.end()
	}
}
