package journal

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The payload of an adopt record, which also stands in front of the state of an image that has one, is
//
//	0 view u32 · 4 headers u32 · 8 headers, 256 bytes each, newest first
const adoptHeader = 8

// AdoptRecord returns the record by which a group takes on the log of a view: headers are what that
// log has above the group's head, newest first, at most wire.MaxSuffix; none is an answer too.
func AdoptRecord(group uint64, view uint32, headers []wire.PrepareHeader) Record {
	r := Record{Kind: KindAdopt, Group: group, Frame: appendAdopted(nil, view, headers)}
	if len(headers) > 0 {
		r.Op = headers[0].Op
	}
	return r
}

func appendAdopted(dst []byte, view uint32, headers []wire.PrepareHeader) []byte {
	dst = slices.Grow(dst, adoptHeader+len(headers)*wire.HeaderSize)
	dst = le.AppendUint32(dst, view)
	dst = le.AppendUint32(dst, uint32(len(headers)))
	return wire.AppendSuffix(dst, headers)
}

// decodeAdopted reads what appendAdopted wrote for the group and returns what stands behind it.
func decodeAdopted(b []byte, group uint64) (view uint32, headers []wire.PrepareHeader, rest []byte, ok bool) {
	if len(b) < adoptHeader {
		return 0, nil, b, false
	}
	n := int(le.Uint32(b[4:]))
	if n > wire.MaxSuffix || len(b) < adoptHeader+n*wire.HeaderSize {
		return 0, nil, b, false
	}
	if n > 0 {
		headers = make([]wire.PrepareHeader, n)
	}
	for i := range headers {
		h := &headers[i]
		if h.Decode(b[adoptHeader+i*wire.HeaderSize:]) != nil || h.Op+uint64(i) != headers[0].Op || h.Group != group && !h.Blank() {
			return 0, nil, b, false
		}
	}
	return le.Uint32(b), headers, b[adoptHeader+n*wire.HeaderSize:], true
}

// adopt takes an adopt record in place of the one before.
func (r *recovery) adopt(g *groupState, e *event) {
	if g.imaged(r, e.lsn) {
		return
	}
	view, headers, _, ok := decodeAdopted(e.raw, e.group)
	if !ok {
		r.damage(e.file, e.pos, e.size, "adopted headers do not fit their record")
		g.fault(FaultRecord, e.op, e.op, e.lsn)
		return
	}
	g.log.AdoptView, g.log.Adopted, g.named = view, headers, len(r.windows)
}

// imaged reports whether the group's image has what the record at lsn did to its adopted headers.
func (g *groupState) imaged(r *recovery, lsn LSN) bool {
	return g.log.Image != nil && lsn < r.images.at
}

// appended drops the adopted headers that the log now has as entries.
func (g *groupState) appended(op uint64) {
	list := g.log.Adopted
	for len(list) > 0 && list[len(list)-1].Op <= op {
		list = list[:len(list)-1]
	}
	g.log.Adopted = list
}

// disown drops the adopted headers from op on.
func (g *groupState) disown(op uint64) {
	list := g.log.Adopted
	for len(list) > 0 && list[0].Op >= op {
		list = list[1:]
	}
	g.log.Adopted = list
}
