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

// BenchmarkThree is one op through a group of three: the primary's and one backup's steps. The other
// backup is slow. It must not allocate.
func BenchmarkThree(b *testing.B) {
	g := vsr.Group{ID: wire.GroupID(1, 2, 3, 0), Members: 3}
	primary := vsr.New(g, vsr.Limits{}, vsr.Boot{State: vsr.Born})
	g.Self = 1
	backup := vsr.New(g, vsr.Limits{}, vsr.Boot{State: vsr.Born})
	var in vsr.Input
	var up, down vsr.Output
	tick := vsr.Tick(1)
	step := func(r *vsr.Replica, out *vsr.Output) {
		in.Tick, in.Rand = tick, 7
		out.Reset()
		r.Step(&in, out)
	}
	b.ReportAllocs()
	for b.Loop() {
		tick += 10
		in = vsr.Input{Kind: vsr.InputRequest, Now: 1, Request: vsr.Request{Operation: wire.OpSendMessages, Size: 512}}
		step(primary, &up)
		op := up.Append[0].Header.Op
		in = vsr.Input{Kind: vsr.InputFrame, Header: &up.Send[0].Header, BodyOK: true}
		step(backup, &down)
		in = vsr.Input{Kind: vsr.InputWritten, Op: op}
		step(backup, &down)
		step(primary, &up)
		in = vsr.Input{Kind: vsr.InputFrame, From: 1, Header: &down.Send[0].Header}
		step(primary, &up)
		if up.Commit != op {
			b.Fatal("not committed")
		}
		in = vsr.Input{Kind: vsr.InputApplied, Op: op}
		step(primary, &up)
		in = vsr.Input{Kind: vsr.InputFrame, Header: &up.Send[0].Header}
		step(backup, &down)
		if down.Commit != op {
			b.Fatal("not learned")
		}
		in = vsr.Input{Kind: vsr.InputApplied, Op: op}
		step(backup, &down)
	}
}
