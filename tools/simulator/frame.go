package simulator

import (
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

var clusterID = wire.ClusterID("simulator")

// send encodes a frame and puts it on the links.
func (m *member) send(s *vsr.Send) {
	frame := make([]byte, wire.HeaderSize, wire.HeaderSize*(1+len(s.Suffix))+bodySize)
	copy(frame, s.Header[:])
	frame = wire.AppendSuffix(frame, s.Suffix)
	if s.Op != 0 {
		e := m.log.at(s.Op)
		if e == nil {
			m.w.fail("H1", "node %d group %d sends op %d, which its log %d..%d does not have", m.n.id, m.group, s.Op, m.log.base.Op, m.log.head())
		}
		if wire.DecodeU128(frame) != e.header.Checksum {
			m.w.fail("H1", "node %d group %d sends op %d with the body of another prepare", m.n.id, m.group, s.Op)
		}
		frame = append(frame, e.body...)
	}
	m.w.count("sent " + s.Header.Command().String())
	m.history.sent(m, s, frame)
	m.transmit(s.To, frame)
}

func (m *member) transmit(to uint8, frame []byte) {
	m.w.trace.mark('f', wire.Hash64(frame), uint64(to))
	m.w.frames++
	for i, node := range m.spec.Members {
		if i != int(m.self) && (to == vsr.Everyone || int(to) == i) {
			m.w.network.send(m.n.id, node, frame, m.group)
		}
	}
}

// receive decodes a frame and gives it to the core, as a server does: sizes, suffixes and bodies are
// checked here, headers by the core.
func (m *member) receive(from int, frame []byte) {
	m.w.trace.mark('r', wire.Hash64(frame), uint64(m.n.id))
	self := m.w.memberOf(m.group, from)
	size, err := wire.FrameSize(frame, wire.MaxFrameSize)
	if err != nil || int(size) != len(frame) || self < 0 {
		m.w.count("frame without a meaning")
		return
	}
	in := vsr.Input{Kind: vsr.InputFrame, From: uint8(self), Header: (*wire.Header)(frame)}
	switch body := frame[wire.HeaderSize:]; in.Header.Command() {
	case wire.CommandDoViewChange, wire.CommandStartView:
		head, checksum := wire.DecodeU128(frame[128:]).Lo, wire.DecodeU128(frame[16:])
		if in.Suffix, err = wire.DecodeSuffix(nil, body, head, checksum); err != nil {
			m.w.count("suffix refused")
			return
		}
	case wire.CommandPrepare, wire.CommandRepairPrepare:
		in.Body, in.BodyHash = m.give(body), wire.Hash64(body)
		_, in.BodyOK = stampOf(body)
	}
	m.history.received(m, from, in.Header, in.Suffix)
	m.step(in)
}
