package wire

import (
	"strconv"
	"strings"
)

// SDK is what a client said about itself at login, as far as a decision depends on it. The zero
// value is a client of the snapshot or one that cannot be told apart (released-clients §3.1).
type SDK struct {
	NumbersWrites bool       // partition writes carry request numbers of their own
	Generation    Generation // which topic options it knows
	Routes        bool       // it may send route queries and attach data connections
}

// IdentifySDK judges the name and version of a login prefix. Only the name rust-sdk with a version
// of 0.11.0-edge.7 or later tells the newer steps apart.
func IdentifySDK(name, version []byte) SDK {
	if string(name) != "rust-sdk" {
		return SDK{}
	}
	v, ok := parseSemver(string(version))
	if !ok {
		return SDK{}
	}
	at := func(text string) bool {
		step, _ := parseSemver(text)
		return !v.less(step)
	}
	sdk := SDK{NumbersWrites: at("0.11.0-edge.7"), Routes: at("0.11.0")}
	if at("0.11.0-edge.8") {
		sdk.Generation = GenerationReleased
	}
	return sdk
}

// semver is a version in the order of semver.org: a pre-release stands below its release.
type semver struct {
	core       [3]uint64
	prerelease string
}

func parseSemver(text string) (v semver, ok bool) {
	text, _, _ = strings.Cut(text, "+")
	core, prerelease, hasPrerelease := strings.Cut(text, "-")
	parts := strings.Split(core, ".")
	if len(parts) != len(v.core) || hasPrerelease && prerelease == "" {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return v, false
		}
		v.core[i] = n
	}
	v.prerelease = prerelease
	return v, true
}

func (v semver) less(w semver) bool {
	for i := range v.core {
		if v.core[i] != w.core[i] {
			return v.core[i] < w.core[i]
		}
	}
	if v.prerelease == "" || w.prerelease == "" {
		return v.prerelease != "" && w.prerelease == ""
	}
	return prereleaseLess(strings.Split(v.prerelease, "."), strings.Split(w.prerelease, "."))
}

// prereleaseLess compares part by part: numbers by value and below words, words by bytes, and a
// shorter list that is the front of a longer one below it.
func prereleaseLess(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		m, aErr := strconv.ParseUint(a[i], 10, 64)
		n, bErr := strconv.ParseUint(b[i], 10, 64)
		switch {
		case aErr == nil && bErr == nil:
			return m < n
		case aErr == nil || bErr == nil:
			return aErr == nil
		}
		return a[i] < b[i]
	}
	return len(a) < len(b)
}
