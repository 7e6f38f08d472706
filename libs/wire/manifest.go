package wire

import "errors"

// Errors of the state transfer's own formats.
var (
	ErrMagic   = errors.New("wire: wrong magic")
	ErrTrailer = errors.New("wire: trailing hash does not match")
	ErrCount   = errors.New("wire: count out of range for the bytes")
	ErrKind    = errors.New("wire: unknown artifact kind")
	ErrOrder   = errors.New("wire: entries out of order or repeated")
)

// ArtifactKind says what an artifact of a state transfer holds.
type ArtifactKind uint8

// Artifact kinds, replica-wire.md §9.1. Frontiers: op of the snapshot, last op in the table, base
// offset of the segment, commit op.
const (
	ArtifactMetadataSnapshot ArtifactKind = 0
	ArtifactClientTable      ArtifactKind = 1
	ArtifactSegmentLog       ArtifactKind = 2
	ArtifactConsumerOffsets  ArtifactKind = 3
)

// Artifact is one entry of a manifest.
type Artifact struct {
	Kind     ArtifactKind
	Frontier uint64
	Len      uint64 // bytes
	Checksum uint64 // Hash64 of the artifact
}

// Manifest limits.
const (
	MaxArtifacts  = 65536
	artifactSize  = 25
	trailerSize   = 8
	manifestMagic = "ISM1"
)

// AppendManifest writes the manifest of list behind dst.
// Layout: "ISM1" · count:u32 · entry_len:u8 · {kind:u8 · frontier:u64 · len:u64 · checksum:u64} each ·
// Hash64 of everything before:u64.
func AppendManifest(dst []byte, list []Artifact) []byte {
	start := len(dst)
	dst = append(appendU32(append(dst, manifestMagic...), uint32(len(list))), artifactSize)
	for _, a := range list {
		dst = appendU64(appendU64(appendU64(append(dst, byte(a.Kind)), a.Frontier), a.Len), a.Checksum)
	}
	return appendTrailer(dst, start)
}

// appendTrailer hashes dst[start:] and writes the hash behind it.
func appendTrailer(dst []byte, start int) []byte {
	return appendU64(dst, Hash64(dst[start:]))
}

// openTrailer checks magic and trailing hash and returns a reader of what is between them.
func openTrailer(b []byte, magic string) (reader, error) {
	if len(b) < len(magic)+trailerSize {
		return reader{}, ErrShort
	}
	if string(b[:len(magic)]) != magic {
		return reader{}, ErrMagic
	}
	content := b[:len(b)-trailerSize]
	if Hash64(content) != le.Uint64(b[len(content):]) {
		return reader{}, ErrTrailer
	}
	return reader{rest: content[len(magic):]}, nil
}

// DecodeManifest decodes b, which it must fill. Entries longer than the known fields are read for
// those.
func DecodeManifest(b []byte) ([]Artifact, error) {
	r, err := openTrailer(b, manifestMagic)
	if err != nil {
		return nil, err
	}
	count, size := r.u32(), int(r.u8())
	if r.bad || size < artifactSize || count > MaxArtifacts || uint64(count)*uint64(size) != uint64(len(r.rest)) {
		return nil, ErrCount
	}
	list := make([]Artifact, count)
	for i := range list {
		e := reader{rest: r.take(size)}
		list[i] = Artifact{ArtifactKind(e.u8()), e.u64(), e.u64(), e.u64()}
		if list[i].Kind > ArtifactConsumerOffsets {
			return nil, ErrKind
		}
	}
	return list, nil
}
