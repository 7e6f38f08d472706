package loop

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

var errBroken = errors.New("state can not be read")

// ledger is the list of bodies that were applied.
type ledger struct {
	n       *node
	group   uint64
	base    uint64 // op of the last staged
	broken  bool   // its state can not be read
	applied []string
	roles   []bool
}

func (m *ledger) Blocked() bool { return false }
func (m *ledger) Admit(c *link.Call, p *Proposal) bool {
	buf := append(make([]byte, wire.HeaderSize), c.Body...)
	*p = Proposal{Operation: wire.OpStoreOffset, Buf: buf, BodyStart: wire.HeaderSize, BodyLen: len(c.Body)}
	return true
}
func (m *ledger) stage(h *wire.PrepareHeader) (Staged, error) {
	if h.Op != m.base+1 {
		m.n.c.t.Fatalf("node %d group %d: staged op %d behind %d", m.n.id, m.group, h.Op, m.base)
	}
	m.base = h.Op
	return Staged{}, nil
}
func (m *ledger) Stage(h *wire.PrepareHeader, _ []byte) (Staged, error)  { return m.stage(h) }
func (m *ledger) Follow(h *wire.PrepareHeader, _ []byte) (Staged, error) { return m.stage(h) }
func (m *ledger) Unstage(op uint64) {
	m.n.c.seen.cut += int(m.base - min(m.base, op-1))
	m.base = min(m.base, op-1)
}
func (m *ledger) Apply(h *wire.PrepareHeader, body []byte, _ *link.Call) {
	if h.Op != uint64(len(m.applied))+1 || h.Op > m.base {
		m.n.c.t.Fatalf("node %d group %d: applied op %d behind %d", m.n.id, m.group, h.Op, len(m.applied))
	}
	m.applied = append(m.applied, string(body))
	m.n.c.applied(m, h.Op, string(body))
}
func (m *ledger) Settle()                 {}
func (m *ledger) Work(uint64, bool) *Work { return nil }
func (m *ledger) Pending() bool           { return false }
func (m *ledger) Rest()                   {}
func (m *ledger) Ready() error {
	if m.broken {
		return errBroken
	}
	return nil
}
func (m *ledger) Role(primary bool, _ uint32) { m.roles = append(m.roles, primary) }
func (m *ledger) Close()                      {}
func (m *ledger) Replay(h *wire.PrepareHeader, _ []byte, _ journal.Location, _ bool) error {
	_, err := m.stage(h)
	return err
}
func (m *ledger) Bodies() func(journal.Location, []byte) error {
	return func(journal.Location, []byte) error { return journal.ErrDropped }
}
func (m *ledger) Image() Image {
	state := m.encode()
	return Image{Run: func() error { return nil }, Done: func(error) {}, Encode: func(dst []byte) []byte { return append(dst, state...) }}
}
func (m *ledger) encode() (b []byte) {
	for _, s := range m.applied {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}
func (m *ledger) decode(b []byte) {
	for m.applied = nil; len(b) >= 4; {
		n := int(binary.LittleEndian.Uint32(b))
		m.applied = append(m.applied, string(b[4:4+n]))
		b = b[4+n:]
	}
	m.base = uint64(len(m.applied))
}
