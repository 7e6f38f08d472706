package wire

import (
	"bytes"
	"testing"
)

// FuzzBodies gives bytes to one of the body decoders, which must refuse them or return something
// that encodes to bytes it decodes again.
func FuzzBodies(f *testing.F) {
	samples := bodySamples(f)
	for i, s := range samples {
		f.Add(uint8(i), s.bytes)
	}
	f.Fuzz(func(t *testing.T, decoder uint8, b []byte) {
		s := samples[int(decoder)%len(samples)]
		given := bytes.Clone(b)
		again, err := s.decode(b)
		if !bytes.Equal(b, given) {
			t.Fatalf("%s changed its input", s.name)
		}
		checkStable(t, s, again, err)
	})
}

// FuzzBatch verifies bytes as a batch. What verifies can be stamped, walked and sliced; what does
// not, walked.
func FuzzBatch(f *testing.F) {
	for _, v := range loadClientVectors(f) {
		if v.Area == "batch" || v.Area == "batch_invalid" {
			f.Add(v.bytes, uint32(1), uint32(1))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, first, count uint32) {
		walked := uint32(len(collectMessages(b)))
		_, _ = CountMessages(b) // must only not panic
		if VerifyBatch(b) != nil {
			return
		}
		b = bytes.Clone(b)
		StampBatch(b, 3, 4, 5)
		h, batch, rest, err := NextBatch(b)
		if err != nil || VerifyBatch(batch) != nil || len(rest) != 0 || h.MessageCount != walked {
			t.Fatalf("%+v, %v, %d messages walked", h, err, walked)
		}
		first %= walked
		count = 1 + count%(walked-first)
		slice := SliceBatch(nil, b, first, count)
		if err := VerifyBatch(slice); err != nil || uint32(len(collectMessages(slice))) != count {
			t.Fatalf("slice from %d of %d: %v", first, count, err)
		}
		if !bytes.Equal(CutBatch(b, first, count), slice) {
			t.Fatal("cut and slice differ")
		}
	})
}

// FuzzTopicOptions parses an options block. What is accepted has a canonical block that means the
// same.
func FuzzTopicOptions(f *testing.F) {
	for _, v := range loadClientVectors(f) {
		if v.Area == "options" {
			f.Add(v.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		block, err := DecodeOptions(b)
		if err != nil {
			return
		}
		o, err := ParseTopicOptions(block)
		if err != nil {
			return
		}
		canonical := Options(o.AppendExplicit(nil))
		again, err := ParseTopicOptions(canonical)
		again.sent = o.sent
		if err != nil || again != o {
			t.Fatalf("%q means %+v, its canonical form %q %+v, %v", b, o, canonical, again, err)
		}
		if _, err := DecodeOptions(canonical); err != nil {
			t.Fatalf("canonical form %q: %v", canonical, err)
		}
	})
}

// FuzzOptionTexts reads text as a duration and as a size; neither may panic.
func FuzzOptionTexts(f *testing.F) {
	for _, text := range []string{"1h 30m", "5 GiB", "1.5 KB", "18446744073709551615", "7 days"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if micros, ok := ParseDuration(text); ok && micros > maxTextDuration {
			t.Fatalf("%q is %d", text, micros)
		}
		if bytes, ok := ParseSize(text); ok {
			if again, ok := ParseSize(FormatSize(bytes)); !ok || again != bytes {
				t.Fatalf("%q is %d, its text %q is not", text, bytes, FormatSize(bytes))
			}
		}
	})
}

// FuzzSDK reads the name and version of a login prefix.
func FuzzSDK(f *testing.F) {
	f.Add("rust-sdk", "0.11.0-edge.7")
	f.Add("rust-sdk", "0.11.0")
	f.Fuzz(func(t *testing.T, name, version string) {
		sdk := IdentifySDK([]byte(name), []byte(version))
		if sdk.Routes && sdk.Generation != GenerationReleased || sdk.Generation == GenerationReleased && !sdk.NumbersWrites {
			t.Fatalf("%s %s: %+v", name, version, sdk)
		}
	})
}
