package wire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOptionsLimits(t *testing.T) {
	numbered := func(n int) (block Options) {
		for i := range n {
			block = AppendOption(block, fmt.Sprintf("key-%d", i), KindUint8, []byte{1})
		}
		return block
	}
	for _, n := range []int{0, 1, 16, 17, MaxOptions} {
		if _, err := DecodeOptions(numbered(n)); err != nil {
			t.Errorf("%d entries: %v", n, err)
		}
	}
	if _, err := DecodeOptions(numbered(MaxOptions + 1)); err != CodeInvalidCommand {
		t.Errorf("%d entries: %v", MaxOptions+1, err)
	}
	for _, n := range []int{2, 16, 17, 500} {
		twice := append(numbered(n), option("key-0", KindUint8, []byte{2})...)
		if _, err := DecodeOptions(twice); err != CodeInvalidCommand {
			t.Errorf("duplicate among %d entries: %v", n+1, err)
		}
	}
	var large Options
	for i := range MaxOptionsSize / 500 {
		large = AppendOption(large, fmt.Sprintf("%0245d", i), KindRaw, make([]byte, 245))
	}
	if _, err := DecodeOptions(large); err != nil || len(large) != MaxOptionsSize {
		t.Errorf("%d bytes: %v", len(large), err)
	}
	large = large[:len(large)-500]
	large = AppendOption(large, "x", KindRaw, make([]byte, 250))
	large = AppendOption(large, "y", KindRaw, make([]byte, 229))
	if _, err := DecodeOptions(large); err != CodeInvalidCommand || len(large) != MaxOptionsSize+1 {
		t.Errorf("%d bytes: %v", len(large), err)
	}
}

func drawOptions(t *rapid.T) (entries []Pair, block Options) {
	entries = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Pair {
		return Pair{
			KindString, []byte(rapid.StringN(1, 20, 60).Draw(t, "key")),
			ValueKind(rapid.IntRange(1, 255).Draw(t, "kind")), rapid.SliceOfN(rapid.Byte(), 1, 255).Draw(t, "value"),
		}
	}), 0, 40, func(p Pair) string { return string(p.Key) }).Draw(t, "entries")
	return entries, appendPairs(nil, entries)
}

// Blocks keep their entries, and sorting and merging keep them in the order of their keys.
func TestOptionsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, block := drawOptions(t)
		decoded, err := DecodeOptions(block)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(decoded.All()); len(got) != len(entries) {
			t.Fatalf("%d entries of %d", len(got), len(entries))
		}
		sorted := Options(decoded.AppendSorted(nil))
		if _, err := DecodeOptions(sorted); err != nil || len(sorted) != len(block) {
			t.Fatalf("sorted %x, %v", sorted, err)
		}
		inOrder := slices.IsSortedFunc(slices.Collect(sorted.All()), byKey)
		for _, e := range entries {
			got, ok := sorted.Get(string(e.Key))
			if !ok || got.ValueKind != e.ValueKind || !bytes.Equal(got.Value, e.Value) || !inOrder {
				t.Fatalf("entry %q: %+v, in order %v", e.Key, got, inOrder)
			}
		}
		if again := MergeOptions(nil, sorted, nil); !bytes.Equal(again, sorted) {
			t.Fatalf("merged with nothing %x", again)
		}
		if again := MergeOptions(nil, block, sorted); !bytes.Equal(again, sorted) {
			t.Fatalf("merged with itself %x", again)
		}
	})
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1s": 1e6, "1 s": 1e6, "5 seconds": 5e6, "1h 30m": 5400e6, "1h30m": 5400e6, "7 days": 604800e6, "1 h": 3600e6,
		"2 weeks": 1209600e6, "1M": 2630016e6, "1 year": 31557600e6, "1500us": 1500, "1ms 1us": 1001, "1000ns": 1,
		" 1min ": 60e6, "4294967295s": 4294967295e6,
	} {
		if got, ok := ParseDuration(text); !ok || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", "soon", "5", "s", "1x", "1 H", "-1s", "1.5h", "1s 5", "99999999999999999999s", "18446744073709551615y", "4294967296s", "1h-1m",
	} {
		if got, ok := ParseDuration(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// The table of transports-and-http §4.9, and back again.
func TestSizeText(t *testing.T) {
	for bytes, want := range map[uint64]string{
		0: "0 B", 999: "999 B", 1000: "1 KB", 1024: "1 KiB", 1500: "1.5 KB", 1536: "1.5 KiB", 1073741824: "1 GiB", 10240: "10 KiB",
		1234567: "1234.567 KB", 1250000: "1.25 MB", 2000000: "2 MB", 3211776: "3136.5 KiB", 123456789: "123456.789 KB", 1001: "1.001 KB",
	} {
		if got := FormatSize(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
	for text, want := range map[string]uint64{
		"5 GiB": 5 << 30, "1MiB": 1 << 20, "4 KB": 4000, "16777216": 16777216, "64 KiB": 65536, "2 GB": 2e9, "1.5 KiB": 1536,
		"7 B": 7, "0": 0, "1 gB": 1e9, "0.5 B": 0, "15 EiB": 15 << 60,
	} {
		if got, ok := ParseSize(text); !ok || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "big", "GiB", "5 X", "1 Gb", "-1 B", "1..5 KB", "1. KB", ".5 KB", "16 EiB", "18446744073709551616", "1 KB 2", "1.0000000000000000000 B",
	} {
		if got, ok := ParseSize(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Uint64().Draw(t, "bytes")
		if got, ok := ParseSize(FormatSize(bytes)); !ok || got != bytes {
			t.Fatalf("%d is %q, read as %d, %v", bytes, FormatSize(bytes), got, ok)
		}
	})
}

func TestOptionText(t *testing.T) {
	for want, p := range map[string]Pair{
		"true":                 {ValueKind: KindBool, Value: []byte{1}},
		"false":                {ValueKind: KindBool, Value: []byte{0}},
		"1024":                 {ValueKind: KindUint32, Value: []byte{0, 4, 0, 0}},
		"18446744073709551615": {ValueKind: KindUint64, Value: bytes.Repeat([]byte{255}, 8)},
		"1 h":                  {ValueKind: KindString, Value: []byte("1 h")},
		"2":                    {ValueKind: KindUint8, Value: []byte{2}},
	} {
		if got := OptionText(p.ValueKind, p.Value); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
