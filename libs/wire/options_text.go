package wire

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Unlimited is the largest u64: a message expiry of never, a topic size without limit.
const Unlimited uint64 = math.MaxUint64

// maxTextDuration bounds durations given as text: 2^32-1 seconds.
const maxTextDuration uint64 = math.MaxUint32 * 1_000_000

// durationUnits gives the length of each unit in nanoseconds. A month is 30.44 days, a year 365.25.
var durationUnits = []struct {
	names string
	nanos uint64
}{
	{" nanos nsec ns ", 1},
	{" micros usec us µs ", 1000},
	{" millis msec ms ", 1_000_000},
	{" seconds second secs sec s ", 1_000_000_000},
	{" minutes minute mins min m ", 60_000_000_000},
	{" hours hour hrs hr h ", 3600_000_000_000},
	{" days day d ", 86400_000_000_000},
	{" weeks week wks wk w ", 7 * 86400_000_000_000},
	{" months month M ", 2_630_016_000_000_000},
	{" years year yrs yr y ", 31_557_600_000_000_000},
}

// ParseDuration reads a duration such as "1h 30m" or "7 days": whole numbers, each with its unit.
// It returns microseconds and whether text was one, at most 2^32-1 seconds.
func ParseDuration(text string) (micros uint64, ok bool) {
	rest := strings.TrimSpace(text)
	if rest == "" || rest == "0" {
		return 0, rest == "0"
	}
	var total uint64
	for rest != "" {
		var number, unit string
		number, rest = leading(rest, isDigit)
		unit, rest = leading(strings.TrimLeft(rest, " "), func(c byte) bool { return !isDigit(c) && c != ' ' })
		rest = strings.TrimLeft(rest, " ")
		nanos := unitNanos(unit)
		n, err := strconv.ParseUint(number, 10, 64)
		high, part := bits.Mul64(n, nanos)
		sum, carry := bits.Add64(total, part, 0)
		if err != nil || nanos == 0 || high != 0 || carry != 0 {
			return 0, false
		}
		total = sum
	}
	micros = total / 1000
	return micros, micros <= maxTextDuration
}

func unitNanos(unit string) uint64 {
	for _, u := range durationUnits {
		if unit != "" && strings.Contains(u.names, " "+unit+" ") {
			return u.nanos
		}
	}
	return 0
}

// leading cuts text behind the longest front whose bytes all satisfy accept.
func leading(text string, accept func(byte) bool) (front, rest string) {
	n := 0
	for n < len(text) && accept(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// sizeUnits are the units of a size, largest first.
var sizeUnits = []struct {
	name  string
	bytes uint64
}{
	{"EiB", 1 << 60}, {"EB", 1e18}, {"PiB", 1 << 50}, {"PB", 1e15}, {"TiB", 1 << 40}, {"TB", 1e12},
	{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
}

// ParseSize reads a size in bytes such as "5 GiB", "1.5 KB" or "4096". Decimal units count in
// thousands, binary ones in 1024; the case of a unit's first letters is free, its B is upper case
// (a lower-case b would mean bits).
func ParseSize(text string) (bytes uint64, ok bool) {
	text = strings.TrimSpace(text)
	number, unit := leading(text, func(c byte) bool { return isDigit(c) || c == '.' })
	scale := uint64(1)
	if unit = strings.TrimLeft(unit, " "); unit != "" {
		if scale = unitBytes(unit); scale == 0 {
			return 0, false
		}
	}
	whole, fraction, point := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 64)
	high, bytes := bits.Mul64(n, scale)
	if err != nil || high != 0 || point && fraction == "" {
		return 0, false
	}
	part, ok := fractionOf(fraction, scale)
	bytes, carry := bits.Add64(bytes, part, 0)
	return bytes, ok && carry == 0
}

// fractionOf is 0.digits of scale, rounded down.
func fractionOf(digits string, scale uint64) (uint64, bool) {
	if digits == "" {
		return 0, true
	}
	if len(digits) > 18 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, false
	}
	power := uint64(1)
	for range digits {
		power *= 10
	}
	high, low := bits.Mul64(n, scale)
	quotient, _ := bits.Div64(high, low, power)
	return quotient, true
}

func unitBytes(unit string) uint64 {
	last := len(unit) - 1
	if unit[last] != 'B' {
		return 0
	}
	for _, u := range sizeUnits {
		if strings.EqualFold(u.name, unit) {
			return u.bytes
		}
	}
	return 0
}

// FormatSize is the text of a size in replies over HTTP: the largest unit, decimal and binary taken
// in turn, that is not above the size and shows it exactly with at most three decimals.
func FormatSize(bytes uint64) string {
	for _, u := range sizeUnits {
		if bytes < u.bytes || u.bytes == 1 {
			continue
		}
		high, low := bits.Mul64(bytes%u.bytes, 1000)
		thousandths, inexact := bits.Div64(high, low, u.bytes)
		if inexact != 0 {
			continue
		}
		text := strconv.FormatUint(bytes/u.bytes, 10)
		if thousandths != 0 {
			text += "." + strings.TrimRight(strconv.FormatUint(1000+thousandths, 10)[1:], "0")
		}
		return text + " " + u.name
	}
	return strconv.FormatUint(bytes, 10) + " B"
}

// OptionText is the text of an option's value, as HTTP and people see it: numbers in decimal,
// booleans as true or false, strings as they are.
func OptionText(kind ValueKind, value []byte) string {
	switch {
	case kind == KindBool && len(value) == 1:
		return strconv.FormatBool(value[0] != 0)
	case kind == KindUint8 && len(value) == 1:
		return strconv.FormatUint(uint64(value[0]), 10)
	case kind == KindUint32 && len(value) == 4:
		return strconv.FormatUint(uint64(le.Uint32(value)), 10)
	case kind == KindUint64 && len(value) == 8:
		return strconv.FormatUint(le.Uint64(value), 10)
	}
	return string(value)
}
