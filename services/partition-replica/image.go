package partitionreplica

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Image implements loop.Machine. Layout: length u32 and bytes of the segment state, the offset table, and,
// unless nothing follows and it is 0, the number of the partition's directory u32 (see homeDir), its highest bit set
// when the members of the successor {count u8, node u8 each} of a sealed group follow, then the recent writes.
func (p *Partition) Image() loop.Image {
	p.Settle() // the image covers every applied op
	cp := p.log.Checkpoint()
	offsets, home, heirs, recent := p.offsets.appendTo(nil), p.home, p.heirs, p.remembered()
	return loop.Image{Run: cp.Run, Encode: func(dst []byte) []byte {
		return encodeImage(dst, &cp.State, offsets, home, heirs, recent)
	}, Done: func(err error) {
		p.runRemoval(p.log.Checkpointed(cp, err))
		p.replica.fileFailed(p, err)
		if err == nil {
			p.forgetFormer()
		}
	}}
}

// homeHeirs says that a directory's number is followed by heirs.
const homeHeirs = 1 << 31

func encodeImage(dst []byte, st *segment.State, offsets []byte, home uint32, heirs, recent []byte) []byte {
	if len(heirs) > 0 {
		home |= homeHeirs
	}
	at := len(dst)
	dst = st.Append(append(dst, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	if dst = append(dst, offsets...); home > 0 || len(recent) > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, home)
	}
	if len(heirs) > 0 {
		dst = append(append(dst, byte(len(heirs))), heirs...)
	}
	return append(dst, recent...)
}

var errShortImage = errors.New("partition: checkpoint image is cut short")

// image is what a checkpoint keeps of a partition.
type image struct {
	segments segment.State
	offsets  *offsets
	home     uint32
	heirs    []byte
	recent   recent
}

func decodeImage(b []byte) (m image, err error) {
	if len(b) == 0 {
		return image{offsets: &offsets{}}, nil
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return image{}, errShortImage
	}
	n := int(binary.LittleEndian.Uint32(b)) + 4
	if m.segments, err = segment.DecodeState(b[4:n]); err != nil {
		return image{}, err
	}
	if m.offsets, b, err = decodeOffsets(b[n:]); err != nil {
		return image{}, err
	}
	if len(b) >= 4 {
		m.home, b = binary.LittleEndian.Uint32(b), b[4:]
	}
	if m.home&homeHeirs != 0 {
		if m.home &^= homeHeirs; len(b) == 0 || len(b) < 1+int(b[0]) {
			return image{}, errShortImage
		}
		n := 1 + int(b[0])
		m.heirs, b = slices.Clone(b[1:n]), b[n:]
	}
	if err = m.recent.decode(b); err != nil {
		return image{}, err
	}
	m.offsets.generation = m.segments.Generation
	return m, nil
}

// Replay implements loop.Machine.
func (p *Partition) Replay(h *wire.PrepareHeader, body []byte, at journal.Location, verify bool) error {
	if h.Operation != wire.OpSendMessages {
		p.noteOwn(h, body)
		return nil
	}
	if p.resetting != 0 {
		return errBeforePurge
	}
	base := p.log.Next()
	if at.Len > 0 {
		if err := p.log.Restore(segment.Location(at), h.Op, verify); err != nil {
			return err
		}
		p.engine.Owe(p.log.Last())
		p.remember(h, base)
		return nil
	}
	var hdr wire.BatchHeader
	if err := hdr.Decode(body); err != nil {
		return err
	}
	if hdr.BaseOffset != base {
		return errOffsetGap
	}
	p.place(h, body, base)
	return nil
}

var errBeforePurge = errors.New("partition: a batch follows a purge that is not committed")

var errOffsetGap = errors.New("partition: batch does not start at the next offset")

// Ready implements loop.Machine.
func (p *Partition) Ready() error {
	err := p.log.Settle()
	p.offsets.clamp(p.log.Next())
	p.purged = max(p.purged, p.log.Generation())
	p.Settle()
	if d := p.fence.Load(); d != nil {
		return d
	}
	return err
}
