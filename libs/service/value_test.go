package service

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "1 m": time.Minute, "7 days": 168 * time.Hour, "1h 30m": 90 * time.Minute,
		"0": 0, "unlimited": 0, "Disabled": 0, "none": 0, "1.5s": 1500 * time.Millisecond, "2 hours 3 sec": 2*time.Hour + 3*time.Second,
		"1M": 2630016 * time.Second, "1us": time.Microsecond, "1µs": time.Microsecond,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "30", "-1s", "1 fortnight", "s", "1s x", "900000000000 years", "1..2s"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"64 MiB": 64 << 20, "3 KiB": 3072, "3 KB": 3000, "2 TiB": 2 << 40, "2 TB": 2e12, "2 MB": 2_000_000, "1200 B": 1200, "4GiB": 4 << 30, "512": 512, "1k": 1000, "1.5 GB": 1_500_000_000,
		"0": 0, "unlimited": 0, "none": 0, "1_000": 1000, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, int64(got), err, int64(want))
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1 XB", "9223372036854775808", "99999999 TiB", "1.2.3 MB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, int64(got))
		}
	}
}

// What is written into current_config.toml must read back as the same value.
func TestValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "duration"))
		if got, err := ParseDuration(formatDuration(d)); err != nil || got != d {
			t.Fatalf("%q read back as %v, %v", formatDuration(d), got, err)
		}
		n := Size(rapid.Int64Range(0, 1<<62).Draw(t, "size"))
		if got, err := ParseSize(n.String()); err != nil || got != n {
			t.Fatalf("%q read back as %d, %v", n, int64(got), err)
		}
	})
}
