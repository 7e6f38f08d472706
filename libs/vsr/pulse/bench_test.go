package pulse

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// BenchmarkBeat measures an Interval of one node among 50: its Pings to all, and theirs with what each
// hears of the others.
func BenchmarkBeat(b *testing.B) {
	var peers []uint8
	var heard []wire.Heard
	for i := range uint8(49) {
		peers = append(peers, i+2)
		heard = append(heard, wire.Heard{Node: i + 2, Epoch: 1, Loops: 255})
	}
	var out Output
	p := New(Options{Header: wire.PingHeader{Node: 1, Epoch: 1}, Started: 1})
	p.Step(&Input{Kind: InputPeers, Now: 1, Peers: peers}, &out)
	progress := make([]uint64, 8)
	now := Tick(1)
	b.ReportAllocs()
	for b.Loop() {
		now += Interval
		for l := range progress {
			progress[l]++
		}
		p.Step(&Input{Kind: InputTick, Now: now, Progress: progress}, &out)
		if len(out.Send) != len(peers) {
			b.Fatal(len(out.Send))
		}
		for _, node := range peers {
			h := wire.PingHeader{Node: node, Epoch: 1, Sent: uint64(now)}
			p.Step(&Input{Kind: InputPing, Now: now, From: node, Header: &h, Body: &wire.PingBody{Progress: progress, Heard: heard}}, &out)
		}
	}
}
