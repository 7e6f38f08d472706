package wire

// Protocol versions as the version word packs them: major<<20 | minor<<10 | patch (client-wire §7.1).
const (
	ProtocolVersion    uint32 = 0<<20 | 11<<10 // 0.11.0, what this build speaks
	MinProtocolVersion uint32 = 0<<20 | 11<<10 // the oldest a client may present
)

// PackVersion is the version word of major.minor.patch, minor and patch below 1024.
func PackVersion(major, minor, patch uint32) uint32 { return major<<20 | minor<<10 | patch }

// UnpackVersion is the inverse of PackVersion.
func UnpackVersion(word uint32) (major, minor, patch uint32) {
	return word >> 20, word >> 10 & 0x3ff, word & 0x3ff
}

// AcceptsVersion reports whether a client that presents word may log in: not below the minimum, and
// not beyond our minor version. Patches never matter.
func AcceptsVersion(word uint32) bool {
	return word >= MinProtocolVersion && word>>10 <= ProtocolVersion>>10
}

// StatsVersion is the decimal form of a server version that the statistics carry: 0.9.0 is 9000.
func StatsVersion(major, minor, patch uint32) uint32 { return major*1_000_000 + minor*1000 + patch }
