package wire_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// FuzzHeaders gives arbitrary bytes to the decoder of every command. What decodes must decode again to
// the same value after encoding.
func FuzzHeaders(f *testing.F) {
	for _, file := range []string{"observed-frames.json", "replica-wire.json"} {
		for _, g := range readGolden(f, file) {
			if b := g.bytes(f); len(b) >= wire.HeaderSize {
				f.Add(b[:wire.HeaderSize])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < wire.HeaderSize {
			b = append(b, make([]byte, wire.HeaderSize-len(b))...)
		}
		header := wire.Header(b)
		wire.GroupOf(&header)
		c := header.Command() % 30
		header[60] = byte(c)
		if c.Sealed() { // no fuzzer finds a hash
			wire.Seal(header[:])
		}
		make, ok := codecs[c]
		if !ok {
			return
		}
		first := make()
		if first.Decode(header[:]) != nil {
			return
		}
		var again [wire.HeaderSize]byte
		first.Put(again[:])
		second := make()
		if err := second.Decode(again[:]); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		var third [wire.HeaderSize]byte
		second.Put(third[:])
		if again != third {
			t.Fatalf("%v:\n%x\n%x", c, again, third)
		}
	})
}

// replicaBodies are the decoders of bodies and artifacts. Each returns the encoding of what it decoded.
var replicaBodies = []func([]byte) ([]byte, bool){
	func(b []byte) ([]byte, bool) {
		head := uint64(len(b) / wire.HeaderSize)
		v, err := wire.DecodeSuffix(nil, b, head, wire.SuffixChecksum(b))
		return wire.AppendSuffix(nil, v), err == nil
	},
	func(b []byte) ([]byte, bool) {
		v, err := wire.DecodeManifest(b)
		return wire.AppendManifest(nil, v), err == nil && (len(b) < 9 || b[8] == 25)
	},
	func(b []byte) ([]byte, bool) {
		v, err := wire.DecodeClientTable(b)
		return wire.AppendClientTable(nil, v), err == nil
	},
	func(b []byte) ([]byte, bool) {
		v, err := wire.DecodeConsumerOffsets(b)
		return v.Append(nil), err == nil
	},
	encodes(wire.DecodeLoggedCreateTopic), encodes(wire.DecodeLoggedCreatePartitions), encodes(wire.DecodeLoggedRemoveMember),
	encodes(wire.DecodeLoggedCompleteRevocation), encodes(wire.DecodeLoggedTruncatePartition), encodes(wire.DecodeLoggedCreateUser),
	encodes(wire.DecodeLoggedChangePassword), encodes(wire.DecodeLoggedCreateToken), encodes(wire.DecodeLoggedDeleteToken),
	encodes(wire.DecodeLoggedJoinGroup), encodes(wire.DecodeLoggedLeaveGroup), encodes(wire.DecodePartitionPurge),
	encodes(wire.DecodePartitionTrim),
}

func encodes[T interface{ Append([]byte) []byte }](decode func([]byte) (T, error)) func([]byte) ([]byte, bool) {
	return func(b []byte) ([]byte, bool) {
		v, err := decode(b)
		if err != nil {
			return nil, false
		}
		// Tolerated trailing bytes and spellings of a boolean make the encoding shorter or different
		// once; it must be stable from then on.
		first := v.Append(nil)
		again, err := decode(first)
		return first, err == nil && bytes.Equal(again.Append(nil), first)
	}
}

const strictBodies = 4 // the first ones of replicaBodies encode to exactly what they decoded

// FuzzReplicaBodies gives arbitrary bytes to a decoder of bodies that replicas exchange or log.
func FuzzReplicaBodies(f *testing.F) {
	for _, g := range readGolden(f, "replica-wire.json") {
		for which := range replicaBodies {
			f.Add(uint8(which), g.bytes(f))
		}
	}
	for _, g := range readGolden(f, "observed-artifacts.json") {
		f.Add(uint8(2), g.bytes(f))
		f.Add(uint8(3), g.bytes(f))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		which %= uint8(len(replicaBodies))
		encoded, ok := replicaBodies[which](b)
		if ok && which < strictBodies && !bytes.Equal(encoded, b) {
			t.Fatalf("decoder %d: %x encodes to %x", which, b, encoded)
		}
	})
}

// TestCountsDoNotAllocate gives decoders large counts without the bytes for them.
func TestCountsDoNotAllocate(t *testing.T) {
	huge := []byte{0xff, 0xff, 0, 0}
	inputs := [][]byte{
		trailer(append([]byte("ISM1"), append(huge, 25)...)),
		trailer(append([]byte("ICT2"), huge...)),
		trailer(append(append([]byte("ICO1\x01"), make([]byte, 16)...), append(huge, huge...)...)),
		append([]byte{15, 0, 0, 0, 1, 4, 0, 0, 0, 0, 2, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0}, 0xff, 0xff, 0xff, 0xff),
		append([]byte{1, 4, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0}, append(make([]byte, 16), 0xff, 0xff, 0xff, 0xff)...),
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, in := range inputs {
		for _, decode := range replicaBodies {
			if out, ok := decode(in); ok && len(out) > 2*len(in) {
				t.Errorf("%x became %d bytes", in, len(out))
			}
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("%d bytes allocated for %d short inputs", n, len(inputs))
	}
}

func trailer(b []byte) []byte {
	h := wire.Hash64(b)
	for i := range 8 {
		b = append(b, byte(h>>(8*i)))
	}
	return b
}
