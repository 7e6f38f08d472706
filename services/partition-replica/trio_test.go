package partitionreplica

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
)

// trio is three nodes that host the same partitions. Each has the same metadata of its own. Frames wait
// until the test delivers them, time is a number.
type trio struct {
	t     *testing.T
	rng   *rand.Rand
	now   vsr.Tick
	nodes []*member
	wires []parcel
	// roster are the nodes that host everything; nil where the metadata says who hosts what.
	roster []uint8
	sends  uint64  // numbers writes: the same front-door asks all nodes
	alone  *member // its frames are lost, although it is heard
}

type parcel struct {
	from, to uint8
	header   wire.Header
	body     []byte
}

type member struct {
	*world
	trio   *trio
	node   uint8
	mem    *vfs.Mem
	up     bool
	votes  *loop.Votes
	echoes *loop.Echoes
}

func newTrio(t *testing.T, seed uint64) *trio {
	c := &trio{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: 1, roster: []uint8{0, 1, 2}}
	for i := range uint8(3) {
		c.nodes = append(c.nodes, &member{trio: c, node: i, mem: vfs.NewMem(seed*10 + uint64(i))})
	}
	for _, m := range c.nodes {
		m.start()
	}
	c.metadata(func(w *world) { w.topic(1) })
	return c
}

// metadata makes the same change everywhere.
func (c *trio) metadata(change func(*world)) {
	for _, m := range c.nodes {
		change(m.world)
	}
}

