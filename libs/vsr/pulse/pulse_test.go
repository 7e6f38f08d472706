package pulse

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// TestNobodyHealthyDies: what must not look like a death, for three and five nodes. Node 0 is the
// primary everybody cares about.
func TestNobodyHealthyDies(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *world)
	}{
		{"nothing happens", func(w *world) { w.run(10_000*ms, w.promise) }},
		{"one way cut to one node", func(w *world) { w.link(0, 1, false) }},
		{"both ways cut to one node", func(w *world) { w.link(0, 1, false); w.link(1, 0, false) }},
		{"a node that hears nobody", func(w *world) {
			for i := range w.nodes {
				w.link(i, 1, false)
			}
		}},
		{"the primary hears nobody", func(w *world) {
			for i := range w.nodes {
				w.link(i, 0, false)
			}
		}},
		{"a short pause of the primary", func(w *world) { w.nodes[0].paused = true; w.run(350*ms, w.promise); w.nodes[0].resume() }},
		{"a long pause of another node", func(w *world) {
			w.nodes[1].paused = true
			w.run(100*ms, w.promise)
			begin := w.now
			w.run(3000*ms, w.promise)
			w.nodes[1].resume()
			w.run(10*ms, w.promise)
			for i := range w.nodes { // others may call the paused one dead
				w.nodes[i].log = nil
			}
			w.run(begin+5000*ms-w.now, w.promise)
		}},
		{"a pause of all", func(w *world) {
			for _, m := range w.nodes {
				m.paused = true
			}
			w.run(2000*ms, w.promise)
			for _, m := range w.nodes {
				m.resume()
			}
		}},
		{"a link that flaps", func(w *world) {
			for range 20 {
				w.link(0, 1, false)
				w.run(450*ms, w.promise)
				w.link(0, 1, true)
				w.run(120*ms, w.promise)
			}
		}},
		{"a link that flaps slowly", func(w *world) {
			for range 10 {
				w.link(0, 1, false)
				w.run(900*ms, w.promise)
				w.link(0, 1, true)
				w.run(300*ms, w.promise)
			}
		}},
		{"a cut link, and another node starts again", func(w *world) {
			w.link(0, 1, false)
			w.run(1000*ms, w.promise)
			w.nodes[2].kill()
			w.run(30*ms, w.promise)
			w.nodes[2].start()
		}},
		{"a slow loop", func(w *world) { w.nodes[0].hung = 2; w.run(1700*ms, w.promise); w.nodes[0].hung = 0 }},
		{"a hung loop that one node does not hear of", func(w *world) { w.link(0, 1, false); w.run(300*ms, w.promise) }},
	} {
		for _, n := range []int{3, 5} {
			t.Run(c.name, func(t *testing.T) {
				w := newWorld(t, 1, n)
				w.run(2000*ms, w.promise)
				c.do(w)
				w.run(3000*ms, w.promise)
				if s := w.deaths(0); s != "" {
					t.Fatalf("%d nodes: %s", n, s)
				}
			})
		}
	}
}

