package vsr_test

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// forged is a frame that a correct member would not send, to a member of a group with three ops.
type forged struct {
	name  string
	to    uint8
	from  uint8
	fault vsr.Fault
	frame func(c *cluster, in *vsr.Input, h *wire.Header)
}

func preamble(c *cluster, replica uint8, view uint32) wire.Preamble {
	return wire.Preamble{Cluster: c.group.Cluster, View: view, Replica: replica}
}

// next is the prepare that would follow, changed by edit before it is sealed.
func next(edit func(*wire.PrepareHeader)) func(*cluster, *vsr.Input, *wire.Header) {
	return func(c *cluster, in *vsr.Input, h *wire.Header) {
		last := c.members[0].log[2]
		p := wire.PrepareHeader{
			Command: wire.CommandPrepare, Cluster: c.group.Cluster, Group: c.group.ID, Size: 512, Op: 4, Parent: last.Checksum,
			Timestamp: last.Timestamp + 1, Commit: 3, Operation: wire.OpSendMessages, ChecksumBody: wire.U128{Lo: bodyHash},
		}
		edit(&p)
		p.Checksum = p.Identity()
		p.Put(h[:])
		in.BodyHash = bodyHash
	}
}

func startView(view uint32, suffix func(c *cluster) []wire.PrepareHeader, head, commit uint64) func(*cluster, *vsr.Input, *wire.Header) {
	return func(c *cluster, in *vsr.Input, h *wire.Header) {
		in.Suffix = suffix(c)
		s := wire.StartViewHeader{Preamble: preamble(c, in.From, view), Op: head, Commit: commit, Group: c.group.ID}
		s.Size = uint32(wire.HeaderSize * (1 + len(in.Suffix)))
		s.Put(h[:])
	}
}

func newest(c *cluster) []wire.PrepareHeader { return []wire.PrepareHeader{c.members[0].log[2]} }

