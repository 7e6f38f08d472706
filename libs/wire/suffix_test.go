package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// chain returns sealed headers of ops from..to, oldest first, each naming the one before as parent.
func chain(from, to uint64) []wire.PrepareHeader {
	var list []wire.PrepareHeader
	parent := wire.U128{Lo: 99}
	for op := from; op <= to; op++ {
		h := wire.PrepareHeader{
			Command: wire.CommandPrepare, Op: op, Timestamp: 1000 * op, Parent: parent, Size: wire.HeaderSize,
			Operation: wire.OpSendMessages, Group: 7,
		}
		h.Checksum = h.Identity()
		parent = h.Checksum
		list = append(list, h)
	}
	return list
}

// suffixOf is the chain as a suffix: head first.
func suffixOf(list []wire.PrepareHeader) []wire.PrepareHeader {
	var down []wire.PrepareHeader
	for i := range list {
		down = append(down, list[len(list)-1-i])
	}
	return down
}

func TestSuffix(t *testing.T) {
	reseal := func(h *wire.PrepareHeader) { h.Checksum = h.Identity() }
	for name, c := range map[string]struct {
		change func(s []wire.PrepareHeader)
		want   error
	}{
		"good":                     {func([]wire.PrepareHeader) {}, nil},
		"blank in between":         {func(s []wire.PrepareHeader) { s[1] = wire.BlankPrepare(s[1].Op) }, nil},
		"unsealed lower entry":     {func(s []wire.PrepareHeader) { s[3].Checksum = wire.U128{} }, nil},
		"another view":             {func(s []wire.PrepareHeader) { s[2].View = 9 }, nil},
		"broken identity":          {func(s []wire.PrepareHeader) { s[2].Client.Lo++ }, wire.ErrIdentity},
		"sealed for another chain": {func(s []wire.PrepareHeader) { s[2].Client.Lo++; reseal(&s[2]) }, wire.ErrIdentity},
		"wrong op":                 {func(s []wire.PrepareHeader) { s[2].Op++; reseal(&s[2]) }, wire.ErrField},
		"blank with another op":    {func(s []wire.PrepareHeader) { s[2] = wire.BlankPrepare(1) }, wire.ErrField},
		"time stands still": {func(s []wire.PrepareHeader) {
			s[3].Timestamp = s[2].Timestamp
			reseal(&s[3])
			s[2] = wire.BlankPrepare(s[2].Op)
			s[3].Timestamp = s[1].Timestamp
			reseal(&s[3])
		}, wire.ErrField},
		"repair command":    {func(s []wire.PrepareHeader) { s[2].Command = wire.CommandRepairPrepare }, wire.ErrCommand},
		"unknown operation": {func(s []wire.PrepareHeader) { s[2].Operation = 99; reseal(&s[2]) }, wire.ErrOperation},
	} {
		t.Run(name, func(t *testing.T) {
			s := suffixOf(chain(5, 9))
			c.change(s)
			body := wire.AppendSuffix(nil, s)
			kept := []wire.PrepareHeader{{Op: 1}}
			got, err := wire.DecodeSuffix(kept, body, 9, wire.SuffixChecksum(body))
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err != nil && len(got) != 1 || err == nil && len(got) != 6 || got[0].Op != 1 {
				t.Errorf("%d entries", len(got))
			}
		})
	}
}

func TestSuffixBounds(t *testing.T) {
	body := wire.AppendSuffix(nil, suffixOf(chain(1, 2)))
	for name, c := range map[string]struct {
		body []byte
		head uint64
		sum  wire.U128
		want error
	}{
		"empty":                  {nil, 3, wire.U128{}, nil},
		"empty with a checksum":  {nil, 3, one, wire.ErrSeal},
		"without its checksum":   {body, 2, wire.U128{}, wire.ErrSeal},
		"more entries than ops":  {body, 1, wire.SuffixChecksum(body), wire.ErrField},
		"head above the entries": {body, 3, wire.SuffixChecksum(body), wire.ErrField},
		"not a multiple of 256":  {body[:300], 2, wire.SuffixChecksum(body[:300]), wire.ErrSize},
		"one entry above 128":    {make([]byte, 129*256), 500, wire.SuffixChecksum(make([]byte, 129*256)), wire.ErrSize},
	} {
		if _, err := wire.DecodeSuffix(nil, c.body, c.head, c.sum); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	long := wire.AppendSuffix(nil, suffixOf(chain(1, 128)))
	if got, err := wire.DecodeSuffix(nil, long, 128, wire.SuffixChecksum(long)); err != nil || len(got) != 128 {
		t.Errorf("128 entries: %d, %v", len(got), err)
	}
}

func TestBits(t *testing.T) {
	var u wire.U128
	for _, i := range []int{0, 1, 63, 64, 127} {
		u = u.WithBit(i)
	}
	for i := range 128 {
		want := i == 0 || i == 1 || i == 63 || i == 64 || i == 127
		if u.Bit(i) != want {
			t.Errorf("bit %d = %v", i, u.Bit(i))
		}
	}
	if u.Bit(128) || u.Bit(-1) {
		t.Error("bits beyond the set")
	}
	var b [16]byte
	u.Put(b[:])
	if b[0] != 3 || b[7] != 0x80 || b[8] != 1 || b[15] != 0x80 {
		t.Errorf("%x", b)
	}
}

// TestCommittedReply compares with the reply that the reference caches for the first Register.
func TestCommittedReply(t *testing.T) {
	var prepare, want []byte
	for _, g := range readGolden(t, "replica-wire.json") {
		switch g.Name {
		case "frame/prepare-register-op1":
			prepare = g.bytes(t)
		case "frame/reply-register-cached":
			want = g.bytes(t)
		}
	}
	var p wire.PrepareHeader
	if err := p.Decode(prepare); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, wire.HeaderSize)
	reply := wire.CommittedReply(&p, 0)
	reply.Put(got)
	if !bytes.Equal(got, want) {
		t.Errorf("%x\nwant %x", got, want)
	}
}

// TestHeadersDoNotAllocate: decoding, identity and encoding happen once per op on the hot path.
func TestHeadersDoNotAllocate(t *testing.T) {
	h := chain(1, 1)[0]
	b := make([]byte, wire.HeaderSize)
	request := wire.RequestHeader{Operation: wire.OpSendMessages}
	if n := testing.AllocsPerRun(100, func() {
		h.Checksum = h.Identity()
		h.Put(b)
		var got wire.PrepareHeader
		if got.Decode(b) != nil || got.Verify() != nil {
			t.Fatal("decode")
		}
		request.Put(b)
		if request.Decode(b) != nil {
			t.Fatal("request")
		}
		reply := wire.CommittedReply(&got, 10)
		reply.Put(b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPrepareIdentity(b *testing.B) {
	h := chain(1, 1)[0]
	b.ReportAllocs()
	for b.Loop() {
		h.Checksum = h.Identity()
	}
}
