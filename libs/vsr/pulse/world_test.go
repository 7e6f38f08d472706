package pulse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// world is a cluster in virtual time. Each machine has a clock of its own.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	now   Tick // of the world; it advances by a millisecond
	nodes []*machine
	sent  []parcel // in flight, ascending at
	cut   map[[2]int]bool
	calls int
}

// machine is one node: a process that runs, is paused, or is down.
type machine struct {
	w       *world
	id      uint8
	pulse   *Pulse // nil: down
	epoch   uint64
	since   Tick // when the process started
	offset  Tick // its clock minus the world's
	wake    Tick // by its clock
	paused  bool
	resumed Tick
	inbox   []parcel
	loops   []uint64 // progress
	hung    uint64
	view    uint32
	apart   bool // its replica takes part in no view
	log     []seen
	arrived map[int]arrival // last Ping read, by sender
	led     map[uint64]uint32
	held    map[uint64]uint32
}

type arrival struct {
	at    Tick
	epoch uint64
	gap   Tick // end of the last silence before it
}

type parcel struct {
	at       Tick
	from, to int
	frame    []byte
}

type seen struct {
	Event
	at   Tick
	last arrival // of a Ping of the node, then
}

func (s seen) String() string {
	name := [...]string{"", "alive", "dead", "loop alive", "loop dead", "new epoch", "mismatch", "view"}[s.Kind]
	return fmt.Sprintf("%d:%s %d/%d", s.at/1000, name, s.Node, s.Loop)
}

const ms Tick = 1000

func newWorld(t testing.TB, seed uint64, n int) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: 1000 * ms, cut: map[[2]int]bool{}}
	for i := range n {
		w.nodes = append(w.nodes, &machine{w: w, id: uint8(10 * (i + 1)), offset: Tick(w.rng.Uint64N(1e12))})
	}
	for _, m := range w.nodes {
		m.start()
	}
	return w
}

func (w *world) ids() (ids []uint8) {
	for _, m := range w.nodes {
		ids = append(ids, m.id)
	}
	return ids
}

func (w *world) index(id uint8) int { return int(id)/10 - 1 }

func (m *machine) clock() Tick { return m.w.now + m.offset }

// start starts the machine's next process.
func (m *machine) start() {
	m.epoch++
	m.since, m.loops, m.arrived, m.paused, m.inbox = m.w.now, make([]uint64, 4), map[int]arrival{}, false, nil
	m.pulse = New(Options{
		Header:  wire.PingHeader{Node: m.id, Epoch: m.epoch, Preamble: wire.Preamble{Cluster: wire.ClusterID("pulse")}},
		Started: m.clock(), Digests: m, Agree: len(m.w.nodes) / 2,
	})
	m.step(Input{Kind: InputPeers, Peers: m.w.ids()})
}

func (m *machine) kill() { m.pulse, m.inbox = nil, nil }

// Led and Held implement Digests: a group's loop is its number modulo 4, its members are all nodes.
func (m *machine) Led(dst []uint64, _ uint8) []uint64 { return digests(dst, m.led) }
func (m *machine) Held(dst []uint64, node uint8, loops int) []uint64 {
	mine := map[uint64]uint32{}
	for g, view := range m.held {
		if g/100 == uint64(node) { // the groups of node x are x*100 and up
			mine[g] = view
		}
	}
	return digests(dst, mine)
}

func digests(dst []uint64, groups map[uint64]uint32) []uint64 {
	dst = append(dst, 0, 0, 0, 0)
	for g, view := range groups {
		dst[g%4] ^= Digest(g, view)
	}
	return dst
}

func (m *machine) step(in Input) {
	var out Output
	in.Now, in.View, in.Follows, in.Progress = m.clock(), m.view, !m.apart, m.loops
	m.w.calls++
	m.pulse.Step(&in, &out)
	for i := range out.Events {
		m.log = append(m.log, seen{out.Events[i], m.w.now, m.arrived[m.w.index(out.Events[i].Node)]})
	}
	if out.Fault > FaultPeer && out.Fault != FaultStale && out.Fault != FaultEcho || out.Fault == FaultSender {
		m.w.t.Fatalf("node %d: fault %d", m.id, out.Fault)
	}
	m.wake = out.Wake
	for i := range out.Send {
		s := &out.Send[i]
		h := s.Header
		m.w.post(m.w.index(m.id), m.w.index(s.To), wire.AppendPing(nil, &h, &s.Body))
	}
}