var forgeries = []forged{
	{"control", 1, 0, vsr.FaultNone, next(func(*wire.PrepareHeader) {})},
	{"another parent", 1, 0, vsr.FaultChain, next(func(p *wire.PrepareHeader) { p.Parent.Lo++ })},
	{"another body", 1, 0, vsr.FaultFrame, next(func(p *wire.PrepareHeader) { p.ChecksumBody.Lo++ })},
	{"another cluster", 1, 0, vsr.FaultFrame, next(func(p *wire.PrepareHeader) { p.Cluster.Lo++ })},
	{"another group", 1, 0, vsr.FaultGroup, next(func(p *wire.PrepareHeader) { p.Group++ })},
	{"another life of the group's name", 1, 0, vsr.FaultGroup, next(func(p *wire.PrepareHeader) { p.Group ^= 1 << 52 })},
	{"another prepare at an op that is here", 1, 0, vsr.FaultConflict, next(func(p *wire.PrepareHeader) { p.Op, p.Request = 3, 77 })},
	{"unknown operation", 1, 0, vsr.FaultOperation, next(func(p *wire.PrepareHeader) { p.Operation = 251 })},
	{"size of no frame", 1, 0, vsr.FaultFrame, next(func(p *wire.PrepareHeader) { p.Size = 12 })},
	{"broken identity", 1, 0, vsr.FaultFrame, func(c *cluster, in *vsr.Input, h *wire.Header) {
		next(func(*wire.PrepareHeader) {})(c, in, h)
		h[200]++
	}},
	{"body that is not its own checksums", 1, 0, vsr.FaultFrame, func(c *cluster, in *vsr.Input, h *wire.Header) {
		next(func(*wire.PrepareHeader) {})(c, in, h)
		in.BodyOK = false
	}},
	{"from nobody", 1, 3, vsr.FaultSender, next(func(*wire.PrepareHeader) {})},
	{"from itself", 1, 1, vsr.FaultSender, next(func(*wire.PrepareHeader) {})},
	{"acknowledgement of another prepare", 0, 1, vsr.FaultConflict, func(c *cluster, in *vsr.Input, h *wire.Header) {
		c.propose(0, 9)
		k := wire.PrepareOkHeader{Preamble: preamble(c, 1, 0), Op: 4, PrepareChecksum: wire.U128{Lo: 1}, Operation: wire.OpSendMessages, Group: c.group.ID}
		k.Put(h[:])
	}},
	{"acknowledgement in the name of another", 0, 1, vsr.FaultSender, func(c *cluster, in *vsr.Input, h *wire.Header) {
		k := wire.PrepareOkHeader{Preamble: preamble(c, 2, 0), Op: 3, Operation: wire.OpSendMessages, Group: c.group.ID}
		k.Put(h[:])
	}},
	{"Commit of a backup", 1, 2, vsr.FaultSender, func(c *cluster, in *vsr.Input, h *wire.Header) {
		k := wire.CommitHeader{Preamble: preamble(c, 2, 0), Commit: 3, Group: c.group.ID}
		k.Put(h[:])
	}},
	{"broken seal", 1, 0, vsr.FaultFrame, func(c *cluster, in *vsr.Input, h *wire.Header) {
		k := wire.CommitHeader{Preamble: preamble(c, 0, 0), Commit: 3, Group: c.group.ID}
		k.Put(h[:])
		h[152]++
	}},
	{"proposal far ahead", 1, 2, vsr.FaultFrame, func(c *cluster, in *vsr.Input, h *wire.Header) {
		k := wire.StartViewChangeHeader{Preamble: preamble(c, 2, 1<<30), Group: c.group.ID}
		k.Put(h[:])
	}},
	{"StartView of who does not lead", 1, 2, vsr.FaultSender, startView(4, newest, 3, 3)},
	{"StartView without headers", 1, 2, vsr.FaultFrame, startView(2, func(*cluster) []wire.PrepareHeader { return nil }, 3, 3)},
	{"StartView whose headers stop above the commit point", 1, 2, vsr.FaultFrame, startView(2, newest, 3, 2)},
	{"StartView that lacks a committed op", 1, 2, vsr.FaultConflict, startView(2, func(c *cluster) []wire.PrepareHeader {
		return []wire.PrepareHeader{c.members[0].log[1]}
	}, 2, 2)},
	{"StartView with another committed op", 1, 2, vsr.FaultConflict, startView(2, func(c *cluster) []wire.PrepareHeader {
		h := c.members[0].log[2]
		h.Request = 77
		h.Checksum = h.Identity()
		return []wire.PrepareHeader{h}
	}, 3, 3)},
	{"frame of another plane", 1, 0, vsr.FaultGroup, func(c *cluster, in *vsr.Input, h *wire.Header) { h[60] = byte(wire.CommandPing) }},
	{"request", 1, 0, vsr.FaultFrame, func(c *cluster, in *vsr.Input, h *wire.Header) {
		next(func(*wire.PrepareHeader) {})(c, in, h)
		h[60] = byte(wire.CommandStateChunk)
		copy(h[152:], h[216:224])
	}},
}

// TestForgeries: what no correct member sends is named, changes nothing and gives its body back.
func TestForgeries(t *testing.T) {
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			g := vsr.Group{ID: wire.MetadataGroup, Cluster: wire.ClusterID("forged"), Members: 3, Policy: vsr.Policy{SealBody: true}}
			c := newCluster(g, vsr.Limits{}, vsr.Born, func(string, ...any) {})
			for op := range uint64(3) {
				c.propose(0, op+1)
				c.settle()
			}
			m := c.members[f.to]
			in := vsr.Input{Kind: vsr.InputFrame, From: f.from, BodyOK: true, Body: 5000, Tick: c.tick}
			var h wire.Header
			f.frame(c, &in, &h)
			in.Header = &h
			before := m.replica.Head()
			view, commit := m.replica.View(), m.replica.Commit()
			var out vsr.Output
			m.replica.Step(&in, &out)
			if out.Fault != f.fault {
				t.Fatalf("fault %v, want %v", out.Fault, f.fault)
			}
			if f.fault == vsr.FaultNone {
				if len(out.Append) != 1 {
					t.Fatal("a good prepare was refused")
				}
				return
			}
			if m.replica.Head() != before || m.replica.View() != view || m.replica.Commit() != commit || len(out.Append)+len(out.Send) > 0 {
				t.Errorf("it changed something: %+v", out)
			}
			if cmd := h.Command(); (cmd == wire.CommandPrepare) != (len(out.Drop) == 1) {
				t.Errorf("bodies given back: %v", out.Drop)
			}
		})
	}
}
