package wire

import "github.com/OneOfOne/xxhash"

// NameHash is XXH32 with seed 0. It turns a consumer's name into its numeric id and a messages key
// into a partition index (client-wire §8, §14.2).
func NameHash(name []byte) uint32 { return xxhash.Checksum32(name) }
