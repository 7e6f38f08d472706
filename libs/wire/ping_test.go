package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func samplePing() (wire.PingHeader, wire.PingBody) {
	h := wire.PingHeader{
		Preamble: wire.Preamble{Cluster: wire.ClusterID("iggy-cluster")}, ClusterUUID: wire.U128{Lo: 1, Hi: 2}, NodeUUID: wire.U128{Lo: 3, Hi: 4},
		Epoch: 5, Sent: 6, Echo: 7, Wall: 8, Features: 9, MetadataView: 10, Build: 11, Node: 12, Lane: 13, Mixed: true,
		Mismatch: 14,
	}
	return h, wire.PingBody{Progress: []uint64{0x1122, 0x3344}, Heard: []wire.Heard{{Node: 200, Epoch: 0x55, Loops: 0x66}}, Digests: []uint64{0x77}, Address: []byte("a:1")}
}

// TestPingLayout holds the frame against bytes put together by hand.
func TestPingLayout(t *testing.T) {
	h, body := samplePing()
	h.Command = wire.CommandPong
	got := wire.AppendPing([]byte("x"), &h, &body)[1:]
	want := make([]byte, 256)
	copy(want[32:], hexBytes(t, "21bb05c88727bab88d0ec27be8a72d46"))
	copy(want[48:], []byte{0x2c, 1}) // 256 + 2*8 + 17 + 8 + 3 = 300
	want[60] = 2
	for at, v := range map[int]byte{128: 1, 136: 2, 144: 3, 152: 4, 160: 5, 168: 6, 176: 7, 184: 8, 192: 9, 200: 10, 204: 11, 208: 12, 209: 2, 210: 13, 211: 1, 212: 3, 214: 1, 216: 14, 224: 1} {
		want[at] = v
	}
	want = append(want, hexBytes(t, "2211000000000000"+"4433000000000000"+"c8"+"5500000000000000"+"6600000000000000"+"7700000000000000"+"613a31")...)
	wire.Widened(want[256:]).Put(want[16:])
	wire.Widened(want[16:256]).Put(want)
	if !bytes.Equal(got, want) {
		t.Fatalf("got\n%x\nwant\n%x", got, want)
	}
}

func hexBytes(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPingRules(t *testing.T) {
	h, body := samplePing()
	good := wire.AppendPing(nil, &h, &body)
	seal := func(b []byte) []byte { wire.Seal(b); return b }
	for name, c := range map[string]struct {
		frame []byte
		want  error
	}{
		"good":           {good, nil},
		"short":          {good[:255], wire.ErrShort},
		"other command":  {seal(patched(good, 60, 9)), wire.ErrCommand},
		"seal":           {patched(good, 128, 0xff), wire.ErrSeal},
		"too many loops": {seal(patched(good, 209, 65)), wire.ErrField},
		"mode":           {seal(patched(good, 211, 2)), wire.ErrField},
		"count":          {seal(patched(good, 214, 2)), wire.ErrSize},
		"digests":        {seal(patched(good, 224, 2)), wire.ErrSize},
		"many digests":   {seal(patched(good, 224, 65)), wire.ErrField},
		"address":        {seal(patched(good, 212, 2)), wire.ErrSize},
	} {
		var got wire.PingHeader
		if err := got.Decode(c.frame); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var got wire.PingBody
	if err := got.Decode(&h, good[256:]); err != nil || len(got.Progress) != 2 || got.Heard[0] != body.Heard[0] || len(got.Digests) != 1 || got.Digests[0] != 0x77 || string(got.Address) != "a:1" {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"short":   {good[256 : len(good)-1], wire.ErrShort},
		"long":    {append(bytes.Clone(good[256:]), 0), wire.ErrSize},
		"changed": {patched(good[256:], 0, 0xff), wire.ErrSeal},
	} {
		if err := got.Decode(&h, c.body); !errors.Is(err, c.want) {
			t.Errorf("body %s: %v, want %v", name, err, c.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = got.Decode(&h, good[256:]) }); n != 0 {
		t.Errorf("%v allocations to decode into a used body", n)
	}
}

func patched(b []byte, at int, v byte) []byte {
	b = bytes.Clone(b)
	b[at] = v
	return b
}

// FuzzPing: what decodes encodes to the same bytes, reserved ones aside.
func FuzzPing(f *testing.F) {
	h, body := samplePing()
	f.Add(wire.AppendPing(nil, &h, &body))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < wire.HeaderSize {
			return
		}
		b[60] = 1 + b[60]&1
		wire.Widened(b[256:]).Put(b[16:])
		wire.Seal(b)
		var h wire.PingHeader
		var body wire.PingBody
		if h.Decode(b) != nil || body.Decode(&h, b[256:]) != nil {
			return
		}
		again := wire.AppendPing(nil, &h, &body)
		var second wire.PingHeader
		if err := second.Decode(again); err != nil || second != h {
			t.Fatalf("%v\n%+v\n%+v", err, h, second)
		}
		if !bytes.Equal(again[256:], b[256:]) {
			t.Fatalf("body %x encodes to %x", b[256:], again[256:])
		}
	})
}