// TestDeathIsNoticed: every node that is well notices within 600 ms.
func TestDeathIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *world)
	}{
		{"killed", func(w *world) { w.nodes[0].kill() }},
		{"cut off", func(w *world) { w.isolate(0, false) }},
		{"heard by nobody", func(w *world) {
			for i := range w.nodes {
				w.link(0, i, false)
			}
		}},
		{"paused", func(w *world) { w.nodes[0].paused = true }},
	} {
		for _, n := range []int{3, 5, 7} {
			for seed := range uint64(8) {
				w := newWorld(t, seed, n)
				w.run(1500*ms+Tick(w.rng.Uint64N(100))*ms, w.promise)
				begin := w.now
				c.do(w)
				w.run(2000*ms, w.promise)
				for i := 1; i < n; i++ {
					list := w.of(i, 0, 0, EventDead)
					if len(list) == 0 || list[0].at > begin+600*ms || list[0].at < begin+390*ms {
						t.Fatalf("%s, %d nodes, seed %d: node %d saw %v, begin %d", c.name, n, seed, i, list, begin/ms)
					}
					by := list[len(list)-1].By
					if by.Len() != n-2 || by.Has(w.nodes[0].id) || by.Has(w.nodes[i].id) || !by.Enough(w.ids(), n-1) || by.Enough(w.ids(), n) {
						t.Fatalf("%s, %d nodes: by %v", c.name, n, by)
					}
					if alive := w.of(i, 0, begin, EventAlive); len(alive) > 0 {
						t.Fatalf("%s, %d nodes: back: %v", c.name, n, alive)
					}
					if !w.nodes[i].pulse.MayVote(w.nodes[0].id, 0, w.nodes[i].clock()) {
						t.Fatalf("%s: node %d may not vote", c.name, i)
					}
				}
				if m := w.nodes[0]; m.pulse != nil && m.pulse.Serving(w.ids(), (n+1)/2, m.clock()) {
					t.Fatalf("%s: the primary serves", c.name)
				}
			}
		}
	}
}

// TestReturn: who was dead and is heard again is alive at once, for everybody.
func TestReturn(t *testing.T) {
	for _, paused := range []bool{true, false} {
		w := newWorld(t, 3, 3)
		w.run(1500*ms, nil)
		if m := w.nodes[0]; paused {
			m.paused = true
			w.run(1000*ms, w.promise)
			m.resume()
		} else {
			w.isolate(0, false)
			w.run(1000*ms, w.promise)
			w.isolate(0, true)
		}
		back := w.now
		w.run(1000*ms, w.promise)
		for i := 1; i < 3; i++ {
			list := w.of(i, 0, back-1000*ms, EventDead, EventAlive)
			if len(list) < 2 || list[len(list)-1].Kind != EventAlive || list[len(list)-1].at > back+110*ms {
				t.Fatalf("node %d saw %v, back %d", i, list, back/ms)
			}
		}
		if dead := w.of(0, 1, 0, EventDead); len(dead) > 0 {
			t.Fatalf("the one that was away saw %v", dead)
		}
	}
}

// TestRestartWithinInterval: a process that dies and starts again before anybody misses a Ping is found out
// by its epoch; who led before is not waited for.
func TestRestartWithinInterval(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.run(1500*ms, w.promise)
	m, begin := w.nodes[0], w.now
	m.kill()
	m.start()
	w.run(20*ms, w.promise)
	for i := 1; i < 3; i++ {
		list := w.of(i, 0, begin, EventNewEpoch, EventAlive, EventDead)
		if len(list) != 2 || list[0].Kind != EventNewEpoch || list[0].Epoch != 2 || list[1].Kind != EventAlive {
			t.Fatalf("node %d saw %v", i, list)
		}
		p := w.nodes[i].pulse
		if now := w.nodes[i].clock(); !p.MayVote(m.id, 1, now) || p.MayVote(m.id, 2, now) || p.MayVote(m.id, 0, now) {
			t.Fatalf("node %d: the life that led is over, the other one is not", i)
		}
	}
	if m.pulse.MayVote(w.nodes[1].id, 0, m.clock()) {
		t.Fatal("votes 20 ms after its start")
	}
	w.run(1000*ms, w.promise)
	if s := w.deaths(begin); s != "" {
		t.Fatal(s)
	}
}

