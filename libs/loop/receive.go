package loop

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Counters count what a loop refused or lost. Any goroutine reads them.
type Counters struct {
	Faults       [16]atomic.Uint64 // by vsr.Fault
	Malformed    atomic.Uint64     // frames whose body does not fit the header
	UnknownGroup atomic.Uint64     // frames of groups that are not hosted here
	UnknownNode  atomic.Uint64     // frames of nodes that are no members of the group
	Crowded      atomic.Uint64     // prepares dropped because the inbox was full
	Unsent       atomic.Uint64     // frames the peers had no room for
	Refused      atomic.Uint64     // prepares the machine could not continue with
	Lost         atomic.Uint64     // ops the members gave up (rule D8)
	Fetched      atomic.Uint64     // ops that came because this member asked for them
	Served       atomic.Uint64     // ops sent to members that asked for them
}

// PeerFrame is a frame of another node on its way into a loop.
type PeerFrame struct {
	From   uint8  // node the connection proved
	Group  uint64 // named by the header
	Header wire.Header

	frame  *buffer.Frame
	bytes  []byte // room for a header, then the body; nil without a body
	hash   uint64 // of the body, when the header has one
	ok     bool   // the body matches its checksums
	suffix []wire.PrepareHeader
}

var peerFrames = sync.Pool{New: func() any { return new(PeerFrame) }}

// NewPeerFrame takes a received frame and verifies its body on the caller's goroutine. The body is
// frame[start:], and the caller's reference goes with it; bytes in front of start are free for the
// loop. A nil frame means that there is no body. The result is nil when the body does not fit the
// header; then the frame is released.
func NewPeerFrame(from uint8, h *wire.Header, frame *buffer.Frame, start int) *PeerFrame {
	var b []byte
	if frame != nil {
		b = frame.Bytes()
		if start >= wire.HeaderSize {
			b = b[start-wire.HeaderSize:]
		} else {
			b = append(make([]byte, wire.HeaderSize, wire.HeaderSize+len(b)), b[start:]...)
			frame.Release()
			frame = nil
		}
	}
	f := peerFrames.Get().(*PeerFrame)
	*f = PeerFrame{From: from, Header: *h, frame: frame, bytes: b}
	if !f.verify() {
		f.Release()
		return nil
	}
	return f
}

// Body is the frame's body.
func (f *PeerFrame) Body() []byte {
	if f.bytes == nil {
		return nil
	}
	return f.bytes[wire.HeaderSize:]
}

// Release gives the frame back; its owner is whoever took it last.
func (f *PeerFrame) Release() {
	if f.frame != nil {
		f.frame.Release()
	}
	*f = PeerFrame{}
	peerFrames.Put(f)
}

// verify decodes the body as far as the header says what it is.
func (f *PeerFrame) verify() bool {
	group, ok := wire.GroupOf(&f.Header)
	body := f.Body()
	if f.Group = group; !ok || binary.LittleEndian.Uint32(f.Header[48:]) != uint32(wire.HeaderSize+len(body)) {
		return false
	}
	switch f.Header.Command() {
	case wire.CommandPrepare, wire.CommandRepairPrepare:
		return f.verifyPrepare(body)
	case wire.CommandDoViewChange:
		var h wire.DoViewChangeHeader
		return h.Decode(f.Header[:]) == nil && f.decodeSuffix(h.Op, h.ChecksumBody)
	case wire.CommandStartView:
		var h wire.StartViewHeader
		return h.Decode(f.Header[:]) == nil && f.decodeSuffix(h.Op, h.ChecksumBody)
	}
	return true
}

func (f *PeerFrame) verifyPrepare(body []byte) bool {
	var h wire.PrepareHeader
	if err := h.Decode(f.Header[:]); err != nil && !errors.Is(err, wire.ErrOperation) { // the core names those
		return false
	}
	switch {
	case !h.ChecksumBody.IsZero():
		f.hash = wire.Hash64(body)
		f.ok = h.ChecksumBody == wire.U128{Lo: f.hash}
	case h.Operation == wire.OpSendMessages:
		f.ok = wire.VerifyBatch(body) == nil
	default:
		f.ok = true
	}
	return true
}

func (f *PeerFrame) decodeSuffix(head uint64, checksum wire.U128) bool {
	var err error
	f.suffix, err = wire.DecodeSuffix(nil, f.Body(), head, checksum)
	return err == nil
}

// received steps the group a frame is for.
func (l *Loop) received(f *PeerFrame) {
	if c := f.Header.Command(); c >= wire.CommandRequestStateTransfer && c <= wire.CommandStateChunk {
		l.transferred(f)
		return
	}
	g := l.groups[f.Group]
	if g == nil && l.MissingPeer != nil {
		g = l.MissingPeer(f.Group)
	}
	if g == nil || g.peers == nil || g.muted() {
		l.Counters.UnknownGroup.Add(1)
		f.Release()
		return
	}
	from, ok := g.peers.member(f.From)
	if !ok || from == g.peers.self {
		l.Counters.UnknownNode.Add(1)
		f.Release()
		return
	}
	l.stepFrame(g, from, f)
}

// transferred passes a frame of a state transfer on. Members ask for what they miss, and so do nodes that are to be
// members of a successor: whoever offers a state decides who may have it.
func (l *Loop) transferred(f *PeerFrame) {
	if l.TransferFrame == nil {
		f.Release()
		return
	}
	if l.groups[f.Group] == nil && l.MissingPeer != nil {
		l.MissingPeer(f.Group)
	}
	l.TransferFrame(f)
}

func (l *Loop) stepFrame(g *Group, from uint8, f *PeerFrame) {
	l.inform(g)
	in := vsr.Input{
		Kind: vsr.InputFrame, From: from, Header: &f.Header, Suffix: f.suffix, BodyHash: f.hash, BodyOK: f.ok,
	}
	c := f.Header.Command()
	if c == wire.CommandRepairPrepare {
		l.Counters.Fetched.Add(1)
	}
	if c == wire.CommandPrepare || c == wire.CommandRepairPrepare {
		// A body without checksum is not one of a group that seals bodies.
		in.BodyOK = f.ok && (f.hash != 0) == g.core.Policy().SealBody
		if f.bytes != nil {
			in.Body = l.bodies.put(body{f.frame, f.bytes})
			f.frame = nil
		}
	}
	l.tell(g, in)
	f.Release()
}
