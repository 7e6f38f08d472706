package vsr_test

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// FuzzFrames throws frames and events at a replica in every state: members of a running group are brought
// to the state the first bytes ask for, then one of them gets whatever the rest says, sealed correctly or
// not. Nothing remote may panic it, and no token may end twice.
func FuzzFrames(f *testing.F) {
	for seed := range byte(18) {
		f.Add([]byte{seed, 6, 0, 1, 2, 3, 4, 5, 11, 7, 12, 0, 0, 9, 9, 9, 9, 17, 18, 19, 20, 21, 255, 254, 1})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytesOf{data}
		c := fuzzState(b.one())
		for len(b.rest) > 4 {
			fuzzInput(c, &b)
		}
	})
}

type bytesOf struct{ rest []byte }

func (b *bytesOf) one() byte {
	if len(b.rest) == 0 {
		return 0
	}
	x := b.rest[0]
	b.rest = b.rest[1:]
	return x
}

// number is small most of the time, and sometimes at the far end.
func (b *bytesOf) number() uint64 {
	switch x := b.one(); x {
	case 255:
		return ^uint64(0)
	case 254:
		return ^uint64(0) >> 1
	case 253:
		return 1 << 32
	default:
		return uint64(x % 12)
	}
}

// fuzzState brings a group into one of the states a member can be in.
func fuzzState(which byte) *cluster {
	g := vsr.Group{ID: wire.GroupID(1, 2, 3, 0), Cluster: wire.ClusterID("fuzz"), Members: 3}
	c := newCluster(g, vsr.Limits{}, vsr.Born, func(string, ...any) {})
	for op := range uint64(4) {
		if which%9 != 8 { // the last state has an empty log
			c.propose(0, op+1)
		}
	}
	c.settle()
	m := c.members[0]
	switch which % 9 {
	case 1:
		m = c.members[1]
	case 2: // in a view change
		c.step(0, vsr.Input{Kind: vsr.InputHandOver})
	case 3: // candidate with missing ops
		c.isolate(1, true)
		c.propose(0, 9)
		c.settle()
		c.isolate(1, false)
		c.stop(0, false)
		c.lost = func(p *packet) bool { return p.header.Command() == wire.CommandRepairPrepare }
		c.step(1, vsr.Input{Kind: vsr.InputDead, From: 0})
		c.step(2, vsr.Input{Kind: vsr.InputDead, From: 0})
		c.settle()
		m = c.members[1]
	case 4:
		c.stop(0, false)
		c.start(0, vsr.Whole, c.tick)
	case 5:
		c.stop(1, true)
		c.start(1, vsr.Suspect, c.tick)
		m = c.members[1]
	case 6:
		c.stop(2, false)
		c.wipe(2)
		c.start(2, vsr.Empty, 0)
		m = c.members[2]
	case 7: // a gap
		c.lost = func(p *packet) bool { return p.to == 1 && p.header.Command() == wire.CommandPrepare }
		c.propose(0, 9)
		c.settle()
		c.lost = nil
		c.propose(0, 10)
		c.settle()
		m = c.members[1]
	}
	for i := range c.members {
		if c.members[i] == m {
			c.check.fuzzed = uint8(i)
		}
	}
	c.check.fuzzing = true
	return c
}

func fuzzInput(c *cluster, b *bytesOf) {
	i := c.check.fuzzed
	in := vsr.Input{Kind: vsr.InputFrame, From: b.one() % 4, BodyOK: b.one()%8 != 0}
	switch b.one() % 8 {
	case 0:
		c.tick += vsr.Tick(b.number()%1000) * 1000
		in = vsr.Input{Kind: vsr.InputTick}
	case 1:
		kinds := []vsr.InputKind{vsr.InputAlive, vsr.InputDead, vsr.InputIsolated, vsr.InputReached, vsr.InputPeerView, vsr.InputHandOver}
		in = vsr.Input{Kind: kinds[int(b.one())%len(kinds)], From: b.one() % 4, Op: b.number()}
	case 2:
		if d := &c.members[i].disk; d.busy() {
			c.write(i)
			return
		}
		c.propose(i, b.number())
		return
	default:
		var h wire.Header
		fuzzFrame(&h, &in, c, b)
		in.Header = &h
		c.tokens++
		in.Body = c.tokens
		if cmd := h.Command(); cmd == wire.CommandPrepare || cmd == wire.CommandRepairPrepare {
			c.members[i].tokens[in.Body] = true
		}
	}
	c.step(i, in)
	c.net = c.net[:0]
}