// post sends a frame; it arrives after 0.2 to 2 ms unless the link is cut.
func (w *world) post(from, to int, frame []byte) {
	if w.cut[[2]int{from, to}] {
		return
	}
	p := parcel{w.now + 200 + Tick(w.rng.Uint64N(1800)), from, to, frame}
	for _, q := range w.sent {
		if q.from == from && q.to == to { // a connection keeps order
			p.at = max(p.at, q.at)
		}
	}
	i, _ := slices.BinarySearchFunc(w.sent, p.at+1, func(q parcel, at Tick) int { return int(q.at) - int(at) })
	w.sent = slices.Insert(w.sent, i, p)
}

// read takes one frame.
func (m *machine) read(p parcel) {
	var h wire.PingHeader
	var body wire.PingBody
	err := h.Decode(p.frame)
	if err == nil {
		err = body.Decode(&h, p.frame[wire.HeaderSize:])
	}
	if err != nil {
		m.w.t.Fatal(err)
	}
	kind := InputPong
	if h.Command == wire.CommandPing {
		kind = InputPing
		a := m.arrived[p.from]
		if m.w.now+ms >= max(a.at, m.since)+DeadAfter {
			a.gap = m.w.now
		}
		m.arrived[p.from] = arrival{m.w.now, h.Epoch, a.gap}
	}
	m.step(Input{Kind: kind, From: h.Node, Header: &h, Body: &body})
}

// run lets time pass and check hold at every millisecond.
func (w *world) run(d Tick, check func()) {
	for end := w.now + d; w.now < end; {
		w.now += ms
		for len(w.sent) > 0 && w.sent[0].at <= w.now {
			p := w.sent[0]
			w.sent = w.sent[1:]
			if m := w.nodes[p.to]; m.paused {
				m.inbox = append(m.inbox, p)
			} else if m.pulse != nil {
				m.read(p)
			}
		}
		for _, m := range w.nodes {
			m.turn()
		}
		if check != nil {
			check()
		}
	}
}

func (m *machine) turn() {
	if m.pulse == nil || m.paused {
		return
	}
	for l := range m.loops {
		if m.hung>>l&1 == 0 {
			m.loops[l]++
		}
	}
	if m.wake != 0 && m.clock() >= m.wake {
		m.step(Input{Kind: InputTick})
	}
}

// resume ends a pause: the timer fires first, then the frames that waited are read.
func (m *machine) resume() {
	m.paused, m.resumed = false, m.w.now
	m.turn()
	for _, p := range m.inbox {
		m.read(p)
	}
	m.inbox = nil
}

// link cuts or heals the way from a to b.
func (w *world) link(a, b int, up bool) { w.cut[[2]int{a, b}] = !up }

// isolate cuts or heals all ways of a node.
func (w *world) isolate(a int, up bool) {
	for b := range w.nodes {
		w.link(a, b, up)
		w.link(b, a, up)
	}
}

// of lists what machine i saw of machine j, by kind, since a time.
func (w *world) of(i, j int, since Tick, kinds ...EventKind) (list []seen) {
	for _, s := range w.nodes[i].log {
		if s.Node == w.nodes[j].id && s.at >= since && slices.Contains(kinds, s.Kind) {
			list = append(list, s)
		}
	}
	return list
}

// deaths lists all deaths anybody saw since a time.
func (w *world) deaths(since Tick) string {
	var b strings.Builder
	for i := range w.nodes {
		for j := range w.nodes {
			for _, s := range w.of(i, j, since, EventDead, EventLoopDead) {
				fmt.Fprintf(&b, "node %d at %v; ", w.nodes[i].id, s)
			}
		}
	}
	return b.String()
}

// promise fails if a primary serves although enough members may vote without it.
func (w *world) promise() {
	ids := w.ids()
	replication := min((len(ids)+1)/2, 3)
	for _, primary := range w.nodes {
		if primary.pulse == nil || !primary.pulse.Serving(ids, replication, primary.clock()) {
			continue
		}
		voters := 0
		for _, m := range w.nodes {
			if m != primary && m.pulse != nil && m.pulse.MayVote(primary.id, 0, m.clock()) {
				voters++
			}
		}
		if voters > len(ids)-replication {
			w.t.Fatalf("at %d ms node %d serves while %d members may vote", w.now/ms, primary.id, voters)
		}
	}
}
