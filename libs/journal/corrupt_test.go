package journal

import "fmt"

// corruptions are the ways a file of size bytes is damaged: a flipped bit, a zeroed range and a cut,
// each at places step bytes apart.
func corruptions(size, step int) map[string]func([]byte) []byte {
	m := map[string]func([]byte) []byte{}
	for at := 0; at < size; at += step {
		m[fmt.Sprintf("flip at %d", at)] = func(b []byte) []byte {
			b[at] ^= 1 << (at % 8)
			return b
		}
		for _, n := range []int{64, 4096} {
			m[fmt.Sprintf("zero %d at %d", n, at)] = func(b []byte) []byte {
				clear(b[at:min(at+n, len(b))])
				return b
			}
		}
		m[fmt.Sprintf("cut at %d", at)] = func(b []byte) []byte { return b[:at] }
	}
	return m
}
