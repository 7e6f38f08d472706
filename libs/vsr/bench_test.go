package vsr_test

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// BenchmarkSolo is one op through a group of one: request, completion, applied. It must not allocate.
func BenchmarkSolo(b *testing.B) {
	r := vsr.New(vsr.Group{ID: wire.GroupID(1, 2, 3, 0), Members: 1}, vsr.Limits{}, vsr.Boot{State: vsr.Born})
	var in vsr.Input
	var out vsr.Output
	b.ReportAllocs()
	for b.Loop() {
		in = vsr.Input{Kind: vsr.InputRequest, Now: 1, Request: vsr.Request{Operation: wire.OpSendMessages, Size: 512}}
		out.Reset()
		r.Step(&in, &out)
		op := out.Append[0].Header.Op
		in = vsr.Input{Kind: vsr.InputWritten, Op: op}
		out.Reset()
		r.Step(&in, &out)
		if out.Commit != op {
			b.Fatal("not committed")
		}
		in = vsr.Input{Kind: vsr.InputApplied, Op: op}
		out.Reset()
		r.Step(&in, &out)
	}
}

// three is a group of three of which one backup is slow.
type three struct {
	primary, backup *vsr.Replica
	in              vsr.Input
	up, down        vsr.Output
	tick            vsr.Tick
}

func newThree() *three {
	g := vsr.Group{ID: wire.GroupID(1, 2, 3, 0), Members: 3}
	t := &three{primary: vsr.New(g, vsr.Limits{}, vsr.Boot{State: vsr.Born})}
	g.Self = 1
	t.backup = vsr.New(g, vsr.Limits{}, vsr.Boot{State: vsr.Born})
	return t
}

func (t *three) step(r *vsr.Replica, out *vsr.Output, in vsr.Input) {
	t.in = in
	t.in.Tick, t.in.Rand = t.tick, 7
	out.Reset()
	r.Step(&t.in, out)
}

// commit takes one op through both members and reports whether both have it.
func (t *three) commit() bool {
	t.tick += 10
	t.step(t.primary, &t.up, vsr.Input{Kind: vsr.InputRequest, Now: 1, Request: vsr.Request{Operation: wire.OpSendMessages, Size: 512}})
	op := t.up.Append[0].Header.Op
	t.step(t.backup, &t.down, vsr.Input{Kind: vsr.InputFrame, Header: &t.up.Send[0].Header, BodyOK: true})
	t.step(t.backup, &t.down, vsr.Input{Kind: vsr.InputWritten, Op: op})
	t.step(t.primary, &t.up, vsr.Input{Kind: vsr.InputWritten, Op: op})
	t.step(t.primary, &t.up, vsr.Input{Kind: vsr.InputFrame, From: 1, Header: &t.down.Send[0].Header})
	t.step(t.primary, &t.up, vsr.Input{Kind: vsr.InputApplied, Op: t.up.Commit})
	t.step(t.backup, &t.down, vsr.Input{Kind: vsr.InputFrame, Header: &t.up.Send[0].Header})
	t.step(t.backup, &t.down, vsr.Input{Kind: vsr.InputApplied, Op: t.down.Commit})
	return t.primary.Applied() == op && t.backup.Applied() == op
}

// BenchmarkThree is one op through a group of three: all steps of the primary and of one backup.
func BenchmarkThree(b *testing.B) {
	t := newThree()
	b.ReportAllocs()
	for b.Loop() {
		if !t.commit() {
			b.Fatal("not committed")
		}
	}
}

// TestNoAllocations: an op in steady state costs no memory on primary and backup.
func TestNoAllocations(t *testing.T) {
	g := newThree()
	for range 100 {
		g.commit()
	}
	if n := testing.AllocsPerRun(100, func() { g.commit() }); n != 0 {
		t.Errorf("%v allocations for an op", n)
	}
}
