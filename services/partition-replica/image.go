package partitionreplica

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Image implements loop.Machine. Layout: length u32 and bytes of the segment state, the offset table, and,
// unless it is 0, the number of the partition's directory u32.
func (p *Partition) Image() loop.Image {
	p.Settle() // the image covers every applied op
	cp := p.log.Checkpoint()
	offsets, home := p.offsets.appendTo(nil), p.home
	return loop.Image{Run: cp.Run, Encode: func(dst []byte) []byte {
		return encodeImage(dst, &cp.State, offsets, home)
	}, Done: func(err error) {
		p.runRemoval(p.log.Checkpointed(cp, err))
		p.replica.fileFailed(p, err)
		if err == nil {
			p.forgetFormer()
		}
	}}
}

func encodeImage(dst []byte, st *segment.State, offsets []byte, home uint32) []byte {
	at := len(dst)
	dst = st.Append(append(dst, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	if dst = append(dst, offsets...); home > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, home)
	}
	return dst
}

var errShortImage = errors.New("partition: checkpoint image is cut short")

func decodeImage(b []byte) (st segment.State, o *offsets, home uint32, err error) {
	if len(b) == 0 {
		return segment.State{}, newOffsets(), 0, nil
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return segment.State{}, nil, 0, errShortImage
	}
	n := int(binary.LittleEndian.Uint32(b)) + 4
	if st, err = segment.DecodeState(b[4:n]); err != nil {
		return segment.State{}, nil, 0, err
	}
	o, rest, err := decodeOffsets(b[n:])
	if err != nil {
		return segment.State{}, nil, 0, err
	}
	if len(rest) >= 4 {
		home = binary.LittleEndian.Uint32(rest)
	}
	o.generation = st.Generation
	return st, o, home, nil
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
