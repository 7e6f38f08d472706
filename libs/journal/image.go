package journal

import (
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// A checkpoint file is
//
//	header   0 magic 8 · 8 version u32 · 12 loop u32 · 16 node 16 · 32 lsn u64 · 40 images u64 ·
//	         48 table position u64 · 56 table hash u64 · 64 file length u64 · 72 hash u64
//	images   each 0 magic u32 · 4 flags u32 · 8 group · 16 op · 24 commit · 32 state length · 40 state hash ·
//	         48 head 256 · 304 hash u64, then the state, padded to 8; with imageAdopted the payload of
//	         an adopt record stands in front of the state, and length and hash count it in
//	table    per image: group u64 · position u64
//	trailer  the header again
//
// The table names the group of a damaged image, and images are found without the table.
const (
	checkpointMagic  = "WHIPCKP\x01"
	checkpointHeader = 80
	imageMagic       = 0x474d4957 // "WIMG"
	imageHeader      = 312
	tableEntry       = 16

	imageFenced, imageSettled, imageAdopted = 1, 2, 4
)

type checkpointHead struct {
	at     LSN
	count  uint64
	table  int64
	hash   uint64
	length int64
}

func (h *checkpointHead) put(b []byte, o Owner) {
	b = b[:checkpointHeader]
	copy(b, checkpointMagic)
	le.PutUint32(b[8:], formatVersion)
	o.put(b[12:])
	le.PutUint64(b[32:], uint64(h.at))
	le.PutUint64(b[40:], h.count)
	le.PutUint64(b[48:], uint64(h.table))
	le.PutUint64(b[56:], h.hash)
	le.PutUint64(b[64:], uint64(h.length))
	le.PutUint64(b[72:], wire.Hash64(b[:72]))
}

func (h *checkpointHead) decode(b []byte, o Owner) (reason string, foreign bool) {
	switch {
	case len(b) < checkpointHeader:
		return "file is shorter than its header", false
	case le.Uint64(b[72:]) != wire.Hash64(b[:72]) || string(b[:8]) != checkpointMagic:
		return "file header is damaged", false
	case le.Uint32(b[8:]) != formatVersion:
		return fmt.Sprintf("format version %d is unknown", le.Uint32(b[8:])), true
	case !o.owns(b[12:]):
		return "file belongs to another node or loop", true
	}
	*h = checkpointHead{
		at: LSN(le.Uint64(b[32:])), count: le.Uint64(b[40:]), table: int64(le.Uint64(b[48:])),
		hash: le.Uint64(b[56:]), length: int64(le.Uint64(b[64:])),
	}
	return "", false
}

func (m *Image) adopts() bool { return m.AdoptView != 0 || len(m.Adopted) > 0 }

// stored is what stands behind the image's header.
func (m *Image) stored() []byte {
	if !m.adopts() {
		return m.State
	}
	return append(appendAdopted(nil, m.AdoptView, m.Adopted), m.State...)
}

// putHeader writes the image's header, with stored behind it, to the first 312 bytes of b.
func (m *Image) putHeader(b, stored []byte) {
	b = b[:imageHeader]
	var flags uint32
	if m.Fenced {
		flags |= imageFenced
	}
	if m.Settled {
		flags |= imageSettled
	}
	if m.adopts() {
		flags |= imageAdopted
	}
	le.PutUint32(b, imageMagic)
	le.PutUint32(b[4:], flags)
	le.PutUint64(b[8:], m.Group)
	le.PutUint64(b[16:], m.Op)
	le.PutUint64(b[24:], m.Commit)
	le.PutUint64(b[32:], uint64(len(stored)))
	le.PutUint64(b[40:], wire.Hash64(stored))
	copy(b[48:304], m.Head[:])
	le.PutUint64(b[304:], wire.Hash64(b[:304]))
}

// decode reads the image at the start of b; State aliases b. known says that the header, and so the
// group and the size, is good; whole that the state is too.
func (m *Image) decode(b []byte) (size int64, known, whole bool) {
	if len(b) < imageHeader || le.Uint32(b) != imageMagic || le.Uint64(b[304:]) != wire.Hash64(b[:304]) {
		return 0, false, false
	}
	n := le.Uint64(b[32:])
	flags := le.Uint32(b[4:])
	*m = Image{
		Group: le.Uint64(b[8:]), Op: le.Uint64(b[16:]), Commit: le.Uint64(b[24:]),
		Fenced: flags&imageFenced != 0, Settled: flags&imageSettled != 0,
	}
	copy(m.Head[:], b[48:304])
	if n > uint64(len(b)-imageHeader) {
		return int64(len(b)), true, false
	}
	m.State = b[imageHeader : imageHeader+n : imageHeader+n]
	whole = wire.Hash64(m.State) == le.Uint64(b[40:])
	if whole && flags&imageAdopted != 0 {
		m.AdoptView, m.Adopted, m.State, whole = decodeAdopted(m.State, m.Group)
	}
	return imageHeader + int64(n+7)&^7, true, whole
}

// imageSet is what one checkpoint file yields.
type imageSet struct {
	name     string
	at       LSN
	complete bool // every image of the checkpoint is known by group
	images   []Image
	damaged  []uint64 // groups whose image is lost
	faults   []Damage
}

func (s *imageSet) fault(pos, size int64, reason string) {
	s.faults = append(s.faults, Damage{File: s.name, Pos: pos, Len: size, Reason: reason, Kept: s.name + damagedSuffix})
}

// decodeCheckpoint reads a whole checkpoint file. The position comes from the name: it is needed
// when both copies of the header are damaged.
func decodeCheckpoint(name string, at LSN, b []byte, o Owner) imageSet {
	s := imageSet{name: name, at: at}
	var h checkpointHead
	if reason, foreign := h.decode(b, o); reason != "" {
		s.fault(0, checkpointHeader, reason)
		if foreign {
			return s
		}
		if reason, _ := h.decode(b[max(0, len(b)-checkpointHeader):], o); reason != "" {
			s.search(b, checkpointHeader)
			return s
		}
	}
	if h.length != int64(len(b)) {
		s.fault(0, int64(len(b)), "file has the wrong length")
	}
	end := h.table + int64(h.count)*tableEntry
	if h.table < checkpointHeader || end < h.table || end > int64(len(b)) || wire.Hash64(b[h.table:end]) != h.hash {
		s.fault(h.table, int64(h.count)*tableEntry, "table of images is damaged")
		s.search(b, checkpointHeader)
		s.complete = uint64(len(s.images)+len(s.damaged)) == h.count
		return s
	}
	s.complete = true
	for t := b[h.table:end]; len(t) > 0; t = t[tableEntry:] {
		s.image(b, le.Uint64(t), int64(le.Uint64(t[8:])))
	}
	return s
}

// image reads the image of a group at a position the table names.
func (s *imageSet) image(b []byte, group uint64, pos int64) {
	if pos >= checkpointHeader && pos < int64(len(b)) {
		var m Image
		size, known, whole := m.decode(b[pos:])
		if whole && m.Group == group {
			s.images = append(s.images, m)
			return
		}
		if !known {
			size = imageHeader
		}
		s.fault(pos, size, fmt.Sprintf("image of group %d is damaged", group))
	} else {
		s.fault(pos, 0, fmt.Sprintf("image of group %d is not in the file", group))
	}
	s.damaged = append(s.damaged, group)
}

// search finds images without the table.
func (s *imageSet) search(b []byte, pos int64) {
	for pos+imageHeader <= int64(len(b)) {
		var m Image
		size, known, whole := m.decode(b[pos:])
		switch {
		case whole:
			s.images = append(s.images, m)
			pos += size
		case known:
			s.fault(pos, size, fmt.Sprintf("image of group %d is damaged", m.Group))
			s.damaged = append(s.damaged, m.Group)
			pos += 8
		default:
			pos += 8
		}
	}
}
