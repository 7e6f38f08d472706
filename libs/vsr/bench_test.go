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
