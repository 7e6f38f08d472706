package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// TestRoutedLayout: every field of the service plane at its place, with the client's own fields beside it.
func TestRoutedLayout(t *testing.T) {
	h := wire.RequestHeader{Size: 300, Client: wire.U128{Lo: 1}, Operation: wire.OpSendMessages, Session: 2, Request: 3, UserID: 4, Group: 5}
	r := wire.Routed{
		Connection: wire.U128{Lo: 0x10, Hi: 0x11}, Sequence: 0x12, MetadataOp: 0x13, Floor: wire.Floor{View: 0x14, Next: 0x15}, Generation: 0x16,
		Deadline: 0x17, Code: 0x18, Internal: true, ConsumerKind: 2, ConsumerID: 0x19, MaxReply: 0x1a, InFlight: 0x0b, Correlation: 0x1c,
	}
	got := bytes.Repeat([]byte{0xdb}, 256)
	h.Put(got)
	r.Put(got)
	want := make([]byte, 256)
	for at, v := range map[int]byte{
		48: 44, 49: 1, 60: 5, 64: 0x10, 72: 0x11, 80: 0x12, 88: 0x1a, 92: 0x0b, 128: 1, 168: 3, 176: 160, 184: 2, 192: 4,
		196: 0x13, 204: 0x14, 208: 0x15, 216: 0x16, 224: 0x17, 228: 0x18, 232: 1, 233: 2, 236: 0x19, 240: 0x1c, 248: 5,
	} {
		want[at] = v
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("got\n%x\nwant\n%x", got, want)
	}
	var back wire.Routed
	if err := back.Decode(got); err != nil || back != r {
		t.Fatalf("%+v, %v", back, err)
	}
	for name, c := range map[string]struct {
		at   int
		v    byte
		want error
	}{
		"flag":      {232, 2, wire.ErrReserved},
		"in flight": {92, 0x0c, wire.ErrSize},
		"size":      {49, 0, wire.ErrSize},
	} {
		if err := back.Decode(patched(got, c.at, c.v)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := back.Decode(got[:255]); !errors.Is(err, wire.ErrShort) {
		t.Errorf("short: %v", err)
	}
}

func TestReplyContextLayout(t *testing.T) {
	h := wire.ReplyHeader{Size: 256, Client: wire.U128{Lo: 1}, Operation: wire.OpSendMessages}
	c := wire.ReplyContext{View: 0x10, Primary: 0x11, Reason: 0x12, Framed: true, MetadataOp: 0x13, Correlation: 0x14}
	var plain, got [256]byte
	h.Put(plain[:])
	h.Put(got[:])
	c.Put(got[:])
	want := plain
	for at, v := range map[int]byte{144: 0x10, 148: 0x11, 149: 0x12, 150: 1, 152: 0x13, 240: 0x14} {
		want[at] = v
	}
	if got != want {
		t.Fatalf("got\n%x\nwant\n%x", got, want)
	}
	var back wire.ReplyContext
	if err := back.Decode(got[:]); err != nil || back != c {
		t.Fatalf("%+v, %v", back, err)
	}
	if err := back.Decode(patched(got[:], 150, 2)); !errors.Is(err, wire.ErrReserved) {
		t.Errorf("flag: %v", err)
	}
	if err := back.Decode(got[:255]); !errors.Is(err, wire.ErrShort) {
		t.Errorf("short: %v", err)
	}
	if back.Clear(got[:]); got != plain {
		t.Errorf("cleared to\n%x\nwant\n%x", got, plain)
	}
}

func TestEvictionCorrelation(t *testing.T) {
	var b [256]byte
	(&wire.EvictionHeader{Client: wire.U128{Lo: 1}, Reason: wire.EvictNoSession}).Put(b[:])
	wire.PutCorrelation(b[:], 77)
	var h wire.EvictionHeader
	if err := h.Decode(b[:]); !errors.Is(err, wire.ErrReserved) {
		t.Errorf("a marked eviction passes for a client's: %v", err)
	}
	if n := wire.TakeCorrelation(b[:]); n != 77 {
		t.Errorf("number %d", n)
	}
	if err := h.Decode(b[:]); err != nil {
		t.Error(err)
	}
}

// FuzzRouted: what decodes encodes to bytes that decode to the same.
func FuzzRouted(f *testing.F) {
	f.Add(make([]byte, 256))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, second wire.Routed
		if r.Decode(b) == nil {
			r.Put(b)
			if err := second.Decode(b); err != nil || second != r {
				t.Fatalf("%v\n%+v\n%+v", err, r, second)
			}
		}
		var c, again wire.ReplyContext
		if c.Decode(b) == nil {
			c.Put(b)
			if err := again.Decode(b); err != nil || again != c {
				t.Fatalf("%v\n%+v\n%+v", err, c, again)
			}
		}
	})
}
