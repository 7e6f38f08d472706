package partitionreplica

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Image implements loop.Machine. Layout: length u32 and bytes of the segment state, then the
// offset table.
func (p *Partition) Image() loop.Image {
	p.Settle() // the image covers every applied op
	cp := p.log.Checkpoint()
	offsets := p.offsets.appendTo(nil)
	return loop.Image{Run: cp.Run, Encode: func(dst []byte) []byte {
		at := len(dst)
		dst = cp.State.Append(append(dst, 0, 0, 0, 0))
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		return append(dst, offsets...)
	}, Done: func(err error) {
		p.runRemoval(p.log.Checkpointed(cp, err))
		p.replica.fileFailed(p, err)
	}}
}

var errShortImage = errors.New("partition: checkpoint image is cut short")

func decodeImage(b []byte) (segment.State, *offsets, error) {
	if len(b) == 0 {
		return segment.State{}, newOffsets(), nil
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return segment.State{}, nil, errShortImage
	}
	n := int(binary.LittleEndian.Uint32(b)) + 4
	st, err := segment.DecodeState(b[4:n])
	if err != nil {
		return segment.State{}, nil, err
	}
	o, _, err := decodeOffsets(b[n:])
	if err != nil {
		return segment.State{}, nil, err
	}
	o.generation = st.Generation
	return st, o, nil
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
