package pulse

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// TestDeaf: what a report says of a node that is doubted here.
func TestDeaf(t *testing.T) {
	const now = 10_000 * ms
	report := func(epoch, loops uint64) []wire.Heard { return []wire.Heard{{Node: 3, Epoch: epoch, Loops: loops}} }
	for _, c := range []struct {
		name       string
		epoch      uint64 // of node 3, as known here
		report     []wire.Heard
		age        Tick
		loops      uint64
		deaf, says bool
	}{
		{"hears it", 5, report(5, 15), 0, 15, false, true},
		{"does not hear it", 5, report(5, 0), 0, 15, true, true},
		{"hears some loops", 5, report(5, 2), 0, 15, false, true},
		{"hears other loops", 5, report(5, 2), 0, 1, true, true},
		{"hears a later life", 5, report(6, 15), 0, 15, true, true},
		{"hears an earlier life", 5, report(4, 15), 0, 15, false, true},
		{"missed a loop in an earlier life", 5, report(4, 2), 0, 1, false, true},
		{"hears nothing since an earlier life", 5, report(4, 0), 0, 1, true, true},
		{"has not heard it yet and does not mind", 5, report(0, ^uint64(0)), 0, 15, false, true},
		{"never heard it", 5, report(0, 0), 0, 15, true, true},
		{"hears what was never heard here", 0, report(4, 15), 0, 15, false, true},
		{"has no such peer", 5, nil, 0, 15, false, false},
		{"said it too long ago", 5, report(5, 0), reportFor + 1, 15, false, false},
		{"said it not too long ago", 5, report(5, 0), reportFor, 15, true, true},
	} {
		p, q := &peer{node: 2, heard: now - c.age, report: c.report}, &peer{node: 3, epoch: c.epoch}
		if deaf, says := p.deaf(q, c.loops, now); deaf != c.deaf || says != c.says {
			t.Errorf("%s: deaf %v, says %v", c.name, deaf, says)
		}
	}
}

// TestPauseHere: a node that was not run does not suspect at once who may have been heard meanwhile; one
// that is always late still suspects in the end.
func TestPauseHere(t *testing.T) {
	begin := func() (*Pulse, *Output, func(Tick) bool) {
		p, out := New(Options{Header: wire.PingHeader{Node: 1, Epoch: 1}, Started: 1000 * ms}), &Output{}
		p.Step(&Input{Kind: InputPeers, Now: 1000 * ms, Peers: []uint8{2}}, out)
		p.Step(&Input{Kind: InputPing, Now: 1050 * ms, From: 2, Header: &wire.PingHeader{Node: 2, Epoch: 1, Sent: 1}, Body: &wire.PingBody{}}, out)
		return p, out, func(now Tick) bool {
			p.Step(&Input{Kind: InputTick, Now: now}, out)
			return p.peers[0].silent
		}
	}
	_, out, silent := begin()
	for now := 1100 * ms; now <= 1500*ms; now += 100 * ms {
		silent(now)
	}
	if out.Wake != 1550*ms || !silent(1550*ms) || len(out.Send) != 1 || out.Send[0].Body.Heard[0].Loops != 0 {
		t.Fatalf("a suspicion is due at 1550 ms, told at once: wakes at %d, %+v", out.Wake/ms, out.Send)
	}
	_, out, silent = begin()
	if silent(3000*ms) || out.Wake != 3100*ms {
		t.Fatalf("suspected at once; wakes at %d", out.Wake)
	}
	if !silent(3100 * ms) {
		t.Fatal("not suspected when the time is up")
	}
	_, _, silent = begin()
	for now := 1050*ms + 250*ms; now < 2000*ms; now += 250 * ms { // each time 150 ms late
		if got, want := silent(now), now >= 1800*ms; got != want && now != 1550*ms {
			t.Fatalf("at %d: suspected %v", now/ms, got)
		}
	}
}

// TestDeathStays: those who agreed and died since do not bring the dead back.
func TestDeathStays(t *testing.T) {
	w := newWorld(t, 1, 5)
	w.run(1500*ms, nil)
	w.nodes[0].kill()
	w.run(1000*ms, nil)
	begin := w.now
	w.nodes[1].kill()
	w.nodes[2].kill()
	w.run(3000*ms, nil)
	for i := 3; i < 5; i++ {
		if list := w.of(i, 0, begin, EventAlive); len(list) > 0 || len(w.of(i, 0, 0, EventDead)) == 0 {
			t.Fatalf("node %d: %v", i, list)
		}
	}
}

// TestLaterLife: a node that does not hear a primary learns from others that the life it knew is over.
func TestLaterLife(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.run(1500*ms, nil)
	w.link(0, 1, false)
	w.run(1000*ms, nil)
	if s := w.deaths(0); s != "" {
		t.Fatal(s)
	}
	begin := w.now
	w.nodes[0].kill()
	w.nodes[0].start()
	w.run(200*ms, nil)
	if list := w.of(1, 0, begin, EventDead); len(list) != 1 || list[0].Epoch != 1 {
		t.Fatalf("%v", list)
	}
}

// TestLoopsOfALaterLife: what was said of loops ends with the life they were in.
func TestLoopsOfALaterLife(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.run(1500*ms, nil)
	m := w.nodes[0]
	m.hung = 2
	w.run(3000*ms, nil)
	begin := w.now
	m.kill()
	m.start()
	w.run(1000*ms, nil)
	if list := w.of(1, 0, begin, EventLoopAlive, EventLoopDead, EventDead); len(list) > 0 {
		t.Fatalf("%v", list)
	}
	w.run(2000*ms, nil)
	if list := w.of(1, 0, begin, EventLoopDead); len(list) != 1 {
		t.Fatalf("%v", list)
	}
}

// TestReturnIsTold: that a suspect is heard again is told at once, like the suspicion.
func TestReturnIsTold(t *testing.T) {
	p, out := New(Options{Header: wire.PingHeader{Node: 1, Epoch: 1}, Started: 1000 * ms}), &Output{}
	p.Step(&Input{Kind: InputPeers, Now: 1000 * ms, Peers: []uint8{2, 3}}, out)
	for now := 1100 * ms; now <= 1600*ms; now += 100 * ms {
		p.Step(&Input{Kind: InputTick, Now: now}, out)
	}
	for i, sends := range []int{3, 1} { // the Pong, and Pings to both the first time
		in := Input{Kind: InputPing, Now: 1610*ms + Tick(i), From: 2, Header: &wire.PingHeader{Node: 2, Epoch: 1, Sent: uint64(i)}, Body: &wire.PingBody{}}
		if p.Step(&in, out); len(out.Send) != sends {
			t.Fatalf("%+v", out.Send)
		}
	}
}