// fuzzFrame builds a frame that decodes, with any values, or breaks it.
func fuzzFrame(h *wire.Header, in *vsr.Input, c *cluster, b *bytesOf) {
	p := wire.Preamble{Cluster: c.group.Cluster, View: uint32(b.number()), Replica: in.From}
	group := c.group.ID
	suffix := func(head uint64, n int) {
		for k := range n {
			if head <= uint64(k) {
				break
			}
			e := fuzzPrepare(c, head-uint64(k), b.one())
			in.Suffix = append(in.Suffix, e)
		}
		p.Size = uint32(wire.HeaderSize * (1 + len(in.Suffix)))
	}
	switch b.one() % 11 {
	case 0, 1:
		e := fuzzPrepare(c, b.number(), b.one())
		e.View = p.View
		if b.one()%2 == 0 {
			e.Command = wire.CommandRepairPrepare
		}
		e.Put(h[:])
	case 2:
		k := wire.PrepareOkHeader{Preamble: p, Op: b.number(), Operation: wire.OpSendMessages, Group: group}
		k.PrepareChecksum = fuzzPrepare(c, k.Op, b.one()).Checksum
		k.Put(h[:])
	case 3:
		k := wire.CommitHeader{Preamble: p, Commit: b.number(), TimestampMonotonic: b.number(), Group: group}
		k.Put(h[:])
	case 4:
		k := wire.StartViewChangeHeader{Preamble: p, Group: group}
		k.Put(h[:])
	case 5:
		k := wire.DoViewChangeHeader{Op: b.number(), Group: group, LogView: uint32(b.number()), Flags: b.one() % 2}
		suffix(k.Op, int(b.one()%6))
		k.Preamble, k.Commit = p, min(b.number(), k.Op)
		k.Present = wire.U128{Lo: uint64(b.one()) & (1<<len(in.Suffix) - 1)}
		k.Put(h[:])
	case 6:
		k := wire.StartViewHeader{Op: b.number(), Group: group}
		suffix(k.Op, int(b.one()%6))
		k.Preamble, k.Commit = p, min(b.number(), k.Op)
		k.Put(h[:])
	case 7:
		k := wire.RequestStartViewHeader{Preamble: p, Group: group, Incarnation: wire.U128{Lo: b.number()}}
		k.Put(h[:])
	case 8:
		k := wire.RequestPreparesHeader{Preamble: p, FromOp: b.number(), ToOp: b.number(), Group: group}
		k.Put(h[:])
	case 9:
		p.Command = wire.CommandRepairDone
		if b.one()%2 == 0 {
			p.Command = wire.CommandRangeEvicted
		}
		k := wire.RepairEndHeader{Preamble: p, Op: b.number(), Group: group}
		k.Put(h[:])
	case 10:
		for k := range h {
			h[k] = b.one()
		}
	}
}

// fuzzPrepare is the entry of the log at op, or another one, or a blank.
func fuzzPrepare(c *cluster, op uint64, how byte) wire.PrepareHeader {
	log := c.members[c.check.fuzzed].log
	if op >= 1 && op <= uint64(len(log)) && how%4 != 0 {
		return log[op-1]
	}
	if how%16 == 0 {
		return wire.BlankPrepare(op)
	}
	h := wire.PrepareHeader{
		Command: wire.CommandPrepare, Cluster: c.group.Cluster, Group: c.group.ID, Size: 512, Op: op, Timestamp: op,
		Operation: wire.OpSendMessages, Request: uint64(how),
	}
	if op >= 2 && op-2 < uint64(len(log)) {
		h.Parent = log[op-2].Checksum
	}
	h.Checksum = h.Identity()
	return h
}

// FuzzMerge merges arbitrary reports. Whatever the order, the outcome is the same; a decided log is a chain
// that reaches down to its commit point; and with whole members only, nothing that a replication quorum
// shows as held by the newest log is cut.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{5, 9, 9, 1, 0, 0, 2, 2, 2, 7, 7, 7, 1, 1, 3, 3, 5, 5, 8, 8, 0, 0, 0, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytesOf{data}
		n := []int{1, 3, 5}[b.one()%3]
		var bal ballot
		var reports []vsr.Report
		for m := range n {
			if r, ok := fuzzReport(&bal, uint8(m), &b); ok {
				reports = append(reports, r)
			}
		}
		rules := vsr.MergeRules{Members: n, Quorums: vsr.QuorumsOf(n), Lossy: b.one()%2 == 0}
		o := vsr.Merge(reports, rules)
		for range reports {
			reports = append(reports[1:], reports[0])
			if again := vsr.Merge(reports, rules); outcomeText(again) != outcomeText(o) {
				t.Fatalf("%s then %s", outcomeText(o), outcomeText(again))
			}
		}
		if o.Decision == vsr.Decided {
			checkOutcome(t, o, reports, rules)
		}
	})
}

func fuzzReport(bal *ballot, m uint8, b *bytesOf) (vsr.Report, bool) {
	flags := b.one()
	if flags%8 == 7 {
		return vsr.Report{}, false
	}
	r := vsr.Report{Member: m, LogView: uint32(b.one() % 4), Head: uint64(b.one() % 9), Suspect: flags%4 == 3}
	r.Commit = min(uint64(b.one()%6), r.Head)
	for op := r.Head; op >= max(r.Commit, 1); op-- {
		x, i := b.one(), len(r.Suffix)
		if x%16 == 0 {
			r.Suffix = append(r.Suffix, wire.BlankPrepare(op))
			continue
		}
		r.Suffix = append(r.Suffix, bal.header(op, []string{"a", "a", "a", "b"}[x>>4%4]))
		if x%8 != 1 {
			r.Present = r.Present.WithBit(i)
		}
	}
	return r, true
}

func checkOutcome(t *testing.T, o vsr.Outcome, reports []vsr.Report, rules vsr.MergeRules) {
	if o.Commit > o.Head || o.Head > 0 && (len(o.Headers) == 0 || o.Headers[0].Op != o.Head) {
		t.Fatalf("%+v", o)
	}
	for i := 1; i < len(o.Headers); i++ {
		if o.Headers[i].Op+1 != o.Headers[i-1].Op || o.Headers[i-1].Parent != o.Headers[i].Checksum {
			t.Fatalf("not a chain: %s", outcomeText(o))
		}
	}
	newest := uint32(0)
	for _, r := range reports {
		if r.Suspect {
			return
		}
		newest = max(newest, r.LogView)
	}
	held := map[wire.U128]int{}
	for _, r := range reports {
		for i := range r.Suffix {
			if h := &r.Suffix[i]; r.LogView == newest && r.Present.Bit(i) && !h.Blank() {
				if held[h.Checksum]++; held[h.Checksum] >= rules.Quorums.Replication && h.Op > o.Head {
					t.Fatalf("op %d is held by a quorum and cut: %s", h.Op, outcomeText(o))
				}
			}
		}
	}
}
