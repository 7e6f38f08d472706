package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/whippet-mq/whippet/libs/wire"
)

// FuzzProduction feeds bodies to the decoder of produce. What it accepts makes a batch the log takes.
func FuzzProduction(f *testing.F) {
	for _, seed := range []string{
		one, `{"messages":[{"payload":"aGk=","id":"340282366920938463463374607431768211455"}],"partitioning":{"kind":"messages_key","value":"YQ=="}}`,
		`{"partitioning":{"kind":"partition_id","value":"AAAAAA=="},"messages":[{"payload":"aGk=","id":5,"user_headers":[{"key":{"kind":"string","value":"YQ=="},"value":{"kind":"uint64","value":"AQAAAAAAAAA="}}]}]}`,
		`{"partitioning":{"kind":"balanced","value":""},"messages":[{"payload":"aGk=","user_headers":"AQID"},{"payload":"\u0061Gk=","user_headers":null}]}`,
		`{"partitioning":{"kind":"balanced","value":""},"messages":[]}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := newProduction(newReader(bytes.Clone(body)), make([]byte, 0, max(1, len(body))))
		if p.read() != nil || len(p.messages) == 0 {
			return
		}
		if _, code := p.partitioning(); code != 0 && !code.Known() {
			t.Fatalf("code %d", code)
		}
		batch, err := wire.AppendBatch(nil, p.messages)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if err := wire.VerifyBatch(batch); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	})
}

// Bytes, ids and headers come back as they were sent, and the answer keeps within the bytes that were
// taken for it.
func TestProduceAndPollAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type field struct {
			Kind  string `json:"kind"`
			Value []byte `json:"value"`
		}
		type header struct {
			Key   field `json:"key"`
			Value field `json:"value"`
		}
		type message struct {
			ID      string   `json:"id"`
			Payload []byte   `json:"payload"`
			Headers []header `json:"user_headers"`
		}
		var sent struct {
			Partitioning field     `json:"partitioning"`
			Messages     []message `json:"messages"`
		}
		sent.Partitioning = field{"balanced", []byte{}}
		some := rapid.SliceOfN(rapid.Byte(), 1, 255)
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			m := message{ID: draw128(t).String(), Payload: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "payload"), Headers: []header{}}
			for i := range rapid.IntRange(0, 4).Draw(t, "headers") {
				key := append([]byte{byte('a' + i)}, some.Draw(t, "key")...)
				m.Headers = append(m.Headers, header{field{"raw", key[:min(255, len(key))]}, field{"raw", some.Draw(t, "value")}})
			}
			sent.Messages = append(sent.Messages, m)
		}
		body, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		p := newProduction(newReader(bytes.Clone(body)), make([]byte, 0, len(body)))
		if err := p.read(); err != nil {
			t.Fatal(err)
		}
		batch, err := wire.AppendBatch(nil, p.messages)
		if err != nil {
			t.Fatal(err)
		}
		size, err := polledSize(batch)
		if err != nil {
			t.Fatal(err)
		}
		out := appendPolled(nil, wire.PollHeader{MessagesCount: uint32(len(sent.Messages))}, batch)
		if len(out) > size {
			t.Fatalf("%d bytes of JSON, %d taken", len(out), size)
		}
		var got struct {
			Messages []struct {
				Header struct {
					ID json.Number `json:"id"`
				} `json:"header"`
				Payload []byte   `json:"payload"`
				Headers []header `json:"user_headers"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for i, m := range sent.Messages {
			g := got.Messages[i]
			if m.ID != "0" && g.Header.ID.String() != m.ID || !bytes.Equal(g.Payload, m.Payload) || fmt.Sprint(g.Headers) != fmt.Sprint(m.Headers) {
				t.Fatalf("sent %v, got %v", m, g)
			}
		}
	})
}

func draw128(t *rapid.T) *big.Int {
	hi, lo := rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")
	n := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
	return n.Add(n, new(big.Int).SetUint64(lo))
}

// The largest answer a message can have: every number at its longest.
func TestPolledSizeAtTheLimit(t *testing.T) {
	m := wire.NewMessage{
		ID: wire.U128{Lo: ^uint64(0), Hi: ^uint64(0)}, Timestamp: ^uint64(0) - 1, Payload: []byte{1},
		UserHeaders: wire.Pair{KeyKind: wire.KindUint128, Key: []byte{1}, ValueKind: wire.KindFloat64, Value: []byte{1}}.Append(nil),
	}
	batch, err := wire.AppendBatch(nil, slices.Repeat([]wire.NewMessage{m}, 50))
	if err != nil {
		t.Fatal(err)
	}
	wire.StampBatch(batch, 1<<32-1, ^uint64(0), ^uint64(0))
	size, err := polledSize(batch)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(appendPolled(nil, wire.PollHeader{Partition: 1<<32 - 1, CurrentOffset: ^uint64(0), MessagesCount: 50}, batch)); n > size {
		t.Errorf("%d bytes of JSON, %d taken", n, size)
	}
}

func TestMessageIDs(t *testing.T) {
	for text, want := range map[string]wire.U128{
		"0": {}, "42": {Lo: 42}, "18446744073709551616": {Hi: 1}, "340282366920938463463374607431768211455": {Lo: ^uint64(0), Hi: ^uint64(0)},
		"00000000-0000-0000-0000-00000000002a": {Lo: 42}, "0123456789abcdef0123456789ABCDEF": {Lo: 0x0123456789abcdef, Hi: 0x0123456789abcdef},
	} {
		if got, ok := parseID([]byte(text)); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-1", "1.5", "abc", "340282366920938463463374607431768211456", "3402823669209384634633746074317682114550",
		"00000000-0000-0000-0000-00000000002", "00000000_0000_0000_0000_00000000002a",
	} {
		if got, ok := parseID([]byte(text)); ok {
			t.Errorf("%s is %v", text, got)
		}
	}
}

// Base64 with line breaks, which the decoder would skip, and with loose trailing bits is refused.
func TestStrictBase64(t *testing.T) {
	for _, value := range []string{`aG\nk=`, `aGl=`, `aGk`, `-_-_`, `aGk= `} {
		body := strings.Replace(one, "aGk=", value, 1)
		p := newProduction(newReader([]byte(body)), make([]byte, 0, len(body)))
		if err := p.read(); err == nil || err.(*failure).status != 422 {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func BenchmarkProduction(b *testing.B) {
	payload := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 1000))
	body := `{"partitioning":{"kind":"balanced","value":""},"messages":[` + strings.Repeat(`{"id":0,"payload":"`+payload+`"},`, 999) + `{"payload":"` + payload + `"}]}`
	arena, text := make([]byte, 0, len(body)), make([]byte, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		copy(text, body)
		p := newProduction(newReader(text), arena)
		if err := p.read(); err != nil {
			b.Fatal(err)
		}
	}
}