// TestHungLoop: a loop without progress is dead after two seconds, and nothing else is.
func TestHungLoop(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.run(1500*ms, w.promise)
	begin := w.now
	w.nodes[0].hung = 1 << 2
	w.run(3000*ms, w.promise)
	for i := 1; i < 3; i++ {
		list := w.of(i, 0, begin, EventDead, EventLoopDead, EventLoopAlive)
		if len(list) != 1 || list[0].Kind != EventLoopDead || list[0].Loop != 2 || list[0].at < begin+1900*ms || list[0].at > begin+2300*ms {
			t.Fatalf("node %d saw %v, begin %d", i, list, begin/ms)
		}
	}
	w.nodes[0].hung = 0
	back := w.now
	w.run(300*ms, w.promise)
	for i := 1; i < 3; i++ {
		list := w.of(i, 0, back, EventDead, EventLoopDead, EventLoopAlive)
		if len(list) != 1 || list[0].Kind != EventLoopAlive || list[0].Loop != 2 {
			t.Fatalf("node %d saw %v", i, list)
		}
	}
	// One node sees the loop hang, the other one hears nothing at all: that is agreement for the loop.
	w.link(0, 2, false)
	w.nodes[0].hung = 1 << 1
	back = w.now
	w.run(3000*ms, w.promise)
	list := w.of(1, 0, back, EventDead, EventLoopDead)
	if len(list) != 1 || list[0].Loop != 1 || list[0].Kind != EventLoopDead {
		t.Fatalf("node 1 saw %v", list)
	}
	list = w.of(2, 0, back, EventDead, EventLoopDead)
	if len(list) != 1 || list[0].Loop != 1 || list[0].Kind != EventLoopDead {
		t.Fatalf("node 2 saw %v", list)
	}
}

// TestDigest: what a leader and a member disagree on is found within a round of digests, at the leader.
func TestDigest(t *testing.T) {
	w := newWorld(t, 1, 3)
	for _, m := range w.nodes {
		m.held = map[uint64]uint32{1000: 4, 1001: 4, 2002: 1}
	}
	w.nodes[0].led = map[uint64]uint32{1000: 4, 1001: 4}
	w.nodes[1].led = map[uint64]uint32{2002: 1}
	w.run(11_000*ms, nil)
	for i := range w.nodes {
		for j := range w.nodes {
			if list := w.of(i, j, 0, EventMismatch); len(list) > 0 {
				t.Fatalf("node %d saw %v", i, list)
			}
		}
	}
	w.nodes[2].held[1001] = 3 // it missed a view change
	begin := w.now
	w.run(5_100*ms, nil)
	list := w.of(0, 2, begin, EventMismatch)
	if len(list) != 1 || list[0].Loop != 1 {
		t.Fatalf("leader saw %v", list)
	}
	if list := w.of(0, 1, begin, EventMismatch); len(list) > 0 {
		t.Fatalf("leader saw %v", list)
	}
	// A change of the leader's own between question and answer is no mismatch.
	p, asked := w.nodes[0].pulse, w.nodes[0]
	q := p.peer(w.nodes[2].id)
	q.led = append(q.led[:0], 1, 2, 3, 4)
	q.digestSent = q.echo + 1
	h := wire.PingHeader{Node: w.nodes[2].id, Epoch: 1, Echo: uint64(q.digestSent), Mismatch: 15}
	h.Command = wire.CommandPong
	w.now += ms
	begin = w.now
	asked.step(Input{Kind: InputPong, From: h.Node, Header: &h})
	if list := w.of(0, 2, begin, EventMismatch); len(list) > 0 {
		t.Fatalf("leader saw %v", list)
	}
	// Nor is what comes with another answer than that to the digests.
	q.led = asked.Led(q.led[:0], 0)
	h.Echo++
	asked.step(Input{Kind: InputPong, From: h.Node, Header: &h})
	if list := w.of(0, 2, begin, EventMismatch); len(list) > 0 || q.echo != Tick(h.Echo) {
		t.Fatalf("leader saw %v", list)
	}
	h.Echo++
	q.digestSent = Tick(h.Echo)
	asked.step(Input{Kind: InputPong, From: h.Node, Header: &h})
	if list := w.of(0, 2, begin, EventMismatch); len(list) != 4 {
		t.Fatalf("leader saw %v", list)
	}
}

