package service

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written "64 MiB" (binary), "2 MB" (decimal) or as a bare number.
type Size int64

// String returns the shortest text that ParseSize reads back as the same number.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if n := Size(u.bytes); s != 0 && s%n == 0 {
			return fmt.Sprintf("%d %s", s/n, u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(s))
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6},
	{"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
}

// nothing holds the words that mean zero for durations and sizes.
var nothing = map[string]bool{"0": true, "unlimited": true, "disabled": true, "none": true}

// ParseSize reads a size: a number of zero or more, an optional space, an optional unit in any case
// (B, KB, KiB, ... TiB; K, M, G, T are decimal), or one of 0, unlimited, disabled, none.
func ParseSize(text string) (Size, error) {
	text = strings.TrimSpace(text)
	if nothing[strings.ToLower(text)] {
		return 0, nil
	}
	cut := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '_' })
	number, unit := text, "B"
	if cut >= 0 {
		number, unit = text[:cut], strings.TrimSpace(text[cut:])
	}
	scale, ok := unitBytes(unit)
	if !ok || number == "" {
		return 0, errors.New("not a size")
	}
	number = strings.ReplaceAll(number, "_", "")
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		if whole > math.MaxInt64/scale {
			return 0, errors.New("a size too large")
		}
		return Size(whole * scale), nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f*float64(scale) >= math.MaxInt64 {
		return 0, errors.New("not a size")
	}
	return Size(math.Round(f * float64(scale))), nil
}

func unitBytes(unit string) (int64, bool) {
	if len(unit) == 1 && !strings.EqualFold(unit, "b") {
		unit += "B"
	}
	for _, u := range sizeUnits {
		if strings.EqualFold(u.name, unit) {
			return u.bytes, true
		}
	}
	return 0, false
}

var durationUnits = map[string]time.Duration{
	"ns": 1, "nsec": 1, "us": time.Microsecond, "usec": time.Microsecond, "ms": time.Millisecond, "msec": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day, "w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	"M": month, "month": month, "months": month, "y": year, "year": year, "years": year,
}

const (
	day   = 24 * time.Hour
	month = 2630016 * time.Second  // 30.44 days
	year  = 31557600 * time.Second // 365.25 days
)

// ParseDuration reads a duration of zero or more: numbers with units, spaces between them as one
// likes ("500ms", "1 m", "1h 30m", "7 days"), or one of 0, unlimited, disabled, none.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimSpace(text)
	if nothing[strings.ToLower(rest)] {
		return 0, nil
	}
	if rest == "" {
		return 0, errors.New("not a duration")
	}
	var total time.Duration
	for rest != "" {
		number, after := cutWhile(rest, func(r rune) bool { return r >= '0' && r <= '9' || r == '.' })
		unit, tail := cutWhile(strings.TrimLeft(after, " "), func(r rune) bool { return r >= 'A' && r <= 'z' || r == 'µ' })
		scale, known := durationUnits[strings.Replace(unit, "µ", "u", 1)]
		n, err := strconv.ParseFloat(number, 64)
		if !known || err != nil {
			return 0, errors.New("not a duration")
		}
		if n*float64(scale)+float64(total) >= math.MaxInt64 {
			return 0, errors.New("a duration too long")
		}
		total += time.Duration(math.Round(n * float64(scale)))
		rest = strings.TrimLeft(tail, " ")
	}
	return total, nil
}

func cutWhile(text string, in func(rune) bool) (head, tail string) {
	if i := strings.IndexFunc(text, func(r rune) bool { return !in(r) }); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// formatDuration returns text that ParseDuration reads back as the same duration.
func formatDuration(d time.Duration) string {
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"day", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if d == 0 || d%u.unit != 0 {
			continue
		}
		n, name := d/u.unit, u.name
		if name == "day" && n != 1 {
			name = "days"
		}
		return fmt.Sprintf("%d %s", n, name)
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}