func (m *member) start() {
	t := m.trio.t
	evidence, err := journal.LoadEvidence(m.mem, ".")
	if err != nil {
		t.Fatal(err)
	}
	owner := [16]byte{m.node + 1}
	if m.votes, _, err = loop.OpenVotes(m.mem, ".", owner, true); err != nil {
		t.Fatal(err)
	}
	m.echoes = &loop.Echoes{}
	engine := loop.EngineOptions{
		Limits: loop.Limits{Pipeline: 32, Queue: 64}, FileSize: 1 << 20, Budget: 32 << 20, Reserve: 1 << 20, Stepped: true,
		Owner: journal.Owner{Node: owner}, Suspect: evidence.Suspect,
		Clock: func() uint64 { return now.Add(1) }, Ticks: func() vsr.Tick { return m.trio.now }, Random: m.trio.rng.Uint64,
		Peers: m, Votes: m.votes, Evidence: evidence, Echoes: m.echoes,
	}
	w := &world{t: t, fs: m.mem}
	log := hclog.NewNullLogger()
	w.meta, err = metadatareplica.Open(metadatareplica.Config{Engine: engine}, metadatareplica.Deps{
		FS: m.mem, Log: log, Registry: prometheus.NewRegistry(),
		Root: func() (metadata.RootUser, error) { return metadata.RootUser{Name: "root", PasswordHash: "none"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	engine.Owner.Loop = 1
	w.Replica, err = Open(Config{Node: m.node, Roster: m.trio.roster, Loops: 1, MaxFrame: 64 << 20, MaxOffsets: 4096, Engine: engine}, Deps{
		FS: m.mem, Follower: w.meta, Pool: buffer.NewPool(256 << 20), Log: log, Registry: prometheus.NewRegistry(),
		Fatal: func(_ int, err error) { t.Fatalf("node %d ends: %v", m.node, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = evidence.Begin(m.mem, ".", journal.Identity{Node: owner}); err != nil {
		t.Fatal(err)
	}
	w.meta.Partitions = w.Replica
	w.meta.Start()
	w.Replica.Start()
	w.session = w.order(&link.Call{Header: wire.RequestHeader{Operation: wire.OpRegister}}).Op
	m.world, m.up = w, true
	for _, other := range m.trio.nodes {
		if other.up && other != m {
			other.engines[0].NodeAlive(m.node)
		}
	}
}

// stop ends a node at once.
func (m *member) stop(power bool) {
	m.up = false
	if power {
		m.mem.PowerCut()
	} else {
		m.mem.Kill()
	}
	m.trio.wires = slices.DeleteFunc(m.trio.wires, func(p parcel) bool { return p.from == m.node || p.to == m.node })
	for _, other := range m.trio.nodes {
		if other.up {
			other.engines[0].NodeDead(m.node)
		}
	}
}

// Send implements loop.Peers.
func (m *member) Send(to uint8, f loop.Frame) bool {
	if !m.up || !m.trio.nodes[to].up || m.trio.alone == m || m.trio.alone == m.trio.nodes[to] {
		return false
	}
	m.trio.wires = append(m.trio.wires, parcel{m.node, to, *f.Header, slices.Clone(f.Body)})
	return true
}

// run delivers frames and runs file work in an order of the seed for so much time.
func (c *trio) run(limit vsr.Tick) {
	for end := c.now + limit; c.now < end; {
		for moved := true; moved; {
			moved = false
			for len(c.wires) > 0 {
				i := c.rng.IntN(min(len(c.wires), 3))
				p := c.wires[i]
				c.wires = slices.Delete(c.wires, i, i+1)
				c.deliver(&p)
				moved = true
			}
			for _, m := range c.nodes {
				for m.up && (m.engines[0].Step() || m.meta.Engine().Step()) {
					moved = true
				}
			}
		}
		c.pass(20_000)
	}
}

func (c *trio) deliver(p *parcel) {
	to := c.nodes[p.to]
	if !to.up {
		return
	}
	var f *buffer.Frame
	if len(p.body) > 0 {
		f, _ = to.pool.Try(wire.HeaderSize + len(p.body))
		copy(f.Bytes()[wire.HeaderSize:], p.body)
	}
	to.engines[0].Receive(p.from, &p.header, f, wire.HeaderSize)
}

func (c *trio) pass(d vsr.Tick) {
	c.now += d
	for _, m := range c.nodes {
		for _, other := range c.nodes {
			if m.up && other.up && m != other {
				m.echoes.Set(other.node, c.now)
			}
		}
	}
	for _, m := range c.nodes {
		if m.up {
			m.learnViews()
			m.engines[0].Watch()
			if err := m.engines[0].Advance(); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// learnViews is what a node asks the others when it has lost what it had.
func (m *member) learnViews() {
	p := m.find(m.group(0))
	if p == nil || !p.group.Lost() {
		return
	}
	for _, other := range m.trio.nodes {
		if other != m && other.up {
			view := other.find(p.id).group.View()
			m.engines[0].Do(func() { m.engines[0].Loop.PeerView(p.group, other.node, view) })
		}
	}
}

// primary runs until one node leads the partition.
func (c *trio) primary() *member {
	c.t.Helper()
	for range 500 {
		for _, m := range c.nodes {
			if m.up && m.find(m.group(0)) == nil {
				m.engines[0].Do(func() { m.hostFor(m.engines[0], m.group(0)) })
			}
			if !m.up {
				continue
			}
			if ok, _ := m.find(m.group(0)).group.Serves(c.now, m.echoes); ok {
				return m
			}
		}
		c.run(20_000)
	}
	c.t.Fatal("nobody leads the partition")
	return nil
}

// do runs until a call is answered.
func (c *trio) do(m *member, call *link.Call) *link.Call {
	c.t.Helper()
	m.Serve(call)
	for range 500 {
		select {
		case <-call.Done():
			if call.Frame != nil {
				call.Frame.Release()
				call.Frame = nil
			}
			return call
		default:
			c.run(20_000)
		}
	}
	c.t.Fatalf("%v is never answered", call.Header.Operation)
	return nil
}

// same requires that all members hold the same messages, byte for byte, and the same offsets.
func (c *trio) same() {
	c.t.Helper()
	c.run(3_000_000)
	var first map[string][]byte
	var offsets []byte
	for _, m := range c.nodes {
		p := m.find(m.group(0))
		for range 10 {
			m.engines[0].Do(func() {
				if w := p.Work(0, true); w != nil {
					w.Done(w.Run())
				}
			})
		}
		files := map[string][]byte{}
		v := p.log.Stats()
		for _, name := range m.mem.Files() {
			if strings.HasPrefix(name, p.dir+"/") && strings.HasSuffix(name, ".log") {
				files[strings.TrimPrefix(name, p.dir)] = bytes.TrimRight(m.mem.Read(name), "\x00")
			}
		}
		if first == nil {
			first, offsets = files, p.offsets.appendTo(nil)
			if len(files) == 0 && v.Bytes > 0 {
				c.t.Fatal("no segment is on disk")
			}
			continue
		}
		if len(files) != len(first) {
			c.t.Fatalf("node %d has %d segments, node 0 has %d", m.node, len(files), len(first))
		}
		for name, b := range first {
			if !bytes.Equal(b, files[name]) {
				c.t.Fatalf("node %d: %s has %d bytes and differs, node 0 has %d", m.node, name, len(files[name]), len(b))
			}
		}
		if !bytes.Equal(offsets, p.offsets.appendTo(nil)) {
			c.t.Fatalf("node %d has other offsets", m.node)
		}
	}
}

func (c *trio) numbered(call *link.Call) *link.Call {
	c.sends++
	call.Connection, call.Sequence = wire.U128{Lo: 9}, c.sends
	return call
}

// send puts a message of so many bytes into the partition and returns its offset.
func (c *trio) send(size int) uint64 {
	c.t.Helper()
	m := c.primary()
	call := c.do(m, c.numbered(m.sendCall(0, strings.Repeat("x", size))))
	if call.Status != 0 {
		c.t.Fatalf("send: status %v reason %v", call.Status, call.Reason)
	}
	return m.find(m.group(0)).log.Next() - 1
}