// TestViews: metadata views travel in both directions, and a lease counts only echoes of its view.
func TestViews(t *testing.T) {
	w := newWorld(t, 1, 3)
	for _, m := range w.nodes {
		m.view = 7
	}
	w.run(500*ms, nil)
	m, ids := w.nodes[0], w.ids()
	if !m.pulse.Leased(ids, 2, 7, m.clock()) || m.pulse.Leased(ids, 2, 6, m.clock()) {
		t.Fatal("lease in the same view")
	}
	if v, ok := m.pulse.View(w.nodes[1].id); v != 7 || !ok {
		t.Fatal(v, ok)
	}
	w.nodes[1].view = 8
	begin := w.now
	w.run(300*ms, nil)
	if !m.pulse.Leased(ids, 2, 7, m.clock()) || m.pulse.Leased(ids, 3, 7, m.clock()) {
		t.Fatal("node 2 is left in the view")
	}
	list := w.of(0, 1, begin, EventView)
	if len(list) != 1 || list[0].View != 8 {
		t.Fatalf("%v", list)
	}
	w.nodes[2].view = 8
	w.run(300*ms, nil)
	if m.pulse.Leased(ids, 2, 7, m.clock()) || !m.pulse.Serving(ids, 3, m.clock()) {
		t.Fatal("nobody is left in the view")
	}
}

// TestPledge: who is in a view and does not take part in it promises its primary nothing, although it answers.
func TestPledge(t *testing.T) {
	w := newWorld(t, 1, 3)
	for _, m := range w.nodes {
		m.view, m.apart = 7, true
	}
	w.run(500*ms, nil)
	m, ids, other := w.nodes[0], w.ids(), w.nodes[1]
	if _, ok := m.pulse.EchoView(other.id); ok || m.pulse.Leased(ids, 2, 7, m.clock()) || !m.pulse.Serving(ids, 3, m.clock()) {
		t.Fatal("a lease of nodes that take part in no view")
	}
	if v, ok := m.pulse.View(other.id); v != 7 || !ok {
		t.Fatal(v, ok)
	}
	other.apart = false
	w.run(200*ms, nil)
	if v, ok := m.pulse.EchoView(other.id); v != 7 || !ok || !m.pulse.Leased(ids, 2, 7, m.clock()) {
		t.Fatal("no lease of one that does")
	}
	heard := other.pulse.Bound(m.id)
	if now := other.clock(); heard <= now+Quiet-2*Interval || heard > now+Quiet {
		t.Fatalf("it is bound until %d at %d", heard, now)
	}
	if other.pulse.Bound(99) != 0 {
		t.Fatal("it is bound to a node it never heard")
	}
}

// TestPeers: peers come and go at run time.
func TestPeers(t *testing.T) {
	w := newWorld(t, 1, 4)
	m := w.nodes[0]
	m.step(Input{Kind: InputPeers, Peers: []uint8{w.nodes[2].id, w.nodes[1].id}})
	w.nodes[3].kill()
	w.run(2000*ms, nil)
	if list := w.of(0, 3, 0, EventDead); len(list) > 0 {
		t.Fatalf("%v of a node that is no peer", list)
	}
	m.step(Input{Kind: InputPeers, Peers: w.ids()})
	joined := w.now
	w.run(2000*ms, nil)
	list := w.of(0, 3, joined, EventDead)
	if len(list) == 0 || list[0].at < joined+500*ms || list[0].Epoch != 0 {
		t.Fatalf("%v of a peer that never was there", list)
	}
	if list := w.of(0, 1, joined, EventDead, EventAlive, EventNewEpoch); len(list) > 0 {
		t.Fatalf("%v of a peer that stayed", list)
	}
	m.step(Input{Kind: InputPeers})
	if m.wake != 0 {
		t.Fatal("wakes for nobody")
	}
}

// TestFaults: frames that cannot come from a correct peer change nothing.
// TestUp: who connects is pinged at once, between two rounds.
func TestUp(t *testing.T) {
	p, out := New(Options{Header: wire.PingHeader{Node: 1, Epoch: 1}, Started: 1}), &Output{}
	p.Step(&Input{Kind: InputPeers, Now: 1, Peers: []uint8{2}}, out)
	p.Step(&Input{Kind: InputTick, Now: 10 * ms}, out)
	if len(out.Send) != 0 {
		t.Fatalf("%d frames between two rounds", len(out.Send))
	}
	p.Step(&Input{Kind: InputUp, Now: 20 * ms, From: 2}, out)
	if len(out.Send) != 1 || out.Send[0].To != 2 || out.Send[0].Header.Command != wire.CommandPing {
		t.Errorf("on a connection: %v", out.Send)
	}
	p.Step(&Input{Kind: InputUp, Now: 30 * ms, From: 3}, out)
	if out.Fault != FaultPeer || len(out.Send) != 0 {
		t.Errorf("of a stranger: fault %d, %v", out.Fault, out.Send)
	}
}

