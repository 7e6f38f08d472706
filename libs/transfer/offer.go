package transfer

import (
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Bounds of a transfer.
const (
	chunkSize  = 256 << 10 // bytes of a piece asked for
	maxChunk   = 4 << 20   // bytes of a piece served
	window     = 8         // pieces asked for ahead
	maxState   = 1 << 30   // bytes of an image
	hashBuffer = 1 << 20
)

// Offer is the state of a group after the prepare Head.
type Offer struct {
	Head  wire.PrepareHeader
	State []byte // the machine's image
	Files []File // what the image counts
}

// File is an immutable prefix of a file. A file that went away fails its reads; nothing holds it open for an offer.
type File struct {
	Base uint64 // its name: the base offset of a segment
	Len  int64  // bytes
	Hash uint64 // XXH3 of them, 0 when it is not known
	io.ReaderAt
}

// artifacts are the pieces of an offer as the manifest lists them.
type artifacts struct {
	list  []wire.Artifact
	image []byte // the head's header, then the state
	files []File
}

// artifacts hashes once what has no hash yet.
func (o *Offer) artifacts() (*artifacts, error) {
	image := make([]byte, wire.HeaderSize, wire.HeaderSize+len(o.State))
	o.Head.Put(image)
	image = append(image, o.State...)
	kind := wire.ArtifactConsumerOffsets
	if o.Head.Group == wire.MetadataGroup {
		kind = wire.ArtifactMetadataSnapshot
	}
	a := &artifacts{image: image, files: o.Files, list: []wire.Artifact{
		{Kind: kind, Frontier: o.Head.Op, Len: uint64(len(image)), Checksum: wire.Hash64(image)},
	}}
	for _, f := range o.Files {
		hash, err := f.hash()
		if err != nil {
			return nil, fmt.Errorf("transfer: segment %d: %w", f.Base, err)
		}
		a.list = append(a.list, wire.Artifact{Kind: wire.ArtifactSegmentLog, Frontier: f.Base, Len: uint64(f.Len), Checksum: hash})
	}
	return a, nil
}

func (f *File) hash() (uint64, error) {
	if f.Hash != 0 {
		return f.Hash, nil
	}
	h := xxh3.New()
	n, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, f.Len), make([]byte, hashBuffer))
	if err == nil && n < f.Len {
		err = io.ErrUnexpectedEOF
	}
	return h.Sum64(), err
}

// read returns up to n bytes of an artifact.
func (a *artifacts) read(index uint32, offset uint64, n uint32) ([]byte, error) {
	if index >= uint32(len(a.list)) || offset >= a.list[index].Len {
		return nil, fmt.Errorf("transfer: artifact %d at %d is not offered", index, offset)
	}
	size := min(uint64(n), maxChunk, a.list[index].Len-offset)
	if index == 0 {
		return a.image[offset : offset+size], nil
	}
	b := make([]byte, size)
	if _, err := a.files[index-1].ReadAt(b, int64(offset)); err != nil {
		return nil, fmt.Errorf("transfer: segment %d: %w", a.files[index-1].Base, err)
	}
	return b, nil
}