func TestFaults(t *testing.T) {
	p := New(Options{Header: wire.PingHeader{Node: 1, Epoch: 9}, Started: 1_000_000})
	var out Output
	p.Step(&Input{Kind: InputPeers, Now: 1_000_000, Peers: []uint8{1, 2, 3}}, &out)
	if len(out.Send) != 2 || out.Send[0].To != 2 || out.Send[1].To != 3 {
		t.Fatalf("%+v", out.Send)
	}
	frame := func(node uint8, epoch, sent, echo uint64) *wire.PingHeader {
		return &wire.PingHeader{Node: node, Epoch: epoch, Sent: sent, Echo: echo}
	}
	for _, c := range []struct {
		name string
		in   Input
		want Fault
	}{
		{"ping", Input{Kind: InputPing, From: 2, Header: frame(2, 5, 50, 0)}, FaultNone},
		{"the same ping", Input{Kind: InputPing, From: 2, Header: frame(2, 5, 50, 0)}, FaultNone},
		{"an older ping", Input{Kind: InputPing, From: 2, Header: frame(2, 5, 49, 0)}, FaultStale},
		{"an earlier life", Input{Kind: InputPing, From: 2, Header: frame(2, 4, 99, 0)}, FaultStale},
		{"another name", Input{Kind: InputPing, From: 2, Header: frame(3, 5, 51, 0)}, FaultSender},
		{"no peer", Input{Kind: InputPing, From: 4, Header: frame(4, 5, 51, 0)}, FaultPeer},
		{"pong", Input{Kind: InputPong, From: 2, Header: frame(2, 5, 0, 1_000_000)}, FaultNone},
		{"pong of the future", Input{Kind: InputPong, From: 2, Header: frame(2, 5, 0, 1_000_002)}, FaultEcho},
		{"pong to an earlier life here", Input{Kind: InputPong, From: 2, Header: frame(2, 5, 0, 999_999)}, FaultEcho},
		{"pong of an earlier life there", Input{Kind: InputPong, From: 2, Header: frame(2, 4, 0, 1_000_000)}, FaultStale},
		{"pong of another name", Input{Kind: InputPong, From: 2, Header: frame(3, 5, 0, 1_000_000)}, FaultSender},
		{"pong of no peer", Input{Kind: InputPong, From: 4, Header: frame(4, 5, 0, 1_000_000)}, FaultPeer},
		{"unknown", Input{Kind: 99}, FaultKind},
	} {
		c.in.Now, c.in.Body = 1_000_001, &wire.PingBody{}
		p.Step(&c.in, &out)
		if out.Fault != c.want {
			t.Errorf("%s: fault %d, want %d", c.name, out.Fault, c.want)
		}
		if pong := len(out.Send) > 0; pong != (c.in.Kind == InputPing && c.want == FaultNone) {
			t.Errorf("%s: sent %+v", c.name, out.Send)
		}
	}
	if p.Echo(2) != 1_000_000 || p.Echo(3) != 0 {
		t.Fatal(p.Echo(2), p.Echo(3))
	}
	for _, c := range [][2]uint64{{1_100_000, 1_100_000}, {1_000_000, 1_100_000}} { // the second one was late
		p.Step(&Input{Kind: InputPong, Now: 1_150_000, From: 2, Header: frame(2, 5, 0, c[0])}, &out)
		if p.Echo(2) != Tick(c[1]) {
			t.Fatal(p.Echo(2), c)
		}
	}
}
